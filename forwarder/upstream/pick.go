package upstream

import "time"

// candidate is what the choice knows of one target.
type candidate struct {
	tier     uint8
	state    State
	suspect  bool
	answered bool          // gave a reply in this exchange that was not good enough
	tried    uint8         // attempts of this exchange at it
	failedAt time.Duration // its last failure, if suspect
	load     float64       // in flight and delay, comparable between targets
}

// wish is what the exchange wants of the choice.
type wish struct {
	policy Policy
	// past is the tier of the first attempt when the second is chosen: a
	// farther tier is preferred, because what hit the first target may have hit
	// its neighbours. -1 otherwise.
	past int
	// retry is set for every attempt but the first.
	retry bool
	// random are two random numbers in [0, 1).
	random [2]float64
}

// choose returns the index of the target to ask next, -1 when none is left. The
// least bad class of targets is found first, the policy chooses inside it.
func choose(cands []candidate, w wish) int {
	best, count := rank{cost: noCost}, 0
	healthy := anyHealthy(cands)
	for i := range cands {
		r := rankOf(&cands[i], w, healthy)
		switch {
		case r.less(best):
			best, count = r, 1
		case r == best:
			count++
		}
	}
	if best.cost == noCost {
		return -1
	}
	return chooseEqual(cands, w, healthy, best, count)
}

// chooseEqual applies the policy to the targets of rank r, of which there are
// count.
func chooseEqual(cands []candidate, w wish, healthy bool, r rank, count int) int {
	first := 0
	if w.policy != Sequential {
		first = int(w.random[0] * float64(count))
	}
	second := first
	if w.policy == P2C && count > 1 {
		second = (first + 1 + int(w.random[1]*float64(count-1))) % count
	}
	a, b := -1, -1
	for i, n := 0, 0; i < len(cands); i++ {
		if rankOf(&cands[i], w, healthy) != r {
			continue
		}
		if n == first {
			a = i
		}
		if n == second {
			b = i
		}
		n++
	}
	if cands[b].load < cands[a].load {
		return b
	}
	return a
}

// rank orders classes of targets; lower is better.
type rank struct {
	cost     uint8
	tried    uint8
	suspect  bool
	failedAt time.Duration
	tier     uint8
}

const noCost = 255

func (r rank) less(o rank) bool {
	switch {
	case r.cost != o.cost:
		return r.cost < o.cost
	case r.tried != o.tried:
		return r.tried < o.tried
	case r.suspect != o.suspect:
		return !r.suspect
	case r.failedAt != o.failedAt:
		return r.failedAt < o.failedAt
	}
	return r.tier < o.tier
}

// rankOf weighs a target's faults: each attempt already made at it, being
// suspect and being about to go cost the same, so that a query is never put
// twice to one target while another might answer, nor three times in vain to a
// suspect while a healthy one has only lost a packet.
func rankOf(c *candidate, w wish, healthy bool) rank {
	last := c.tier == LastTier
	if c.answered || last && healthy {
		return rank{cost: noCost}
	}
	r := rank{cost: c.tried, tried: c.tried, tier: c.tier}
	if c.suspect {
		r.cost++
		r.suspect, r.failedAt = true, c.failedAt
	}
	switch {
	case !last:
		r.cost += uint8(c.state)
	case w.retry:
		r.cost++
	default:
		r.cost += 2 // one of the suspects may be well again: it goes first
	}
	if w.past >= 0 && int(c.tier) <= w.past {
		r.tier += tierCount
	}
	return r
}

// anyHealthy reports whether a target that is not of the last resort is
// healthy.
func anyHealthy(cands []candidate) bool {
	for i := range cands {
		if cands[i].tier != LastTier && !cands[i].suspect {
			return true
		}
	}
	return false
}
