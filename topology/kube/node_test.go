package kube_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/nodens-dns/nodens/topology/kube"
)

func TestNodeZone(t *testing.T) {
	f := newFakeAPI(t)
	zones := make(chan string, 10)
	client := kube.NewClient(f.api())
	defer client.Close()
	n, err := kube.NewNode(kube.NodeConfig{
		Client: client, Name: "n1", Every: 10 * time.Millisecond,
		Publish: func(zone string) { zones <- zone },
		Now:     func() time.Duration { return 0 },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- n.Run(ctx) }()

	label := func(zone string) func() {
		return func() { f.nodes["n1"] = map[string]string{"topology.kubernetes.io/zone": zone} }
	}
	faces := func(fault kube.Fault, text string) {
		t.Helper()
		within(t, time.Minute, text, func() bool {
			s := n.Status()
			return s.Fault == fault && strings.Contains(s.LastError, text)
		})
	}
	wants := func(zone string) {
		t.Helper()
		select {
		case got := <-zones:
			if got != zone {
				t.Fatalf("zone %q, want %q", got, zone)
			}
		case <-time.After(time.Minute):
			t.Fatalf("no zone; status %+v", n.Status())
		}
	}
	faces(kube.ServerError, "spec.nodeName")
	f.set(func() { f.refuse = forbidden })
	faces(kube.Forbidden, "grant get of nodes")
	f.set(func() { f.refuse, f.nodes["n1"] = nil, map[string]string{} })
	wants("")
	f.set(label("za"))
	wants("za")
	f.set(label("zb"))
	wants("zb")
	f.set(func() { f.nodes["n1"] = nil })
	wants("")
	cancel()
	if err := <-done; err != nil || len(zones) != 0 {
		t.Errorf("Run: %v; %d zones too many", err, len(zones))
	}
}

// Without the permission one line says so, in words of its own, and not before
// the endpoints are known.
func TestNodeThatIsNotRead(t *testing.T) {
	f := newFakeAPI(t)
	f.refuse = forbidden
	core, logs := observer.New(zap.InfoLevel)
	listed := make(chan struct{})
	client := kube.NewClient(f.api())
	defer client.Close()
	n, err := kube.NewNode(kube.NodeConfig{
		Client: client, Name: "n1", Every: 10 * time.Millisecond, Listed: listed,
		Publish: func(string) {}, Now: func() time.Duration { return 0 }, Log: zap.New(core),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- n.Run(ctx) }()
	attempts := func(most uint64) func() bool {
		return func() bool { return n.Status().Counters.Failures >= most }
	}
	within(t, time.Minute, "three attempts", attempts(3))
	if logs.Len() != 0 {
		t.Errorf("logged before the endpoints are known: %v", logs.All())
	}
	close(listed)
	within(t, time.Minute, "more attempts", attempts(n.Status().Counters.Failures+3))
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if lines := logs.All(); len(lines) != 1 || !strings.HasPrefix(lines[0].Message, "the Node of this node cannot be read") {
		t.Errorf("logged %v, want one line about the Node", lines)
	}
}

func TestConfigurationsThatCannotBe(t *testing.T) {
	now := func() time.Duration { return 0 }
	client := kube.NewClient(kube.API{})
	for name, cfg := range map[string]kube.Config{
		"no client":         {Now: now},
		"no clock":          {Client: client},
		"jitter too long":   {Client: client, Now: now, StartJitter: time.Hour},
		"wait too short":    {Client: client, Now: now, RetryMin: 1},
		"waits in disorder": {Client: client, Now: now, RetryMin: 3 * time.Second, RetryMax: 2 * time.Second},
		"refused in order":  {Client: client, Now: now, RetryMax: 3 * time.Second, RefusedMax: 2 * time.Second},
		"search too often":  {Client: client, Now: now, SearchEvery: 1},
	} {
		if _, err := kube.New(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := kube.NewNode(kube.NodeConfig{Client: client, Now: now, Name: "n"}); err == nil {
		t.Error("a node without Publish: no error")
	}
}
