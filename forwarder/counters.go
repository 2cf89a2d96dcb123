package forwarder

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/nodens-dns/nodens/forwarder/access"
)

// counters are the cells of all stripes, listen addresses and zones, and what is
// counted once for all of them. Forwarders that follow each other share them.
type counters struct {
	shape   shape
	zones   int
	since   time.Duration
	stripes []stripe
	shed    []atomic.Uint64 // by route

	shared, surplus, dropped, unkept atomic.Uint64
	renewed, prefetched, unfetched   atomic.Uint64
	turned                           [access.Rulings]atomic.Uint64
	ahead, heldBack, implied         atomic.Uint64
}

type stripe struct{ cells []cell }

// shape is what must be equal for two forwarders to count together.
type shape struct {
	stripes, listeners int
	zones, routes      string // their names, in order
}

func shapeOf(cfg *Config, t *table) shape {
	s := shape{stripes: cfg.Stripes, listeners: cfg.Listeners}
	for _, z := range t.zones {
		s.zones += z.name + " "
	}
	for _, r := range t.routes {
		s.routes += strings.Join(r.Zones, " ") + "\n"
	}
	return s
}

// countersFor are the counters of the forwarder before, or new ones.
func countersFor(cfg *Config, t *table) *counters {
	shape := shapeOf(cfg, t)
	if cfg.Before != nil && cfg.Before.counters.shape == shape {
		return cfg.Before.counters
	}
	c := &counters{
		shape: shape, zones: len(t.zones), since: cfg.Now(),
		stripes: make([]stripe, cfg.Stripes), shed: make([]atomic.Uint64, len(t.routes)),
	}
	for i := range c.stripes {
		c.stripes[i].cells = make([]cell, cfg.Listeners*c.zones)
	}
	return c
}
