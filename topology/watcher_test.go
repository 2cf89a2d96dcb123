package topology_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nodens-dns/nodens/topology"
)

// rig is a running Watcher inside a synctest bubble.
type rig struct {
	*topology.Watcher
	t      *testing.T
	tables []topology.Table
}

// run gives body a running Watcher; node n1 in zone za unless cfg says more.
func run(t *testing.T, cfg topology.Config, body func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t}
		start := time.Now()
		cfg.Now = func() time.Duration { return time.Since(start) }
		cfg.Publish = func(table topology.Table) { r.tables = append(r.tables, table) }
		if cfg.Self == (topology.Self{}) {
			cfg.Self = topology.Self{Node: "n1", Zone: "za"}
		}
		w, err := topology.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		r.Watcher = w
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		body(r)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// after lets time pass and wants the tables published meanwhile.
func (r *rig) after(d time.Duration, want ...string) {
	r.t.Helper()
	time.Sleep(d)
	synctest.Wait()
	got := []string{}
	for _, table := range r.tables {
		got = append(got, brief(table))
	}
	r.tables = nil
	if want == nil {
		want = []string{}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		r.t.Errorf("tables published (-want +got):\n%s", diff)
	}
}

// brief says "node|zone|cluster|last", states other than ready marked, and
// alternates after a slash.
func brief(table topology.Table) string {
	var parts []string
	for _, list := range [][]topology.Member{table.Tiers[0], table.Tiers[1], table.Tiers[2], table.Last} {
		var words []string
		for _, m := range list {
			word := m.UDP.Addr().String()
			if m.AltUDP.IsValid() {
				word += "/" + m.AltUDP.Addr().String()
			}
			words = append(words, word+map[topology.State]string{topology.Draining: "~", topology.NotReady: "!"}[m.State])
		}
		parts = append(parts, strings.Join(words, " "))
	}
	return strings.Join(parts, "|")
}

const tick = 5 * time.Millisecond // the default of Coalesce

// slice makes a slice of endpoints like "10.0.0.1@n1/za", with a trailing ~ for
// draining, ! for not ready; the pod is named after the last part of the address.
func slice(name string, endpoints ...string) topology.Slice {
	s := topology.Slice{
		Namespace: "kube-system", Name: name, Service: "kube-dns", AddressType: "IPv4",
		Ports: []topology.Port{{Name: "dns", Protocol: "UDP", Number: 53}, {Name: "dns-tcp", Number: 53}},
	}
	yes, no := true, false
	for _, text := range endpoints {
		var e topology.SliceEndpoint
		rest := strings.TrimRight(text, "~!")
		switch text[len(rest):] {
		case "~":
			e.Ready, e.Terminating = &no, &yes
		case "!":
			e.Ready, e.Serving = &no, &no
		}
		addr, at, _ := strings.Cut(rest, "@")
		e.Node, e.Zone, _ = strings.Cut(at, "/")
		e.Addresses = []string{addr}
		if strings.Contains(addr, ":") {
			s.AddressType = "IPv6"
		}
		e.TargetUID = "pod-" + addr[strings.LastIndexAny(addr, ".:")+1:]
		s.Endpoints = append(s.Endpoints, e)
	}
	return s
}

func TestWatcherPublishesOnlyChanges(t *testing.T) {
	run(t, topology.Config{}, func(r *rig) {
		r.Put(slice("a", "10.0.0.2@n2/za", "10.0.0.1@n1/za"))
		r.after(time.Hour) // not synced
		select {
		case <-r.Ready():
			t.Error("ready before the source was synced")
		default:
		}
		r.Synced()
		r.after(0, "10.0.0.1|10.0.0.2||")
		<-r.Ready()
		r.Put(slice("a", "10.0.0.1@n1/za", "10.0.0.2@n2/za")) // another order
		r.Synced()
		r.after(time.Hour)
		r.Put(slice("b", "10.0.0.3@n3/zb"))
		r.after(tick, "10.0.0.1|10.0.0.2|10.0.0.3|")
		r.Put(slice("b", "10.0.0.3@n3/zb!"))
		r.after(tick, "10.0.0.1|10.0.0.2||10.0.0.3!")
		r.Delete("kube-system", "b")
		r.after(tick, "10.0.0.1|10.0.0.2||")
		r.Delete("kube-system", "b")
		r.after(time.Hour)
		want := topology.Counters{Puts: 4, Deletes: 2, Published: 4, Unchanged: 2}
		if diff := cmp.Diff(want, r.Status().Counters); diff != "" {
			t.Error(diff)
		}
	})
}

