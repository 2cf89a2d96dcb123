package upstream

import (
	"net/netip"
	"sync/atomic"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

// proofs are what probes have brought to light of their name. What no server ever
// said is not demanded of any: then it is ours that is wrong.
type proofs struct {
	named     atomic.Bool // some server has the name
	addressed atomic.Bool // and, with Config.ProbeAddr, this address for it
}

// probed reports whether the reply to a probe shows a server in order. In a
// cluster it must have the name, which a server has only once it knows the
// cluster, and the address that the API gives it: one with another serves another
// cluster, at an address that was an endpoint's of this one. A server that refuses
// the name has another zone. One that only starts fails instead.
func (g *Group) probed(r *wire.Reply) bool {
	p, want := &g.proofs, g.cfg.ProbeAddr
	switch {
	case g.cfg.External:
		return true
	case r.RCode != wire.NoError || r.Count(wire.Answer) == 0:
		return !p.named.Load() && (isAnswer(r.RCode) || r.RCode == wire.Refused)
	}
	p.named.Store(true)
	if !want.IsValid() {
		return true
	}
	if gives(r, want) {
		p.addressed.Store(true)
	}
	return !p.addressed.Load() || gives(r, want)
}

// gives reports whether an address is among a reply's answers.
func gives(r *wire.Reply, addr netip.Addr) bool {
	kind := addrType(addr)
	var rr wire.Record
	for c := r.Records(); c.Next(&rr) && rr.Section == wire.Answer; {
		got, _ := netip.AddrFromSlice(r.Msg[rr.Data:rr.End])
		if rr.Type == kind && got == addr {
			return true
		}
	}
	return false
}

// addrType is the type of the record that holds an address.
func addrType(addr netip.Addr) wire.Type {
	if addr.Is6() {
		return wire.TypeAAAA
	}
	return wire.TypeA
}
