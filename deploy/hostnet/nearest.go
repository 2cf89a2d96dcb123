package hostnet

import (
	"net/netip"
	"slices"
)

// Nearest makes the list of one protocol of a Fallback: per family the first tier
// with a usable target, nearest tier first, at most MaxTargets of it. Refused lists
// what was left out because packets may not be sent there: no unicast address, no
// port, loopback, link-local, or one of own.
func Nearest(own []netip.Addr, tiers ...[]netip.AddrPort) (use, refused []netip.AddrPort) {
	own = sorted(own)
	for _, f := range families() {
		found := false
		for _, tier := range tiers {
			good, bad := usable(f, own, unmapped(tier))
			refused = append(refused, bad...)
			if !found && len(good) > 0 {
				use, found = append(use, good...), true
			}
		}
	}
	return use, refused
}

// usable splits the targets of one family of a tier.
func usable(f family, own []netip.Addr, tier []netip.AddrPort) (good, bad []netip.AddrPort) {
	for _, t := range tier {
		switch {
		case !f.holds(t.Addr()):
		case unfitTarget(t, own) != "":
			bad = append(bad, t)
		case len(good) < MaxTargets && !slices.Contains(good, t):
			good = append(good, t)
		}
	}
	return good, bad
}
