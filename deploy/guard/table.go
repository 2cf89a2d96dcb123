package guard

import (
	"net/netip"
	"slices"

	"github.com/nodens-dns/nodens/deploy/hostnet"
)

func (t *Table) empty() bool {
	for _, tier := range t.Tiers {
		if len(tier) > 0 {
			return false
		}
	}
	return true
}

func (t *Table) udp() [][]netip.AddrPort {
	return t.each(func(s Server) netip.AddrPort { return s.UDP })
}

func (t *Table) tcp() [][]netip.AddrPort {
	return t.each(func(s Server) netip.AddrPort { return s.TCP })
}

// each picks an address of every server that has it.
func (t *Table) each(pick func(Server) netip.AddrPort) [][]netip.AddrPort {
	tiers := make([][]netip.AddrPort, len(t.Tiers))
	for i, tier := range t.Tiers {
		for _, s := range tier {
			if a := pick(s); a.IsValid() {
				tiers[i] = append(tiers[i], a)
			}
		}
	}
	return tiers
}

// fallback is what a table comes to for a host, beside the servers that are refused.
func (t *Table) fallback(s *hostnet.State) (f hostnet.Fallback, refused []netip.AddrPort) {
	own := slices.Concat(s.Own, s.Service)
	udp, refusedUDP := hostnet.Nearest(own, t.udp()...)
	tcp, refusedTCP := hostnet.Nearest(own, t.tcp()...)
	return hostnet.Fallback{UDP: udp, TCP: tcp}, slices.Concat(refusedUDP, refusedTCP)
}

// KeptFallback is the fallback that the guard of a host has by its file of endpoints,
// beside the servers of the file to which packets may not be sent. An error says what is
// wrong with the file; that there is none is no error.
func KeptFallback(path string, s hostnet.State) (f hostnet.Fallback, refused []netip.AddrPort, err error) {
	kept, err := readStored(path)
	f, refused = kept.Table.fallback(&s)
	return f, refused, err
}
