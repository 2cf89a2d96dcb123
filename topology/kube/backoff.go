package kube

import (
	"context"
	"time"
)

// backoff is the wait between attempts: a fixed least plus a random part that
// may be as long as the window, which doubles with each failure in a row. All
// nodes see a server restart at the same moment; this spreads them.
type backoff struct {
	least, most time.Duration
	random      func() float64 // in [0, 1)
	failures    int
}

// next is how long to wait now, never more than limit, which stands in for most
// if it is larger.
func (b *backoff) next(limit time.Duration) time.Duration {
	limit = max(limit, b.most)
	window := b.least
	for range b.failures {
		if window *= 2; window >= limit {
			break
		}
	}
	b.failures++
	window = min(window, limit-b.least)
	return b.least + time.Duration(b.random()*float64(window))
}

// reset makes the next wait a short one again.
func (b *backoff) reset() { b.failures = 0 }

// pause waits, and reports false if ctx ended first.
func pause(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