func TestWatcherGathersEvents(t *testing.T) {
	run(t, topology.Config{}, func(r *rig) {
		r.Put(slice("a", "10.0.0.1@n2/zb"))
		r.Synced()
		r.after(tick, "||10.0.0.1|")
		r.Delete("kube-system", "a")
		r.after(tick - 1)
		r.Put(slice("b", "10.0.0.1@n2/zb", "10.0.0.2@n3/zb")) // it only moved
		r.after(1, "||10.0.0.1 10.0.0.2|")
	})
}

func TestWatcherDoesNotWaitWhenTheLocalEndpointGoes(t *testing.T) {
	events := map[string]func(*rig){
		"draining": func(r *rig) { r.Put(slice("a", "10.0.0.1@n1/za~")) },
		"removed":  func(r *rig) { r.Put(slice("a")) },
		"deleted":  func(r *rig) { r.Delete("kube-system", "a") },
		"replaced": func(r *rig) { r.Replace([]topology.Slice{slice("b", "10.0.0.2@n2/za")}) },
	}
	for name, event := range events {
		t.Run(name, func(t *testing.T) {
			run(t, topology.Config{Coalesce: time.Second}, func(r *rig) {
				r.Replace([]topology.Slice{slice("a", "10.0.0.1@n1/za"), slice("b", "10.0.0.2@n2/za")})
				r.Synced()
				r.after(0, "10.0.0.1|10.0.0.2||")
				event(r)
				want := "|10.0.0.2||"
				if name == "draining" {
					want += "10.0.0.1~"
				}
				r.after(0, want)
			})
		})
	}
}

func TestWatcherKeepsStatePerSlice(t *testing.T) {
	run(t, topology.Config{}, func(r *rig) {
		r.Put(slice("a", "10.0.0.1@n1/za", "10.0.0.2@n2/za"))
		r.Synced()
		r.after(tick, "10.0.0.1|10.0.0.2||")
		r.Put(slice("b", "10.0.0.2@n2/za")) // in both for a moment
		r.after(tick)
		r.Put(slice("a", "10.0.0.1@n1/za"))
		r.after(tick)
		// A late write of the old slice is the newer copy now.
		r.Put(slice("a", "10.0.0.1@n1/za", "10.0.0.2@n2/za!"))
		r.after(tick, "10.0.0.1|||10.0.0.2!")
	})
}

func TestWatcherOrdersSlicesByTriggerTime(t *testing.T) {
	at := func(s topology.Slice, changed, seen int64) topology.Slice {
		if changed != 0 {
			s.Changed = time.Unix(changed, 0)
		}
		s.Seen = time.Unix(seen, 0)
		return s
	}
	up, down := slice("up", "10.0.0.1@n1/za"), slice("down", "10.0.0.1@n1/za!")
	cases := map[string]struct {
		list []topology.Slice
		want string
	}{
		"newer trigger listed first":    {[]topology.Slice{at(up, 20, 50), at(down, 10, 50)}, "10.0.0.1|||"},
		"newer trigger listed last":     {[]topology.Slice{at(up, 10, 50), at(down, 20, 50)}, "|||10.0.0.1!"},
		"no trigger: arrival":           {[]topology.Slice{at(up, 0, 0), at(down, 0, 0)}, "|||10.0.0.1!"},
		"seen later than triggered":     {[]topology.Slice{at(up, 0, 50), at(down, 40, 60)}, "10.0.0.1|||"},
		"a trigger from the future":     {[]topology.Slice{at(up, 0, 50), at(down, 99, 40)}, "10.0.0.1|||"},
		"same trigger: arrival decides": {[]topology.Slice{at(down, 10, 50), at(up, 10, 50)}, "10.0.0.1|||"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			run(t, topology.Config{}, func(r *rig) {
				r.Replace(c.list)
				r.Synced()
				r.after(tick, c.want)
				r.Replace([]topology.Slice{c.list[1], c.list[0]}) // listed again, nothing written
				r.after(tick)
			})
		})
	}
}

