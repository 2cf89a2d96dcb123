package upstream

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// plan is one setting of the faults with the state that belongs to it. A new
// setting is a new plan, so readers need no lock to see a whole one.
type plan struct {
	Faults
	count atomic.Uint64 // queries decided on
	desk  desk
}

// fate decides about one query: how its reply is spoilt, and when it is due. A
// due time of now means at once.
func (p *plan) fate(rng *rand.Rand, now time.Duration) (spoil, time.Duration) {
	what := p.draw(rng, p.count.Add(1))
	if what == drop {
		return drop, 0
	}
	due := now
	if p.Rate > 0 {
		done, ok := p.desk.serve(now, time.Duration(float64(time.Second)/p.Rate), p.Queue)
		if !ok {
			return drop, 0
		}
		due = done
	}
	return what, due + p.wait(rng)
}

// desk is a single server with a bounded queue, kept as the one time at which
// it will be free.
type desk struct {
	mu   sync.Mutex
	free time.Duration
}

// serve gives the time at which a query that came now is done, or false if the
// queue is full.
func (d *desk) serve(now, each time.Duration, queue int) (time.Duration, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	start := max(now, d.free)
	if start-now > time.Duration(queue)*each {
		return 0, false
	}
	d.free = start + each
	return d.free, true
}
