package e2e

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// delays are the times from a change that was requested of the API to the tiers
// that show it: API server, etcd, EndpointSlice controller, watch and ranking.
type delays struct {
	mu   sync.Mutex
	list []time.Duration
}

func (d *delays) add(delay time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = append(d.list, delay)
}

// quantile returns the smallest delay that a share of all do not exceed.
func (d *delays) quantile(share float64) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(d.list))
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}

func (d *delays) String() string {
	round := func(share float64) time.Duration { return d.quantile(share).Round(100 * time.Microsecond) }
	return fmt.Sprintf("from a change to the tiers: %d changes, p50 %v, p90 %v, p99 %v, longest %v",
		len(d.list), round(0.5), round(0.9), round(0.99), round(1))
}
