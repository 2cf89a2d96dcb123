package access

import (
	"cmp"
	"net/netip"
	"slices"
)

// rule is what holds for the addresses of a prefix.
type rule struct {
	prefix netip.Prefix
	allow  bool
}

// rules are sorted, the longest prefix first.
type rules []rule

func newRules(allow, deny []netip.Prefix) rules {
	var r rules
	for _, p := range allow {
		r = append(r, rule{p.Masked(), true})
	}
	for _, p := range deny {
		r = append(r, rule{p.Masked(), false})
	}
	slices.SortStableFunc(r, func(a, b rule) int { return cmp.Compare(b.prefix.Bits(), a.prefix.Bits()) })
	return r
}

// find returns the rule of the longest prefix that addr lies in.
func (r rules) find(addr netip.Addr) (allow, found bool) {
	for i := range r {
		if r[i].prefix.Contains(addr) {
			return r[i].allow, true
		}
	}
	return false, false
}
