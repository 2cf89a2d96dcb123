package forwarder

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

// matches counts the questions that fixed answers are given to. Which zones there
// are is known from the start. Forwarders that count together share the counters of
// the zones that both have, whatever else of their rules differs.
type matches map[match]*[Types]atomic.Uint64

// match is a listen address and a zone of a rule.
type match struct {
	listener int
	zone     string
}

// newMatches makes the counters for the rules of all routes.
func newMatches(cfg *Config, t *table, c *counters) matches {
	var before matches
	if cfg.Before != nil && cfg.Before.counters == c {
		before = cfg.Before.matches
	}
	m := matches{}
	for _, z := range t.zones {
		if z.route == nil || z.route.Rules == nil {
			continue
		}
		for _, zone := range append(z.route.Rules.Zones(), z.name) {
			for listener := range cfg.Listeners {
				key := match{listener, zone}
				m[key] = cmp.Or(m[key], before[key], new([Types]atomic.Uint64))
			}
		}
	}
	return m
}

func (m matches) add(listener int, zone string, t wire.Type) {
	m[match{listener, zone}][TypeIndex(t)].Add(1)
}

// Matches is how many questions got fixed answers at one listen address, by rules
// for one zone.
type Matches struct {
	Listener int
	Zone     string // with a final dot
	Types    [Types]uint64
}

// read is what was counted, in the order of listen addresses and zones.
func (m matches) read() []Matches {
	list := make([]Matches, 0, len(m))
	for key, types := range m {
		one := Matches{Listener: key.listener, Zone: key.zone}
		addAll(one.Types[:], types[:])
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b Matches) int {
		return cmp.Or(cmp.Compare(a.Listener, b.Listener), cmp.Compare(a.Zone, b.Zone))
	})
	return list
}
