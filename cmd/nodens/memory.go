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
	limitOverhead = 1.6      // times the cache
)

// applyMemoryPolicy sets the collector for a cache of so many bytes and says
// what is in force. The variables GOGC and GOMEMLIMIT win.
func applyMemoryPolicy(cacheBytes int64, getenv func(string) string) memoryPolicy {
	if getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(limitOverhead*float64(cacheBytes)) + idleMemory)
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
