package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/deploy/e2e/cluster"
	"github.com/nodens-dns/nodens/topology"
)

const (
	largeSlices = 50
	perSlice    = 100
)

// A DaemonSet of 5 000 pods: a change still reaches the tiers soon.
func TestFiveThousandEndpoints(t *testing.T) {
	s := stage(t)
	s.AddService(cluster.WithoutSelector)
	account := s.Account("nodens")
	account.Grant(shippedRules(t, "rbac.yaml"))
	s.AddNode("n1", "za")
	first := largeSlice(s, 0)
	s.AddSlice(first)
	for i := range largeSlices - 1 {
		s.AddSlice(largeSlice(s, i+1))
	}
	o := observe(t, s, "n1", "za", func(with *setup) { with.account = account })
	has := func(ready int) func(*topology.Table) bool {
		return func(table *topology.Table) bool { return table.Usable() == ready }
	}
	all := largeSlices * perSlice
	o.until("with all", patience, has(all))
	for i := range 25 {
		down := &first.Endpoints[i]
		ready := false
		down.Conditions.Ready = &ready
		s.UpdateSlice(first)
		o.measure("with one less", has(all-1))
		ready = true
		s.UpdateSlice(first)
		o.measure("with all", has(all))
	}
}

// largeSlice is a slice as the controller writes it for PreferSameNode.
func largeSlice(s *cluster.Stage, number int) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%02d", cluster.Service, number)},
	}
	yes, no := true, false
	for i := range perSlice {
		n := number*perSlice + i
		node, zone := s.NodeName(fmt.Sprintf("n%d", n)), fmt.Sprintf("zone-%d", n%3)
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses:  []string{fmt.Sprintf("198.18.%d.%d", number, i+1)},
			NodeName:   &node,
			Zone:       &zone,
			Conditions: discoveryv1.EndpointConditions{Ready: &yes, Serving: &yes, Terminating: &no},
			Hints: &discoveryv1.EndpointHints{
				ForNodes: []discoveryv1.ForNode{{Name: node}},
				ForZones: []discoveryv1.ForZone{{Name: zone}},
			},
			TargetRef: &corev1.ObjectReference{
				Kind: "Pod", Namespace: s.Namespace, Name: fmt.Sprintf("coredns-%05d", n),
				UID: types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", n)),
			},
		})
	}
	return slice
}

// What the Kubernetes client adds to a process and its binary, with 3 endpoints
// and with 5 000, the first list and 50 changes behind it.
func TestFootprint(t *testing.T) {
	s := stage(t)
	s.AddService(cluster.WithoutSelector)
	account := s.Account("nodens")
	account.Grant(shippedRules(t, "rbac.yaml"))
	slice := largeSlice(s, 0)
	slice.Endpoints = slice.Endpoints[:3]
	s.AddSlice(slice)

	bare := startFootprint(t, s, account, "-tags=bare")
	few := startFootprint(t, s, account)
	few.waitForMembers(3)
	atFirst := few.settled()
	for i := range largeSlices - 1 {
		s.AddSlice(largeSlice(s, i+1))
	}
	last := largeSlice(s, 0)
	s.UpdateSlice(last)
	few.waitForMembers(largeSlices * perSlice)
	many := startFootprint(t, s, account)
	many.waitForMembers(largeSlices * perSlice)
	for i := range 50 {
		ready := i%2 == 1
		last.Endpoints[0].Conditions.Ready = &ready
		s.UpdateSlice(last)
		time.Sleep(20 * time.Millisecond)
	}

	base := bare.settled()
	t.Logf("bare %.1f MB; with 3 endpoints %.1f MB; with %d %.1f MB, grown to it %.1f MB; binaries %.1f and %.1f MB",
		mega(base), mega(atFirst), largeSlices*perSlice, mega(many.settled()), mega(few.settled()), mega(bare.size), mega(few.size))
	for _, limit := range []struct {
		what       string
		grown, max int64
	}{
		{"resident with 3 endpoints", atFirst - base, 12_000_000},
		{"resident with 5000 endpoints", many.settled() - base, 20_000_000},
		{"resident when it grew to 5000 endpoints", few.settled() - base, 20_000_000},
		{"binary", few.size - bare.size, 20_000_000},
	} {
		if limit.grown > limit.max {
			t.Errorf("%s: %.1f MB more, at most %.1f allowed", limit.what, mega(limit.grown), mega(limit.max))
		}
	}
}

func mega(n int64) float64 { return float64(n) / 1e6 }

// footprint is a running child.
type footprint struct {
	*space.Process
	t    *testing.T
	size int64 // of the binary
}

func startFootprint(t *testing.T, s *cluster.Stage, account *cluster.Account, flags ...string) *footprint {
	t.Helper()
	program := filepath.Join(t.TempDir(), "footprint")
	build := exec.Command("go", append(append([]string{"build", "-ldflags=-s -w", "-o", program}, flags...), "./footprint")...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, shared.cluster.URL(), shared.cluster.CAFile(), account.TokenFile, s.Namespace, s.NodeName("n1"))
	return &footprint{Process: space.Space{}.Start(t, cmd), t: t, size: info.Size()}
}

// waitForMembers waits until the last line that the child has printed tells so many.
func (f *footprint) waitForMembers(want int) {
	f.t.Helper()
	waitFor(f.t, fmt.Sprintf("%d members known to the child", want), patience, func() bool {
		if !f.Running() {
			f.t.Fatal("the child ended")
		}
		lines := strings.Split(f.Said(), "\n")
		if len(lines) < 2 {
			return false
		}
		line, got := lines[len(lines)-2], 0 // the last but one is the last whole
		for _, tier := range strings.Fields(line) {
			n, err := strconv.Atoi(tier)
			if err != nil {
				f.t.Fatalf("%q: %v", line, err)
			}
			got += n
		}
		return got == want
	})
}

// settled returns the resident bytes once the child has been at rest a while.
func (f *footprint) settled() int64 {
	f.t.Helper()
	time.Sleep(2 * time.Second)
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", f.PID()))
	if err != nil {
		f.t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		if fields := bytes.Fields(line); len(fields) == 3 && string(fields[0]) == "VmRSS:" {
			kilo, err := strconv.ParseInt(string(fields[1]), 10, 64)
			if err != nil {
				f.t.Fatal(err)
			}
			return kilo << 10
		}
	}
	f.t.Fatal("no VmRSS")
	return 0
}
