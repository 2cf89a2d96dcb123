package guard

import "net/netip"

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
