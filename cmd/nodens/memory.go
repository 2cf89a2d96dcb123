package main

import (
	"math"
	"runtime/debug"
	"runtime/metrics"
)

// memoryPolicy is how the garbage collector is set.
type memoryPolicy struct {
	// GCPercent is the growth of the heap, over what is alive, at which the
	// next collection ends (GOGC).
	GCPercent int
	// Limit is the soft limit of the process in bytes (GOMEMLIMIT).
	Limit int64
}

// Most of the heap is cache entries, which live long and hold no pointers to
// follow: collections are cheap, and their distance decides how far the
// process grows beyond the cache. At 30 percent the process peaks below 1.6
// times the cache while it churns, and collecting takes a few percent of the
// CPU time at tens of thousands of misses a second (TestFootprint). The limit
// stays above that peak, so that it acts only on a burst of misses or
// connections, where collecting more often is better than being killed.
const (
	gcPercent     = 30
	idleMemory    = 32 << 20 // what the process needs beside the cache
	burstMemory   = 24 << 20 // and while as many misses wait as may, 10 KiB each
	limitOverhead = 1.6      // times the cache
)

// leastCache is the smallest cache.
const leastCache = 1 << 20

// within is how much of the memory that a cgroup allows the process may take: the
// kernel counts what its sockets hold as well.
func within(bound int64) int64 { return bound - max(bound/10, 8<<20) }

// fitCache is the largest cache up to wanted whose process stays within what its
// cgroup allows, 0 for no bound: a smaller cache is better than being killed.
func fitCache(wanted, bound int64) int64 {
	if bound == 0 {
		return wanted
	}
	room := float64(within(bound)-idleMemory) / limitOverhead
	return min(wanted, max(int64(room), leastCache))
}

// memoryFor is the soft limit of a process with a cache of so many bytes. Where the
// cgroup has the room, misses that all wait for silent servers fit below it: collecting
// without a pause, as long as they wait, makes hits late by tens of milliseconds.
func memoryFor(cacheBytes, bound int64) int64 {
	limit := int64(limitOverhead*float64(cacheBytes)) + idleMemory + burstMemory
	if bound > 0 {
		limit = min(limit, within(bound))
	}
	return limit
}

// applyMemoryPolicy sets the collector for a cache of so many bytes, in a cgroup that
// allows bound, 0 for no bound, and says what is in force. The variables GOGC and
// GOMEMLIMIT win.
func applyMemoryPolicy(cacheBytes, bound int64, getenv func(string) string) memoryPolicy {
	if getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryFor(cacheBytes, bound))
	}
	return currentMemoryPolicy()
}

// currentMemoryPolicy asks the runtime. Limit is 0 when there is none, and
// GCPercent is negative when collections are off.
func currentMemoryPolicy() memoryPolicy {
	samples := []metrics.Sample{{Name: "/gc/gogc:percent"}, {Name: "/gc/gomemlimit:bytes"}}
	metrics.Read(samples)
	percent, limit := samples[0].Value.Uint64(), samples[1].Value.Uint64()
	if limit == math.MaxInt64 {
		limit = 0
	}
	return memoryPolicy{GCPercent: int(int32(percent)), Limit: int64(limit)}
}
