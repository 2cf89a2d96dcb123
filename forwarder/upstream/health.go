package upstream

import "time"

const (
	missesToEject = 3
	// silenceToEject is for how long nothing must have come from the time that
	// the first of them was asked: a process that does not get a processor for a
	// moment leaves many queries at once without an answer. Until then the target
	// is only suspected, and any reply makes up for all.
	silenceToEject = 150 * time.Millisecond

	goodToReturn = 2 // probes, one when the target was never in use or nothing else is

	ejectFirst  = time.Second      // doubled after each ejection in which probes failed,
	ejectMost   = 30 * time.Second // up to this,
	calmAfter   = 30 * time.Second // and halved again after each such good time
	ejectJitter = 0.2              // spreads what many nodes do: within a fifth

	// A target that comes back takes its share of the load step by step: its
	// cache is cold, and many nodes come back together.
	rampFor   = 5 * time.Second
	rampStart = 0.1
)

// health is what silences, errors and replies say of a target; the zero value
// is healthy. It is a small value: its methods return the next one. A target
// that is out gets no new queries while another may answer; probes bring it
// back. There is no state that good replies do not end.
type health struct {
	misses   uint8         // silences in a row
	silentAt time.Duration // when the first of them was asked
	doubtAt  time.Duration // when they became enough for a suspicion
	level    uint8         // ejections that are remembered
	good     uint8         // good replies in a row while out
	out      bool          // ejected, or fresh
	fresh    bool          // out because it was never seen to work
	proved   bool          // out for good reason: what was asked since failed, too
	ramps    bool          // came back to take its share step by step
	failedAt time.Duration // the last failure
	outAt    time.Duration // when it went out
	until    time.Duration // an ejection ends no earlier
	backAt   time.Duration // when it came back last
}

// missed is the state after a silence about what was asked at the given time.
// jitter is in [0, 1). What was asked before the suspicion may all be of one
// moment or of one kind; something asked since has to stay unanswered, too.
func (h health) missed(asked, now time.Duration, jitter float64) health {
	h.failedAt, h.good = now, 0
	if h.misses == 0 {
		h.silentAt = asked
	}
	if h.misses == missesToEject-1 {
		h.doubtAt = now
	}
	h.misses = min(h.misses+1, missesToEject)
	switch {
	case h.out:
		return h.proof(asked)
	case !h.suspected(), asked < h.doubtAt, now-h.silentAt < silenceToEject:
		return h
	}
	return h.eject(now, jitter)
}

// failed is the state after a hard error: refused, unreachable, reset.
func (h health) failed(asked, now time.Duration, jitter float64) health {
	h.failedAt, h.good = now, 0
	if h.out {
		return h.proof(asked)
	}
	return h.eject(now, jitter)
}

// proof has the next ejection take longer, once, if what failed was asked while
// the target was out. One that was out for a mere pause answers all probes, and
// is not to be kept away for longer and longer.
func (h health) proof(asked time.Duration) health {
	if !h.fresh && !h.proved && asked >= h.outAt {
		h.proved, h.level = true, min(h.level+1, 10)
	}
	return h
}

func (h health) eject(now time.Duration, jitter float64) health {
	level := h.levelAt(now)
	wait := min(ejectFirst<<level, ejectMost)
	factor := 1 + ejectJitter*(2*jitter-1)
	return health{
		misses: h.misses, silentAt: h.silentAt, doubtAt: h.doubtAt, level: level, out: true, failedAt: now,
		outAt: now, until: now + time.Duration(float64(wait)*factor), backAt: h.backAt,
	}
}

// levelAt is how many ejections are still remembered: one is forgotten for each
// good time since the last.
func (h health) levelAt(now time.Duration) uint8 {
	forgotten := int64((now - h.backAt) / calmAfter)
	return h.level - uint8(min(int64(h.level), max(forgotten, 0)))
}

// replied is the state after a reply. good says that the reply proves the
// target fit for use, and not only alive; lone that every target is out, so
// that there is nothing to be careful for.
func (h health) replied(now time.Duration, good, lone bool) health {
	h.misses = 0
	if !h.out || !good {
		return h
	}
	h.good = min(h.good+1, goodToReturn)
	enough := h.fresh || h.good == goodToReturn && now >= h.until
	if !enough && !lone {
		return h
	}
	return health{
		level: h.level, failedAt: h.failedAt, outAt: h.outAt, backAt: now,
		ramps: !lone,
	}
}

// readied is the state when the table says that the target became ready: what
// it was before says little now. One good reply is enough.
func (h health) readied(now time.Duration) health {
	return health{
		level: h.level, out: true, fresh: true,
		failedAt: h.failedAt, outAt: now, until: now, backAt: h.backAt,
	}
}

// ejected reports whether the target is out because it failed.
func (h health) ejected() bool { return h.out && !h.fresh }

// suspected reports whether the target was silent so often in a row that others
// are asked in its place, as long as there are any. It costs the target nothing:
// it is probed at once, and a reply, however late, ends it.
func (h health) suspected() bool { return !h.out && h.misses == missesToEject }

// share is which part of its load the target takes, 0 to 1.
func (h health) share(now time.Duration) float64 {
	switch since := now - h.backAt; {
	case h.out:
		return 0
	case h.ramps && since < rampFor:
		return rampStart + (1-rampStart)*float64(since)/float64(rampFor)
	}
	return 1
}
