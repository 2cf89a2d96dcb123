package topology

import "time"

// Counters only ever grow.
type Counters struct {
	Puts      uint64 // slices added or changed
	Deletes   uint64 // slices removed
	Replaces  uint64 // whole lists
	Published uint64 // Tables given to Publish
	Unchanged uint64 // Tables that equalled the previous one
	Emptied   uint64 // times the world became empty and the last set was kept
}

// Status is a snapshot for status pages and metrics.
type Status struct {
	Self Self // with the zone in use
	// ZoneFrom says who told the zone.
	ZoneFrom ZoneFrom
	Synced   bool
	// Endpoints is every known endpoint, one line per copy, ordered by family
	// and address. Empty while only a kept Table remains.
	Endpoints []Placement
	Slices    int
	// Ignored counts what is ignored in the slices known now.
	Ignored Ignored
	// Table is what was last published, without the fallback and Config.Local.
	Table Table
	// Fallback says that no endpoint was ever known and the fallback is asked.
	Fallback bool
	// Restored says that what is known is from a snapshot on disk, which no
	// source has confirmed yet.
	Restored bool
	// Empty says that no endpoint is known and Table is made of former ones;
	// EmptyFor tells since when.
	Empty    bool
	EmptyFor time.Duration
	// SourceAge is the time since the source said anything, TableAge since the
	// Table was published. Both grow while nothing changes: neither is a fault.
	SourceAge time.Duration
	TableAge  time.Duration
	Counters  Counters
}

// Status describes the world as it is now. It ranks anew: for people and
// scrapes, not for every query.
func (w *Watcher) Status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.cfg.Now()
	records := w.world.byAge()
	s := Status{
		Synced:    w.synced,
		Slices:    len(records),
		Table:     w.current,
		Empty:     w.empty,
		SourceAge: now - w.lastEvent,
		Counters:  w.counters,
	}
	s.Self, s.ZoneFrom = w.where()
	s.Fallback = !w.cfg.Fallback.none() && w.current.Empty()
	s.Restored = w.restored
	if w.published {
		s.TableAge = now - w.lastTable
	}
	if w.empty {
		s.EmptyFor = now - w.emptySince
	}
	for _, r := range records {
		s.Ignored.add(&r.ignored)
	}
	views := w.world.views(records, s.Self, w.cfg.Options)
	s.Endpoints = placements(views, s.Self, w.cfg.Options)
	return s
}