func TestWatcherHoldsTheLastSetWhenTheWorldEmpties(t *testing.T) {
	run(t, topology.Config{}, func(r *rig) {
		r.Synced()
		r.after(tick, "|||") // empty from the start: nothing to keep
		r.Put(slice("a", "10.0.0.2@n2/za", "10.0.0.1@n1/za", "10.0.0.3@n3/zb~"))
		r.after(tick, "10.0.0.1|10.0.0.2||10.0.0.3~")
		r.Replace(nil)
		r.after(29 * time.Second)
		if s := r.Status(); !s.Empty || s.EmptyFor != 29*time.Second || brief(s.Table) != "10.0.0.1|10.0.0.2||10.0.0.3~" || s.Counters.Emptied != 1 {
			t.Errorf("status: empty %v for %v, %s, %+v", s.Empty, s.EmptyFor, brief(s.Table), s.Counters)
		}
		r.after(time.Second+tick, "|||10.0.0.1! 10.0.0.2! 10.0.0.3!")
		r.Put(slice("a")) // a placeholder is nobody
		r.after(1000 * time.Hour)
		r.Put(slice("a", "10.0.0.9@n1/za"))
		r.after(tick, "10.0.0.9|||")
		if s := r.Status(); s.Empty || s.Counters.Emptied != 1 {
			t.Errorf("still empty: %+v", s)
		}
	})
}

func TestWatcherForgetsAShortEmptyMoment(t *testing.T) {
	run(t, topology.Config{EmptyHold: time.Second}, func(r *rig) {
		r.Put(slice("a", "10.0.0.1@n1/za"))
		r.Synced()
		r.after(tick, "10.0.0.1|||")
		for range 3 { // the time starts anew each time
			r.Delete("kube-system", "a")
			r.after(900 * time.Millisecond)
			r.Put(slice("b", "10.0.0.1@n1/za"))
			r.after(900 * time.Millisecond)
			r.Delete("kube-system", "b")
			r.after(900 * time.Millisecond)
			r.Put(slice("a", "10.0.0.1@n1/za"))
			r.after(900 * time.Millisecond)
		}
	})
}

func TestWatcherNothingReadyIsNotAnEmptyWorld(t *testing.T) {
	run(t, topology.Config{}, func(r *rig) {
		r.Put(slice("a", "10.0.0.1@n1/za", "10.0.0.2@n2/za"))
		r.Synced()
		r.after(tick, "10.0.0.1|10.0.0.2||")
		r.Put(slice("a", "10.0.0.1@n1/za~", "10.0.0.2@n2/za!"))
		r.after(tick, "10.0.0.1~|||10.0.0.2!")
		r.Put(slice("a", "10.0.0.1@n1/za!", "10.0.0.2@n2/za!"))
		r.after(tick, "|||10.0.0.1! 10.0.0.2!")
	})
}

func TestWatcherLearnsWhereItIs(t *testing.T) {
	run(t, topology.Config{Self: topology.Self{Node: "n1"}}, func(r *rig) {
		r.Put(slice("a", "10.0.0.2@n2/za"))
		r.Synced()
		r.after(tick, "||10.0.0.2|")
		r.Put(slice("b", "10.0.0.1@n1/za!")) // not ready, but it names our zone
		r.after(tick, "|10.0.0.2||10.0.0.1!")
		r.Delete("kube-system", "b")
		r.after(tick, "|10.0.0.2||")
		r.Relocate(topology.Self{Node: "n1", Zone: "zb"}) // what is told beats what is seen
		r.after(tick, "||10.0.0.2|")
		r.Relocate(topology.Self{Node: "n1", Zone: "zb"})
		r.after(time.Hour)
		r.Relocate(topology.Self{Node: "n2", Zone: "zb"})
		r.after(tick, "10.0.0.2|||")
		r.Relocate(topology.Self{Node: "n7"})
		r.after(tick, "||10.0.0.2|")
	})
}

