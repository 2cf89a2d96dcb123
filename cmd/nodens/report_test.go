package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/deploy/guard"
	"github.com/nodens-dns/nodens/forwarder/upstream"
	"github.com/nodens-dns/nodens/topology"
	"github.com/nodens-dns/nodens/topology/kube"
)

// following is a route whose endpoints the API server tells.
func following(change func(*routeSnapshot)) routeSnapshot {
	target := upstream.TargetStatus{Addr: addrPorts("192.0.2.53:53")[0], Pod: "kube-system/a", Tier: upstream.NodeTier, Share: 1}
	r := routeSnapshot{
		Config:   RouteConfig{Zones: []string{"cluster.local."}},
		Servers:  upstream.Status{Targets: []upstream.TargetStatus{target}},
		Topology: &topology.Status{Synced: true, ZoneFrom: topology.ZoneFromSettings},
		API:      &kube.Status{}, Kept: &topology.KeeperStats{},
	}
	change(&r)
	return r
}

func TestNotesOfARoute(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*routeSnapshot)
		want   []string
	}{
		"all is well": {func(*routeSnapshot) {}, nil},
		"more endpoints than are used": {func(r *routeSnapshot) {
			r.Topology.Table.Tiers[upstream.ZoneTier] = make([]topology.Member, 3335)
			r.Topology.Table.Tiers[upstream.ClusterTier] = make([]topology.Member, 1)
			for tier, n := range map[int]int{upstream.ZoneTier: 8, upstream.ClusterTier: 1} {
				for range n {
					r.Servers.Targets = append(r.Servers.Targets, upstream.TargetStatus{Tier: tier})
				}
			}
		}, []string{"8 of 3\u202f335 endpoints in the zone are used and shown."}},
		"slices with nonsense, and others'": {func(r *routeSnapshot) {
			r.Topology.Endpoints = make([]topology.Placement, 1)
			r.Topology.Ignored = topology.Ignored{topology.OtherController: 1, topology.NoPort: 2, topology.OtherService: 7, topology.Placeholder: 1}
		}, []string{"The slices hold what is ignored, by kind: other-controller=1 no-port=2."}},
		"managedBy allows none": {func(r *routeSnapshot) {
			r.Topology.Ignored = topology.Ignored{topology.OtherController: 3}
		}, []string{
			"The slices hold what is ignored, by kind: other-controller=3.",
			"No slice is left that managedBy allows and that has an endpoint: correct the list, or look at who writes the slices.",
		}},
		"nothing known, nothing kept": {func(r *routeSnapshot) {
			r.Topology.Synced, r.Topology.Fallback = false, true
		}, []string{"No endpoint has ever been known: the ClusterIP or the fallback is asked, whatever is near."}},
		"what was kept does not prove itself": {func(r *routeSnapshot) {
			r.Topology.Synced, r.Topology.Fallback = false, true
			r.Kept = &topology.KeeperStats{Found: true, SavedAt: time.Unix(1700000000, 0), Unverified: 3}
		}, []string{
			"No endpoint is in force: the ClusterIP or the fallback is asked, whatever is near.",
			"Endpoints were kept on disk at 2023-11-14 22:13:20, but of the 3 that were asked none proved that it is a DNS server of this cluster: they are not used.",
		}},
	} {
		r := following(test.change)
		if diff := cmp.Diff(test.want, r.notes()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Every server of a route with a topology says why it is where it is.
func TestWhyOfAServer(t *testing.T) {
	plain := func(tier int, state upstream.State) func(*upstream.TargetStatus) {
		return func(s *upstream.TargetStatus) { s.Pod, s.Tier, s.State = "192.0.2.53", tier, state }
	}
	fresh := func(state upstream.State) func(*upstream.TargetStatus) {
		return func(s *upstream.TargetStatus) { s.State, s.Out, s.Fresh = state, true, true }
	}
	leaving := func(s *upstream.TargetStatus) { s.Leaving = 0.2 }
	known := func(reason string) func(*routeSnapshot) {
		return func(r *routeSnapshot) {
			r.Topology.Endpoints = []topology.Placement{{
				Endpoint: topology.Endpoint{Addr: addrPorts("192.0.2.53:53")[0].Addr(), UDPPort: 53}, Reason: reason,
			}}
		}
	}
	service := func(r *routeSnapshot) { r.Config.Topology.ClusterIP = addrPorts("192.0.2.53:53") }
	for name, test := range map[string]struct {
		route  func(*routeSnapshot)
		server []func(*upstream.TargetStatus)
		want   string
	}{
		"became ready":   {known("on this node"), []func(*upstream.TargetStatus){fresh(upstream.Ready)}, "on this node; just became ready, used once a probe succeeds"},
		"silent of late": {known("on this node"), []func(*upstream.TargetStatus){func(s *upstream.TargetStatus) { s.Suspect, s.Misses = true, 3 }}, "on this node; silent 3 times in a row, others are asked until it replies or is ejected"},
		"misfit": {known("on this node"), []func(*upstream.TargetStatus){func(s *upstream.TargetStatus) {
			s.Out, s.Misses, s.Misfit, s.OutUntil = true, 1, "x509: unknown", time.Second
		}}, "on this node; its certificate does not fit (x509: unknown), used again when probes succeed, in 1s at the earliest"},
		"never was ready": {known("not ready"), []func(*upstream.TargetStatus){fresh(upstream.NotReady)}, "not ready"},
		"lost queries": {
			func(r *routeSnapshot) {
				known("on this node")(r)
				r.Servers.Targets = append(r.Servers.Targets, upstream.TargetStatus{Tier: upstream.ZoneTier})
			}, []func(*upstream.TargetStatus){leaving}, "on this node; lost queries of late, 20 % of what it would get goes on to the next tier",
		},
		"lost queries, next tier out": {
			func(r *routeSnapshot) {
				known("on this node")(r)
				r.Servers.Targets = append(r.Servers.Targets, upstream.TargetStatus{Tier: upstream.ZoneTier, Out: true}, upstream.TargetStatus{Tier: upstream.LastTier})
			}, []func(*upstream.TargetStatus){leaving}, "on this node; lost queries of late; there is no next tier to take some",
		},
		"empty world": {
			func(r *routeSnapshot) { r.Topology.Empty = true }, nil,
			"no slice names it any more; kept because none names another",
		},
		"ClusterIP": {
			service,
			[]func(*upstream.TargetStatus){plain(upstream.ClusterTier, upstream.Ready)},
			"the ClusterIP, asked while no endpoint is known or none answers",
		},
		"ClusterIP, not probed": {
			service,
			[]func(*upstream.TargetStatus){plain(upstream.ClusterTier, upstream.Ready), fresh(upstream.Ready)},
			"the ClusterIP, asked while no endpoint is known or none answers; used once a probe succeeds",
		},
		"fallback": {
			func(r *routeSnapshot) { r.Config.Topology.Fallback = addrPorts("192.0.2.53:53") },
			[]func(*upstream.TargetStatus){plain(upstream.LastTier, upstream.NotReady), fresh(upstream.NotReady)},
			"the fallback, asked when nothing else answers",
		},
		"of this node": {
			func(r *routeSnapshot) { r.Config.Topology.Local = addrPorts("192.0.2.53:53") }, nil,
			"a server of this node, named in the settings",
		},
	} {
		r := following(test.route)
		for _, change := range test.server {
			change(&r.Servers.Targets[0])
		}
		if got := r.serverReport(&r.Servers.Targets[0], 0).Why; got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	r := following(func(r *routeSnapshot) { r.Topology = nil })
	if got := r.serverReport(&r.Servers.Targets[0], 0).Why; got != "" {
		t.Errorf("a server without distance: %q", got)
	}
}

// The guard's probes are nobody's queries: a node without clients shows none.
func TestProbesAreNoQueries(t *testing.T) {
	up := newScripted(t, 7, 0)
	h := serve(t, fmt.Sprintf("listen: [127.0.0.1:0]\nroutes: [{zones: [.], servers: [%q]}]\n", up.address))
	probe := new(dns.Msg).SetQuestion(guard.ProbeName, dns.TypeTXT)
	probe.Question[0].Qclass = dns.ClassCHAOS
	for _, proto := range []string{"udp", "tcp", "udp"} {
		client := &dns.Client{Net: proto, Timeout: patience}
		if reply, _, err := client.Exchange(probe, h.address(0).String()); err != nil || len(reply.Answer) != 1 {
			t.Fatalf("a probe over %s: %v, %v", proto, reply, err)
		}
	}
	shows := func(udp, tcp uint64) {
		t.Helper()
		if got := h.report().Listens[0]; got.UDP != udp || got.TCP != tcp {
			t.Errorf("%d queries over UDP and %d over TCP, want %d and %d", got.UDP, got.TCP, udp, tcp)
		}
	}
	shows(0, 0)
	for _, proto := range []string{"udp", "tcp", "udp"} {
		ask(t, proto, h.address(0), "a.example.", 0)
	}
	shows(2, 1)
}
