package kube_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nodens-dns/nodens/topology"
	"github.com/nodens-dns/nodens/topology/kube"
)

// TestMain lets the memory test run a process of its own, in which nothing else
// was ever alive.
func TestMain(m *testing.M) {
	if os.Getenv("NODENS_MEMORY_SERVER") != "" {
		weigh()
		return
	}
	os.Exit(m.Run())
}

// weigh prints the resident memory in KiB without a source, and with one that
// has followed a set and all its changes.
func weigh() {
	debug.SetGCPercent(30) // as the daemon sets it
	idle := resident()
	folder := os.Getenv("NODENS_MEMORY_FOLDER")
	client := kube.NewClient(kube.API{Server: os.Getenv("NODENS_MEMORY_SERVER"), CAFile: folder + "/ca.crt", TokenFile: folder + "/token"})
	start := time.Now()
	now := func() time.Duration { return time.Since(start) }
	watcher, err := topology.New(topology.Config{Now: now, Publish: func(topology.Table) {}, Self: topology.Self{Node: "node-1", Zone: "zone-1"}})
	if err != nil {
		panic(err)
	}
	source, err := kube.New(kube.Config{Client: client, Now: now})
	if err != nil {
		panic(err)
	}
	go func() { _ = watcher.Run(context.Background()) }()
	go func() { _ = source.Run(context.Background(), watcher) }()
	<-watcher.Ready()
	fmt.Println("ready")
	events, _ := strconv.Atoi(os.Getenv("NODENS_MEMORY_EVENTS"))
	for source.Status().Counters.Events < uint64(events) {
		time.Sleep(10 * time.Millisecond)
	}
	// What stays: the runtime gives pages back by itself, but over minutes.
	time.Sleep(100 * time.Millisecond)
	debug.FreeOSMemory()
	fmt.Println("idle", idle, "settled", resident(), "peak", peak(), "received", client.Received())
}

func resident() int { return statusKiB("VmRSS") }
func peak() int     { return statusKiB("VmHWM") }

func statusKiB(field string) int {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		panic(err)
	}
	found := regexp.MustCompile(field + `:\s+(\d+)`).FindSubmatch(data)
	n, _ := strconv.Atoi(string(found[1]))
	return n
}

// realistic makes a slice as the controller writes it for a DaemonSet.
func realistic(index, endpoints int) *discovery.EndpointSlice {
	s := slice(fmt.Sprintf("kube-dns-%05d", index), "kube-dns")
	s.Labels[discovery.LabelManagedBy] = "endpointslice-controller.k8s.io"
	s.Labels["kubernetes.io/cluster-service"] = "true"
	s.GenerateName = "kube-dns-"
	for i := range endpoints {
		n := index*endpoints + i
		zone := fmt.Sprintf("zone-%d", n%3)
		node := fmt.Sprintf("ip-10-%d-%d-%d.example.internal", n>>16, n>>8&255, n&255)
		s.Endpoints = append(s.Endpoints, discovery.Endpoint{
			Addresses:  []string{fmt.Sprintf("10.%d.%d.%d", n>>16, n>>8&255, n&255)},
			Conditions: discovery.EndpointConditions{Ready: ptr(true), Serving: ptr(true), Terminating: ptr(false)},
			NodeName:   &node, Zone: &zone,
			TargetRef: &core.ObjectReference{
				Kind: "Pod", Namespace: "kube-system", Name: fmt.Sprintf("coredns-%05d-abcde", n),
				UID: types.UID(fmt.Sprintf("6f1c1b1e-0000-4000-8000-%012d", n)),
			},
			Hints: &discovery.EndpointHints{ForZones: []discovery.ForZone{{Name: zone}}, ForNodes: []discovery.ForNode{{Name: node}}},
		})
	}
	return s
}

func TestMemory(t *testing.T) {
	if testing.Short() || runtime.GOOS != "linux" {
		t.Skip("needs /proc and some seconds")
	}
	if raceEnabled {
		t.Skip("the race detector takes memory of its own")
	}
	for _, c := range []struct {
		name              string
		slices, endpoints int
		events            int // slices changed afterwards, one after the other
		limit             int // of what stays, in KiB
	}{
		{"3 endpoints", 1, 3, 14, 12 << 10},
		{"5000 endpoints in 50 slices", 50, 100, 200, 20 << 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			idle, settled, peak, received := weighed(t, c.slices, c.endpoints, c.events)
			t.Logf("idle %.1f MiB, growth %.1f MiB, at its peak %.1f MiB; %d KiB received in a list and %d events",
				float64(idle)/1024, float64(settled-idle)/1024, float64(peak-idle)/1024, received>>10, c.events)
			if settled-idle > c.limit {
				t.Errorf("resident memory grew by %d KiB, want at most %d", settled-idle, c.limit)
			}
		})
	}
}

// weighed follows some slices in a process of its own and returns its memory in
// KiB, and the bytes it received.
func weighed(t *testing.T, count, endpoints, events int) (idle, settled, peak, received int) {
	t.Helper()
	f := newFakeAPI(t)
	for i := range count {
		f.put(realistic(i, endpoints))
	}
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), "NODENS_MEMORY_SERVER="+f.URL, "NODENS_MEMORY_FOLDER="+f.folder,
		fmt.Sprintf("NODENS_MEMORY_EVENTS=%d", events))
	out := new(strings.Builder)
	command.Stdout, command.Stderr = out, os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	within(t, time.Minute, "the watch", func() bool { return f.count("stream") > 0 })
	time.Sleep(500 * time.Millisecond)
	for i := range events {
		changed := realistic(i%count, endpoints)
		changed.Endpoints[0].Conditions.Ready = ptr(i/count%2 == 1)
		f.put(changed)
		time.Sleep(5 * time.Millisecond)
	}
	if err := command.Wait(); err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(out.String(), "ready\n")
	if _, err := fmt.Sscanf(text, "idle %d settled %d peak %d received %d", &idle, &settled, &peak, &received); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return idle, settled, peak, received
}
