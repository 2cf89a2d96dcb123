package upstream

import "time"

// candidate is what the choice knows of one target.
type candidate struct {
	tier     uint8
	step     Step // of the last resort; 0 in a tier
	state    State
	out      bool          // ejected, or not yet seen to work
	fresh    bool          // out, and not for a failure
	suspect  bool          // silent of late, which is not enough to be out
	avoided  bool          // ejected or suspected, whatever the choice makes of it
	resting  bool          // not its turn while it takes its share step by step
	answered bool          // not to be asked: its reply was not good enough, or it leads back to us
	tried    uint8         // attempts of this exchange at it
	inFlight int32         // of fast names
	bears    int32         // in flight, from which others go on to the next tier
	leaving  float64       // the part of its queries that goes on to the next tier
	lossRate float64       // the part of attempts that it lost of late
	failedAt time.Duration // its last failure, if it is out
	load     float64       // in flight and delay, comparable between targets
}

// wish is what the exchange wants of the choice.
type wish struct {
	policy Policy
	// past is the place of the first attempt when the second is chosen: a
	// farther one is preferred, because what hit the first target may have hit
	// its neighbours. -1 otherwise.
	past int
	// retry is set for every attempt but the first.
	retry bool
	// spill is set for names whose queries go on to the next tier from a target
	// that has too much to do.
	spill bool
	// random are random numbers in [0, 1).
	random [3]float64
}

// place is how far a target stands: its tier, or its step beyond the tiers.
func (c *candidate) place() uint8 { return c.tier + uint8(c.step) }

// choose returns the index of the target to ask next, -1 when none is left. The
// least bad class of targets is found first, the policy chooses inside it.
// spilled says that a nearer one has too much to do.
func choose(cands []candidate, w wish) (index int, spilled bool) {
	i := chooseBeyond(cands, w, -1)
	if i < 0 || !w.spill || w.retry {
		return i, false
	}
	for {
		next := spillTo(cands, w, i)
		if next < 0 {
			return i, spilled
		}
		i, spilled = next, true
	}
}

// spillTo is the target in a farther tier that takes a query in place of one
// that has too much to do, -1 when it stays.
func spillTo(cands []candidate, w wish, i int) int {
	here := &cands[i]
	limit := here.bears
	if here.tier >= ClusterTier || here.leaving == 0 && here.inFlight < limit {
		return -1
	}
	if here.tier == ZoneTier {
		limit *= spillZone
	}
	next := chooseBeyond(cands, w, int(here.tier))
	switch {
	case next < 0 || !cands[next].fit():
		return -1
	case w.random[2] < here.leaving && here.lossRate > lossBetter*cands[next].lossRate:
		return next
	case spills(here.inFlight, cands[next].inFlight, limit):
		return next
	}
	return -1
}

// fit reports whether nothing speaks against a target.
func (c *candidate) fit() bool {
	return c.state == Ready && !c.out && !c.suspect && !c.resting && c.tier != LastTier
}

// chooseBeyond chooses among the tiers farther than one.
func chooseBeyond(cands []candidate, w wish, beyond int) int {
	best, count := rank{cost: noCost}, 0
	farthest := reach(cands)
	for i := range cands {
		if int(cands[i].tier) <= beyond {
			continue
		}
		r := rankOf(&cands[i], w, farthest)
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
	if w.policy == Fastest {
		return leastLoad(cands, w, farthest, best)
	}
	return chooseEqual(cands, w, farthest, best, count)
}

// leastLoad is the least loaded of the targets of rank r.
func leastLoad(cands []candidate, w wish, farthest uint8, r rank) int {
	best := -1
	for i := range cands {
		if rankOf(&cands[i], w, farthest) == r && (best < 0 || cands[i].load < cands[best].load) {
			best = i
		}
	}
	return best
}

// chooseEqual applies the policy to the targets of rank r, of which there are
// count.
func chooseEqual(cands []candidate, w wish, farthest uint8, r rank, count int) int {
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
		if rankOf(&cands[i], w, farthest) != r {
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
	out      bool
	failedAt time.Duration
	place    uint8
}

const noCost = 255

const (
	fallbackPlace = LastTier + uint8(FallbackStep) // the farthest of all
	placeCount    = fallbackPlace + 1
	// triesBeforeFallback is how often one query is put to a target of the last
	// resort before a fallback gets it: two silences are more than a lost packet.
	triesBeforeFallback = 2
)

func (r rank) less(o rank) bool {
	switch {
	case r.cost != o.cost:
		return r.cost < o.cost
	case r.tried != o.tried:
		return r.tried < o.tried
	case r.out != o.out:
		return !r.out
	case r.failedAt != o.failedAt:
		return r.failedAt < o.failedAt
	}
	return r.place < o.place
}

// rankOf weighs a target's faults: each attempt already made at it, being out
// and being about to go cost the same, so that a query is never put twice to one
// target while another might answer, nor three times in vain to one that is out
// while a healthy one has only lost a packet.
func rankOf(c *candidate, w wish, farthest uint8) rank {
	last := c.tier == LastTier
	if c.answered || c.place() > farthest {
		return rank{cost: noCost}
	}
	r := rank{cost: c.tried, tried: c.tried, place: c.place()}
	switch {
	case c.out:
		r.cost++
		r.out, r.failedAt = true, c.failedAt
	case c.suspect: // before all that are out, and all alike
		r.cost++
		r.out = true
	case c.resting && !w.retry:
		r.cost++
	}
	switch {
	case !last:
		r.cost += uint8(c.state)
	case w.retry:
		r.cost++
	default:
		r.cost += 2 // one of those that are out may be well again: it goes first
	}
	if w.past >= 0 && int(c.place()) <= w.past {
		r.place += placeCount
	}
	return r
}

// reach is the farthest place that may be asked: while a target of the tiers is
// healthy, none of the last resort, and while one of the last resort may answer,
// no fallback, which may deny names that the others have.
func reach(cands []candidate) uint8 {
	farthest := fallbackPlace
	for i := range cands {
		switch c := &cands[i]; {
		case c.out:
		case c.tier != LastTier:
			return ClusterTier
		case c.step < FallbackStep && !c.answered && c.tried < triesBeforeFallback:
			farthest = fallbackPlace - 1
		}
	}
	return farthest
}

// allOut reports whether every target is out.
func allOut(cands []candidate) bool {
	for i := range cands {
		if !cands[i].out {
			return false
		}
	}
	return true
}

// panicked takes back the ejections and suspicions in the zone and in the cluster
// if fewer than half of the targets there are left: these few would be the next to fall. In
// the node tier one that is silent helps nobody, and when all are out there is
// nothing to protect.
func panicked(cands []candidate) bool {
	far := func(c *candidate) bool {
		return (c.tier == ZoneTier || c.tier == ClusterTier) && c.state == Ready
	}
	left, ejected := 0, 0
	for i := range cands {
		switch c := &cands[i]; {
		case !far(c):
		case !c.out && !c.suspect:
			left++
		case !c.fresh:
			ejected++
		}
	}
	if left == 0 || left >= ejected {
		return false
	}
	for i := range cands {
		if c := &cands[i]; far(c) && !c.fresh {
			c.out, c.suspect = false, false
		}
	}
	return true
}
