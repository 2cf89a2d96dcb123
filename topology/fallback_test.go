package topology_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/nodens-dns/nodens/topology"
)

func addrPorts(list ...string) []netip.AddrPort {
	var out []netip.AddrPort
	for _, a := range list {
		out = append(out, netip.MustParseAddrPort(a))
	}
	return out
}

func TestFallback(t *testing.T) {
	both := topology.Fallback{Service: addrPorts("10.96.0.10:53"), Servers: addrPorts("192.0.2.1:53")}
	for _, c := range []struct {
		name     string
		fallback topology.Fallback
		start    []string // tables before anything is known
		ready    string   // with an endpoint
		lost     string   // with one that is not ready
	}{
		{"none", topology.Fallback{}, nil, "10.0.0.1|||", "|||10.0.0.1!"},
		{"both", both, []string{"||10.96.0.10|192.0.2.1!"}, "10.0.0.1|||10.96.0.10! 192.0.2.1!", "|||10.0.0.1! 10.96.0.10! 192.0.2.1!"},
		{"ClusterIP only", topology.Fallback{Service: both.Service}, []string{"||10.96.0.10|"}, "10.0.0.1|||10.96.0.10!", "|||10.0.0.1! 10.96.0.10!"},
		{"servers only", topology.Fallback{Servers: both.Servers}, []string{"||192.0.2.1|"}, "10.0.0.1|||192.0.2.1!", "|||10.0.0.1! 192.0.2.1!"},
	} {
		t.Run(c.name, func(t *testing.T) {
			run(t, topology.Config{Fallback: c.fallback}, func(r *rig) {
				r.after(time.Hour, c.start...)
				if s := r.Status(); s.Fallback != (c.start != nil) {
					t.Errorf("status says fallback %v", s.Fallback)
				}
				r.Put(slice("a", "10.0.0.1@n1/za"))
				r.Synced()
				r.after(time.Second, c.ready)
				if r.Status().Fallback {
					t.Error("still called fallback")
				}
				r.Put(slice("a", "10.0.0.1@n1/za!"))
				r.after(time.Second, c.lost)
			})
		})
	}
}

// TestSteps follows the steps of the last resort, from endpoints that are not
// ready to a world that stays empty.
func TestSteps(t *testing.T) {
	cfg := topology.Config{
		EmptyHold: time.Second,
		Fallback:  topology.Fallback{Service: addrPorts("10.96.0.10:53"), Servers: addrPorts("192.0.2.1:53", "192.0.2.2:53")},
	}
	run(t, cfg, func(r *rig) {
		steps := func(want string) {
			t.Helper()
			time.Sleep(2 * time.Second)
			synctest.Wait()
			var got []string
			for _, m := range r.tables[len(r.tables)-1].Last {
				got = append(got, fmt.Sprintf("%s=%d", m.UDP.Addr(), m.Step))
			}
			if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		}
		steps("192.0.2.1=4 192.0.2.2=4")
		r.Put(slice("a", "10.0.0.3@n3/zb!", "10.0.0.4@n4/za!", "10.0.0.1@n1/za", "10.0.0.2@n2/za!"))
		r.Synced()
		steps("10.0.0.2=1 10.0.0.4=1 10.0.0.3=2 10.96.0.10=3 192.0.2.1=4 192.0.2.2=4")
		r.Put(slice("a", "10.0.0.3@n3/zb", "10.0.0.4@n4/za", "10.0.0.1@n1/za!", "10.0.0.2@n2/za!"))
		steps("10.0.0.1=0 10.0.0.2=1 10.96.0.10=3 192.0.2.1=4 192.0.2.2=4")
		r.Replace(nil)
		steps("10.0.0.1=0 10.0.0.4=1 10.0.0.2=1 10.0.0.3=2 10.96.0.10=3 192.0.2.1=4 192.0.2.2=4")
	})
}

