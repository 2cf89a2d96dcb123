package main

import (
	"context"
	"io/fs"
	"runtime/debug"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/nodens-dns/nodens/forwarder/cache"
)

// When the memory that a cgroup allows is nearly used up, by whomever, the cache gives
// up an eighth with each look, down to one eighth: a smaller cache is better than being
// killed. It gets an eighth back when there was enough room for a while. The garbage
// collector alone does not do it: its limit is about what is garbage.
const (
	reliefEvery = time.Second
	tight       = 0.93 // of what is allowed; the collector keeps the process below 0.9
	roomy       = 0.8
	roomyLooks  = 10 // in a row
	cacheParts  = 8
)

// relief decides how much of the cache is in use.
type relief struct {
	root    fs.FS // of the file system
	log     *zap.Logger
	given   int64 // eighths that the cache gave up
	looks   int   // in a row with room
	shrinks atomic.Uint64
}

// next takes in how full the memory is, and tells whether the cache changes.
func (r *relief) next(fullness float64) (changed bool) {
	before := r.given
	switch {
	case fullness >= tight:
		r.given, r.looks = min(r.given+1, cacheParts-1), 0
	case fullness >= roomy:
		r.looks = 0
	default:
		if r.looks++; r.looks >= roomyLooks {
			r.given, r.looks = max(r.given-1, 0), 0
		}
	}
	return r.given != before
}

// look sees to a cache of a configured size.
func (r *relief) look(c *cache.Cache, size int64, now time.Duration) {
	fullness, before := cgroupFullness(r.root), r.given
	changed, want := r.next(fullness), max(size*(cacheParts-r.given)/cacheParts, min(size, leastCache))
	held := c.Stats()
	if held.Limit == want {
		return // also when a reload has just made the cache
	}
	c.Resize(want, now)
	switch {
	case !changed:
	case r.given > before:
		r.shrinks.Add(1)
		r.log.Warn("the memory that the cgroup allows is nearly used up: the cache is made smaller; raise the limit, or lower cache.size",
			zap.Int("percentUsed", int(100*fullness)), zap.Int64("cache", want), zap.Int64("configured", size))
	default:
		r.log.Info("there is memory again: the cache may be larger", zap.Int64("cache", want), zap.Int64("configured", size))
	}
	if held.Bytes > want {
		debug.FreeOSMemory() // else the kernel would hear of it in minutes
	}
}

// runRelief looks until ctx ends.
func (d *daemon) runRelief(ctx context.Context) error {
	ticker := time.NewTicker(reliefEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		g := d.current.Load()
		d.relief.look(g.cache, g.config.Cache.Size, d.now())
	}
}
