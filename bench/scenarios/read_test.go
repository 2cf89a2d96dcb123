package scenarios_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nodens-dns/nodens/bench/load"
	"github.com/nodens-dns/nodens/bench/names"
	"github.com/nodens-dns/nodens/bench/scenarios"
	"github.com/nodens-dns/nodens/bench/upstream"
)

func TestThoseOfTheProgramAreValid(t *testing.T) {
	all := scenarios.Names()
	if len(all) < 10 {
		t.Fatalf("%d scenarios: %v", len(all), all)
	}
	for _, name := range all {
		s, err := scenarios.Load(name)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if _, err := names.NewZone(s.Names); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if s.Length() > 30*time.Second || s.Does == "" || s.Name != name {
			t.Errorf("%s lasts %v, does %q, is called %q", name, s.Length(), s.Does, s.Name)
		}
	}
}

func TestEveryKeyIsRead(t *testing.T) {
	got, err := scenarios.Read("x.yaml", "x", []byte(`
does: All of it.
names: {kind: blend, hits: 0.5, services: 10, external: 20, externalShare: 0.5, tcpShare: 0, ednsShare: 0.25, zipf: 0, dualStack: true, ttl: 1m}
warm: true
load: {transport: dot, retry: musl, followTC: true, sockets: 3, conns: 4, workers: 2, freshPorts: true, timeout: 2s}
upstream: {servers: 2, delay: 1ms, jitter: 2ms, loss: 0.1, servfail: 0.2, refused: 0.3, truncate: 0.4, garbage: 0.5, rate: 1000, queue: 7}
phases:
- {name: a, for: 1s, rate: 100}
- {name: b, for: 2s, from: 100, to: 300}
events:
- {at: 1s, does: silence, do: faults, server: 2, blackhole: true}
- {at: 2s, does: back, do: stop-start, gap: 100ms}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := &scenarios.Scenario{
		Name: "x", Does: "All of it.", Kind: scenarios.Blend, Hits: 0.5, Warm: true, Servers: 2,
		Names: names.Config{
			Services: 10, External: 20, ExternalShare: 0.5, TCPShare: -1, EDNSShare: 0.25, Zipf: -1, DualStack: true, TTL: 60,
		},
		Load: load.Config{
			Transport: load.TLS, Retry: load.Musl, FollowTC: true, Sockets: 3, Conns: 4, Workers: 2, FreshPorts: true, Timeout: 2 * time.Second,
			Stages: []load.Stage{load.Steady("a", 100, time.Second), {Name: "b", For: 2 * time.Second, From: 100, To: 300}},
		},
		Faults: upstream.Faults{
			Delay: time.Millisecond, Jitter: 2 * time.Millisecond, Loss: 0.1, ServFail: 0.2, Refused: 0.3, Truncate: 0.4, Garbage: 0.5, Rate: 1000, Queue: 7,
		},
		Events: []scenarios.Event{
			{At: time.Second, Does: "silence", Do: scenarios.SetFaults, Server: 2, Faults: upstream.Faults{Blackhole: true}},
			{At: 2 * time.Second, Does: "back", Do: scenarios.StopStart, Gap: 100 * time.Millisecond},
		},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.AddrPort{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got.Length() != 3*time.Second || got.Peak() != 300 || !got.Restarts() || !got.Meddles() {
		t.Errorf("length %v, peak %v, restarts %v, meddles %v", got.Length(), got.Peak(), got.Restarts(), got.Meddles())
	}
	got.Stretch(6 * time.Second)
	got.Pace(600)
	if s := got.Load.Stages[1]; got.Length() != 6*time.Second || s.From != 200 || s.To != 600 || got.Events[1].At != 4*time.Second {
		t.Errorf("stretched to %v: %+v, %+v", got.Length(), s, got.Events[1])
	}
}

func TestMistakes(t *testing.T) {
	const rest = "\ndoes: x\nphases:\n- {name: a, for: 1s, rate: 1}\n"
	for name, c := range map[string]struct{ text, want string }{
		"empty":             {"", "f:1: the file is empty"},
		"not YAML":          {"does: [x\n", "this is not YAML"},
		"two documents":     {rest + "---\ndoes: y\n", "f:5: a second document"},
		"a list":            {"- x\n", "f:1: the file is a list"},
		"nothing":           {"does: x\n", "f:1: phases is missing"},
		"unknown key":       {"raet: 5" + rest, `f:1: unknown key "raet"; remove it; known here: does, events`},
		"twice":             {"does: y" + rest, "f:2: does is given twice"},
		"no unit":           {"names: {ttl: 60}" + rest, `f:1: names.ttl is "60"; write a duration with its unit`},
		"word":              {"load: {transport: quic}" + rest, `f:1: load.transport is "quic"; write one of mixed, udp, tcp, tcp-each, dot`},
		"not a number":      {"upstream: {loss: much}" + rest, `f:1: upstream.loss is "much"`},
		"share above one":   {"names: {tcpShare: 2}" + rest, `f:1: names.tcpShare is "2"; write a number from 0 to 1`},
		"not bool":          {"warm: 1" + rest, `f:1: warm is "1"; write true or false`},
		"no hits":           {"names: {kind: blend}" + rest, "names.kind is blend without hits"},
		"closed with rate":  {"load: {outstanding: 5}" + rest, "f:1: load.outstanding makes a closed loop"},
		"too many sockets":  {"load: {sockets: 5000}" + rest, "f:1: load.sockets is 5000; write at most 4096"},
		"no rate":           {"does: x\nphases:\n- {name: a, for: 1s}\n", "no phase sends anything"},
		"rate and ramp":     {"does: x\nphases:\n- {name: a, for: 1s, rate: 1, to: 5}\n", "f:3: phases[0] has a rate and a ramp"},
		"late event":        {rest + "events:\n- {at: 5s, does: x, do: kill}\n", "f:6: events[0] is at 5s, but the phases are over at 1s"},
		"no such server":    {rest + "events:\n- {at: 1s, does: x, do: kill, server: 2}\n", "f:6: events[0] is for server 2 of 1"},
		"faults of nothing": {rest + "events:\n- {at: 1s, does: x, do: kill, loss: 0.5}\n", `f:6: events[0] has faults, but does "kill"`},
		"order":             {rest + "events:\n- {at: 1s, does: x, do: kill}\n- {at: 0s, does: x, do: start}\n", "f:7: events[1] is earlier"},
		"alias":             {"warm: *x" + rest, "this is not YAML"},
		"all at once":       {"a: 1\nb: 2" + rest, "f:1: unknown key \"a\"; remove it; known here: does, events, load, names, phases, upstream, warm\nf:2: unknown key \"b\""},
	} {
		if _, err := scenarios.Read("f", "f", []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant it to say %q", name, err, c.want)
		}
	}
}

func TestFromAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(path, []byte("does: x\nphases:\n- {name: a, for: 1s, rate: 1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := scenarios.Load(path); err != nil || s.Name != "mine" {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := scenarios.Load("wram"); err == nil || !strings.Contains(err.Error(), "known are") {
		t.Errorf("a scenario that does not exist: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	for _, name := range scenarios.Names() {
		_, text, _ := scenarios.Text(name)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := scenarios.Read("f", "f", data)
		if (s == nil) == (err == nil) {
			t.Fatalf("%v, %v", s, err)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "f:") {
			t.Fatalf("no line: %v", err)
		}
	})
}