func TestWatcherDualStack(t *testing.T) {
	four := slice("four", "10.0.0.1@n1/za", "10.0.0.2@n2/za")
	six := slice("six", "fd00::1@n1/za", "fd00::2@n2/za", "fd00::3@n3/za")
	cases := map[string]struct {
		families []topology.Family
		list     []topology.Slice
		want     string
	}{
		"IPv4 first":         {nil, []topology.Slice{six, four}, "10.0.0.1/fd00::1|10.0.0.2/fd00::2||"},
		"IPv6 first":         {[]topology.Family{topology.IPv6, topology.IPv4}, []topology.Slice{six, four}, "fd00::1/10.0.0.1|fd00::2/10.0.0.2 fd00::3||"},
		"IPv4 only":          {[]topology.Family{topology.IPv4}, []topology.Slice{six, four}, "10.0.0.1|10.0.0.2||"},
		"only IPv6 is there": {nil, []topology.Slice{six}, "fd00::1|fd00::2 fd00::3||"},
		"only IPv6 is usable": {
			nil,
			[]topology.Slice{slice("four", "10.0.0.1@n1/za!"), six},
			"fd00::1/10.0.0.1|fd00::2 fd00::3||",
		},
		"neither is usable": {
			nil,
			[]topology.Slice{slice("four", "10.0.0.1@n1/za!"), slice("six", "fd00::1@n1/za!")},
			"|||10.0.0.1/fd00::1!",
		},
		"only IPv6 is known, and not usable": {nil, []topology.Slice{slice("six", "fd00::1@n1/za!")}, "|||fd00::1!"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			run(t, topology.Config{Rules: topology.Rules{Families: c.families}}, func(r *rig) {
				r.Replace(c.list)
				r.Synced()
				r.after(tick, c.want)
			})
		})
	}
}

func TestWatcherAllowList(t *testing.T) {
	mine, strange, none := slice("a", "10.0.0.1@n1/za"), slice("b", "10.0.0.2@n1/za"), slice("c", "10.0.0.3@n1/za")
	mine.ManagedBy, strange.ManagedBy = "endpointslice-controller.k8s.io", "someone"
	rules := topology.Rules{ManagedBy: []string{"endpointslice-controller.k8s.io"}}
	run(t, topology.Config{Rules: rules}, func(r *rig) {
		r.Replace([]topology.Slice{mine, strange, none})
		r.Synced()
		r.after(tick, "10.0.0.1|||")
		if n := r.Status().Ignored[topology.OtherController]; n != 2 {
			t.Errorf("%d slices counted", n)
		}
	})
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	good := topology.Config{Publish: func(topology.Table) {}, Now: func() time.Duration { return 0 }}
	if _, err := topology.New(good); err != nil {
		t.Fatal(err)
	}
	for name, breaks := range map[string]func(*topology.Config){
		"no publish": func(c *topology.Config) { c.Publish = nil },
		"no clock":   func(c *topology.Config) { c.Now = nil },
		"slow":       func(c *topology.Config) { c.Coalesce = 2 * time.Second },
		"hold":       func(c *topology.Config) { c.EmptyHold = time.Millisecond },
	} {
		cfg := good
		breaks(&cfg)
		if _, err := topology.New(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// BenchmarkWatcher5000 is one event in a world of 50 slices of 100: merge, rank,
// table, compare.
func BenchmarkWatcher5000(b *testing.B) {
	published := make(chan struct{}, 1)
	w, err := topology.New(topology.Config{
		Self: topology.Self{Node: "n7", Zone: "z1"}, Coalesce: -1,
		Now:     func() time.Duration { return 0 },
		Publish: func(topology.Table) { published <- struct{}{} },
	})
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = w.Run(b.Context()) }()
	var one topology.Slice
	for n := range 50 {
		var endpoints []string
		for i := range 100 {
			endpoints = append(endpoints, fmt.Sprintf("10.1.%d.%d@n%d/z%d", n, i, n*100+i, i%3))
		}
		one = slice(fmt.Sprint(n), endpoints...)
		w.Put(one)
	}
	w.Synced()
	<-published
	ready := true
	one.Endpoints[0].Ready = &ready // as it is
	b.ReportAllocs()
	for b.Loop() {
		ready = !ready
		w.Put(one)
		<-published
	}
}
