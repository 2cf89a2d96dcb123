package upstream

import (
	"math"
	"sync/atomic"
	"time"
)

// Spilling sends a query past a near target that has too much to do, to the
// next tier. In-flight queries show overload first; latency shows what is
// asked as much as who answers. See the package's doc for the parameters.
const (
	spillFactor = 2 // in flight here, for each one there
	spillZone   = 2 // a zone bears more than a node: it has more servers

	// The backstop acts on losses, when what overloads the target is not ours:
	// a part of the queries goes on to the next tier.
	lossWindow = time.Second
	lossBorne  = 0.02
	lossLeast  = 20 // attempts in a window that say something
	lossBetter = 2  // the next must lose so many times less, or all is the same there
	shareFirst = 0.1
	shareMost  = 0.5
)

// spills reports whether a query leaves a target with here in flight for one of
// the next tier with there in flight.
func spills(here, there, limit int32) bool {
	return here >= limit && here > spillFactor*(there+1)
}

// nextShare is the part that leaves a target after a window in which lost of
// asked attempts were lost.
func nextShare(share float64, asked, lost uint32) float64 {
	switch {
	case asked >= lossLeast && float64(lost) > lossBorne*float64(asked):
		return min(max(2*share, shareFirst), shareMost)
	case share < shareFirst/4:
		return 0
	}
	return share / 2
}

// nextRate is the part of attempts that are lost, after a window. Of few attempts
// it is a moving mean.
func nextRate(rate float64, asked, lost uint32) float64 {
	if asked == 0 {
		return rate / 2
	}
	weight := min(float64(asked)/lossLeast, 1)
	return rate + (float64(lost)/float64(asked)-rate)*weight
}

// idleShare and idleRate are what is left of both after windows without attempts.
func idleShare(share float64, windows time.Duration) float64 {
	for ; windows > 0 && share > 0; windows-- {
		share = nextShare(share, 0, 0)
	}
	return share
}

func idleRate(rate float64, windows time.Duration) float64 {
	return math.Ldexp(rate, -int(min(windows, 64)))
}

// losses counts attempts and losses of a target in windows.
type losses struct {
	windowAt    atomic.Int64 // when the window began
	notedAt     atomic.Int64 // when an attempt was counted last
	asked, lost atomic.Uint32
	share, rate atomic.Uint32 // that leaves, and of losses in the last window; in thousandths
}

func (l *losses) note(lost bool, now time.Duration) {
	l.notedAt.Store(int64(now))
	l.asked.Add(1)
	if lost {
		l.lost.Add(1)
	}
}

// roll ends the window if its time is over, and returns the part of queries that
// leaves and the part of attempts that was lost. What was counted is taken for that
// of one window; those before and after it, as long as nobody looked, were idle.
func (l *losses) roll(now time.Duration) (share, rate float64) {
	const one = 1000
	share, rate = float64(l.share.Load())/one, float64(l.rate.Load())/one
	at := l.windowAt.Load()
	if now-time.Duration(at) < lossWindow || !l.windowAt.CompareAndSwap(at, int64(now)) {
		return share, rate
	}
	asked, lost := l.asked.Swap(0), l.lost.Swap(0)
	idle := (now-time.Duration(at))/lossWindow - 1
	before := min(max(time.Duration(l.notedAt.Load()-at)/lossWindow-1, 0), idle)
	share = idleShare(nextShare(idleShare(share, before), asked, lost), idle-before)
	rate = idleRate(nextRate(idleRate(rate, before), asked, lost), idle-before)
	l.share.Store(uint32(share * one))
	l.rate.Store(uint32(rate * one))
	return share, rate
}
