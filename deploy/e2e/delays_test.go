package e2e

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

// delay is how long a change took to show in the tiers.
type delay struct {
	whole time.Duration // since the API was asked for it
	own   time.Duration // since another client saw the slice
}

// delays are those of many changes.
type delays struct {
	mu   sync.Mutex
	list []delay
}

func (d *delays) add(list ...delay) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = append(d.list, list...)
}

func (d *delays) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var whole, own []time.Duration
	for _, one := range d.list {
		whole, own = append(whole, one.whole), append(own, one.own)
	}
	return fmt.Sprintf("%d changes: from the slice to the tiers %s; from the request to the tiers, with the controller, %s",
		len(d.list), summary(own), summary(whole))
}

func summary(list []time.Duration) string {
	round := func(share float64) time.Duration { return quantile(list, share).Round(100 * time.Microsecond) }
	return fmt.Sprintf("p50 %v, p90 %v, p99 %v, longest %v", round(0.5), round(0.9), round(0.99), round(1))
}

// check wants the delays that are ours to be short. With nothing else to do a
// machine stays far below; the second bound leaves room for a busy one.
func (d *delays) check(t *testing.T) {
	t.Helper()
	if len(d.list) == 0 {
		return
	}
	t.Log(d.String())
	var own []time.Duration
	for _, one := range d.list {
		own = append(own, one.own)
	}
	if p90, p99 := quantile(own, 0.9), quantile(own, 0.99); p90 > 250*time.Millisecond || p99 > time.Second {
		t.Errorf("from the slice to the tiers: p90 %v, p99 %v; want at most 250ms and 1s", p90, p99)
	}
	shared.delays.add(d.list...)
}

// quantile returns the smallest value that a share of all do not exceed.
func quantile(list []time.Duration, share float64) time.Duration {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}
