package upstream

import (
	"sync/atomic"
	"time"
)

// A hedge is a copy of a query, put to another target before the retry time of
// the first. It takes the tail off the latency, and adds load. So hedges have a
// budget, and rest while failures are widespread: then they would help nobody
// and harm those that still work.
const (
	hedgeEarn  = 1       // what each exchange adds to the budget
	hedgeCost  = 20      // what a hedge takes: one for 20 exchanges
	hedgeSaved = 20 * 20 // the most that is saved up: a burst of 20
	hedgeRests = 0.3     // the part of failed first attempts above which hedges rest

	// A cluster's names are answered from memory, so that a multiple of the time
	// it takes says that something is wrong. Before there are samples a fixed
	// time has to do.
	hedgeFactor  = 4
	hedgeMin     = 10 * time.Millisecond
	hedgeMax     = 100 * time.Millisecond
	hedgeUnknown = 25 * time.Millisecond
	hedgeSamples = 20
	// Other names take long on purpose: only the slowest get a copy.
	hedgeSlowMin = 250 * time.Millisecond
	hedgeSlowMax = 500 * time.Millisecond
)

// hedgeFast is how long a name that servers know by heart is waited for.
func hedgeFast(peak time.Duration, samples uint32) time.Duration {
	if samples < hedgeSamples {
		return hedgeUnknown
	}
	return min(max(hedgeFactor*peak, hedgeMin), hedgeMax)
}

// hedgeSlow is how long another name is waited for: about the time in which 95
// of 100 are answered.
func hedgeSlow(e estimate) time.Duration {
	return min(max(e.srtt+2*e.dev, hedgeSlowMin), hedgeSlowMax)
}

// hedges is the budget of a group.
type hedges struct {
	saved atomic.Int32
	// failing is the part of first attempts that failed of late, as a moving
	// mean in units of 1/failingOne.
	failing atomic.Int32
}

const (
	failingOne    = 1 << 16
	failingWeight = 32 // attempts that the mean looks back on
)

// failingWith is the moving mean after one more first attempt.
func failingWith(mean int32, failed bool) int32 {
	target := int32(0)
	if failed {
		target = failingOne
	}
	return mean + (target-mean)/failingWeight
}

// earn adds what an exchange earns.
func (h *hedges) earn() {
	if h.saved.Load() < hedgeSaved {
		h.saved.Add(hedgeEarn)
	}
}

// take reports whether a hedge may go out, and pays for it.
func (h *hedges) take() bool {
	if float64(h.failing.Load()) > hedgeRests*failingOne {
		return false
	}
	if h.saved.Add(-hedgeCost) >= 0 {
		return true
	}
	h.saved.Add(hedgeCost)
	return false
}

// first notes how a first attempt ended.
func (h *hedges) first(failed bool) {
	for {
		old := h.failing.Load()
		next := failingWith(old, failed)
		if next == old || h.failing.CompareAndSwap(old, next) {
			return
		}
	}
}
