package upstream

import (
	"net/netip"
	"slices"
)

// Order tells who a question would go to if it were put now: for each attempt
// the servers that it may go to, of which Policy picks one. That more than one
// attempt is made takes silence or failure; that a nearer tier has too much to
// do is left aside.
func (g *Group) Order() [][]netip.AddrPort {
	now, class := g.cfg.Now(), slow
	if !g.cfg.External {
		class = fast
	}
	targets := g.snapshot.Load().targets
	cands := make([]candidate, len(targets))
	for i, t := range targets {
		cands[i] = t.candidate(&g.cfg, now, class)
	}
	if !g.cfg.External && !allOut(cands) {
		panicked(cands)
	}
	var order [][]netip.AddrPort
	for _, picked := range attempts(cands, g.cfg.Policy, g.cfg.Attempts) {
		var addrs []netip.AddrPort
		for _, i := range picked {
			addrs = append(addrs, targets[i].addr)
		}
		order = append(order, addrs)
	}
	return order
}

// attempts are the candidates that each of n attempts may go to.
func attempts(cands []candidate, policy Policy, n int) (order [][]int) {
	for past := -1; len(order) < n; {
		picked := equals(cands, wish{policy: policy, past: past, retry: len(order) > 0})
		if len(picked) == 0 {
			break
		}
		first := &cands[picked[0]]
		first.tried++
		if past = -1; len(order) == 0 {
			past = int(first.place())
		}
		// Which of several was asked is not known: any of them may be the next.
		if last := len(order) - 1; last >= 0 && slices.Contains(order[last], picked[0]) && len(picked) < len(order[last]) {
			picked = order[last]
		}
		order = append(order, picked)
	}
	return order
}

// equals are the candidates that the policy may choose.
func equals(cands []candidate, w wish) (picked []int) {
	best, farthest := rank{cost: noCost}, reach(cands)
	for i := range cands {
		if r := rankOf(&cands[i], w, farthest); r.less(best) {
			best = r
		}
	}
	if best.cost == noCost {
		return nil
	}
	switch w.policy {
	case Fastest:
		return []int{leastLoad(cands, w, farthest, best)}
	case Sequential:
		return []int{chooseEqual(cands, w, farthest, best, 1)}
	}
	for i := range cands {
		if rankOf(&cands[i], w, farthest) == best {
			picked = append(picked, i)
		}
	}
	return picked
}
