package upstream_test

import (
	"net"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/upstream"
)

// TestProbeAddr has a server appear that has another address for the name of the
// probes: it is used only if no server has the address that is known.
func TestProbeAddr(t *testing.T) {
	const ours = "192.0.2.1" // of all that good servers give
	for name, tc := range map[string]struct {
		known string
		want  bool // it is used
	}{
		"none is known":          {"", true},
		"another is known":       {ours, false},
		"nobody gives the known": {"198.51.100.7", true},
	} {
		t.Run(name, func(t *testing.T) {
			var right atomic.Bool
			old, zone := serve(t, good(t)), serve(t, good(t))
			stranger := serve(t, func(r *request) {
				r.reply(t, dns.RcodeSuccess, func(m *dns.Msg) {
					if !right.Load() {
						m.Answer[0].(*dns.A).A = net.IPv4(192, 0, 2, 66)
					}
				})
			})
			known, _ := netip.ParseAddr(tc.known)
			g := group(t, upstream.Config{Probe: "probe.test", ProbeAddr: known}, upstream.Table{Tiers: [3][]upstream.Member{2: {old.member()}}})
			isUsed := func(i int) bool { return !g.Status().Targets[i].Out }
			g.Update(upstream.Table{Tiers: [3][]upstream.Member{1: {zone.member()}, 2: {old.member()}}})
			waitFor(t, "one that is ours is used", func() bool { return isUsed(0) })
			g.Update(tiered(stranger, zone, old))
			waitFor(t, "the other is probed", func() bool { return stranger.count() > 2 || isUsed(0) })
			if isUsed(0) != tc.want {
				t.Errorf("used: %v", isUsed(0))
			}
			right.Store(true)
			waitFor(t, "it is used once it gives what is known", func() bool { return isUsed(0) })
		})
	}
}

// TestProbeAddr6 has the probes ask for the kind of address that is known.
func TestProbeAddr6(t *testing.T) {
	known := netip.MustParseAddr("2001:db8::1")
	answer := func(r *request) {
		r.reply(t, dns.RcodeSuccess, func(m *dns.Msg) {
			if m.Question[0].Qtype != dns.TypeAAAA {
				t.Errorf("type %d", m.Question[0].Qtype)
			}
			m.Answer = []dns.RR{&dns.AAAA{
				Hdr:  dns.RR_Header{Name: m.Question[0].Name, Rrtype: dns.TypeAAAA, Class: dns.ClassINET, Ttl: 5},
				AAAA: known.AsSlice(),
			}}
		})
	}
	old, next := serve(t, answer), serve(t, answer)
	g := group(t, upstream.Config{Probe: "probe.test", ProbeAddr: known}, upstream.Table{Tiers: [3][]upstream.Member{1: {old.member()}}})
	g.Update(tiered(next, old))
	waitFor(t, "it is used", func() bool { return !g.Status().Targets[0].Out })
}