func TestLocalServersStandFirst(t *testing.T) {
	cfg := topology.Config{Local: addrPorts("192.0.2.9:53"), Fallback: topology.Fallback{Service: addrPorts("10.96.0.10:53")}}
	run(t, cfg, func(r *rig) {
		r.after(time.Second, "192.0.2.9||10.96.0.10|")
		r.Put(slice("a", "10.0.0.1@n1/za", "10.0.0.2@n2/za"))
		r.Synced()
		r.after(time.Second, "192.0.2.9 10.0.0.1|10.0.0.2||10.96.0.10!")
		r.Put(slice("a", "10.0.0.1@n1/za~", "10.0.0.2@n2/za!"))
		r.after(time.Second, "192.0.2.9 10.0.0.1~|||10.0.0.2! 10.96.0.10!")
	})
}

func TestWhoTellsTheZone(t *testing.T) {
	run(t, topology.Config{Self: topology.Self{Node: "n1"}}, func(r *rig) {
		from := func(zone string, who topology.ZoneFrom) {
			t.Helper()
			if s := r.Status(); s.Self.Zone != zone || s.ZoneFrom != who {
				t.Errorf("zone %q from %s, want %q from %s", s.Self.Zone, s.ZoneFrom, zone, who)
			}
		}
		r.Put(slice("a", "10.0.0.2@n2/za", "10.0.0.3@n3/zb"))
		r.Synced()
		r.after(time.Second, "||10.0.0.2 10.0.0.3|")
		from("", topology.ZoneUnknown)
		r.NodeZone("za")
		r.after(time.Second, "|10.0.0.2|10.0.0.3|")
		from("za", topology.ZoneFromNode)
		r.Put(slice("b", "10.0.0.1@n1/zb")) // the endpoint's word counts more
		r.after(time.Second, "10.0.0.1|10.0.0.3|10.0.0.2|")
		from("zb", topology.ZoneFromEndpoint)
		r.NodeZone("zc") // and goes on to, while it is there
		r.after(time.Second)
		from("zb", topology.ZoneFromEndpoint)
		r.Delete("kube-system", "b")
		r.after(time.Second, "|10.0.0.3|10.0.0.2|")
		r.NodeZone("za") // it is gone, and the node has moved
		r.after(time.Second, "|10.0.0.2|10.0.0.3|")
		from("za", topology.ZoneFromNode)
		r.NodeZone("")
		r.after(time.Second, "||10.0.0.2 10.0.0.3|")
		r.Relocate(topology.Self{Node: "n1", Zone: "zb"})
		r.after(time.Second, "|10.0.0.3|10.0.0.2|")
		from("zb", topology.ZoneFromSettings)
	})
}

// Nonsense is counted, told once for each kind, and the rest is used.
func TestNonsenseIsToldOnce(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	cfg := topology.Config{
		Log:   zap.New(core),
		Rules: topology.Rules{Own: addrPorts("10.0.0.53:53"), ManagedBy: []string{"", "me"}},
	}
	run(t, cfg, func(r *rig) {
		for i := range 20 {
			name := string(rune('a' + i))
			odd := slice(name+"-odd", "10.0.0.1@n1/za", "127.0.0.1", "169.254.20.10", "10.0.0.53")
			odd.Endpoints = append(odd.Endpoints, topology.SliceEndpoint{})
			foreign := slice(name+"-foreign", "10.0.0.2")
			foreign.ManagedBy = "stranger"
			portless := slice(name+"-portless", "10.0.0.3")
			portless.Ports = []topology.Port{{Name: "dns", Protocol: "UDP"}}
			many := slice(name + "-many")
			for range 10_000 {
				many.Endpoints = append(many.Endpoints, topology.SliceEndpoint{Addresses: []string{"10.0.0.4"}})
			}
			for _, s := range []topology.Slice{odd, foreign, portless, many} {
				r.Put(s)
			}
		}
		r.Synced()
		r.after(time.Second, "10.0.0.1||10.0.0.4|")
		const want = "other-controller=20 no-port=20 no-address=20 bad-address=40 own-address=20 too-many=180000"
		status := r.Status()
		if got := status.Ignored.String(); got != want {
			t.Errorf("ignored %s, want %s", got, want)
		}
		if n := logs.Len(); n != 6 {
			t.Errorf("%d lines, want one for each of 6 kinds: %v", n, logs.All())
		}
	})
}
