package topology

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"go.uber.org/zap"
)

// Defaults of Config.
const (
	defaultCoalesce  = 5 * time.Millisecond
	defaultEmptyHold = 30 * time.Second
)

// Config configures a Watcher.
type Config struct {
	// Self is where this node is. If its Zone is unknown, the zone of any
	// endpoint on this node is taken.
	Self Self
	// Rules says which slices and ports count. The zero value takes all slices.
	Rules Rules
	// Options says how endpoints are ranked.
	Options Options

	// Local are servers on this node that no source knows, at a fixed address for
	// example. They stand in the node tier, before its endpoints, at all times.
	// Whether they answer is for the reader of the Table to find out.
	Local []netip.AddrPort
	// Fallback is asked while no endpoint is known, and last while some are.
	Fallback Fallback

	// Publish is given every new Table, from the goroutine of Run, one call at
	// a time, and never one equal to the previous. Required.
	Publish func(Table)

	// Now is the time since an arbitrary monotonic epoch. Required.
	Now func() time.Duration

	// Coalesce is how long events are gathered before a Table is made of them;
	// the loss of a ready endpoint of this node does not wait. Default 5 ms,
	// at most 1 s; negative = do not gather.
	Coalesce time.Duration

	// EmptyHold is how long the last good Table stays as it is when no endpoint
	// is known any more; after that its members stay as last resort. Moving
	// slices, a failed relist or a restored API server look like this. Default
	// 30 s, at least 1 s.
	EmptyHold time.Duration

	// Log gets a line when the set appears, is empty from the start, empties or
	// comes back, and when a slice has something wrong. Default nil: silent.
	Log *zap.Logger
}

func (c Config) withDefaults() (Config, error) {
	if c.Publish == nil || c.Now == nil {
		return c, errors.New("topology: Config.Publish and Config.Now must be set")
	}
	if c.Coalesce > time.Second {
		return c, errors.New("topology: Config.Coalesce must be at most 1s")
	}
	if c.Coalesce == 0 {
		c.Coalesce = defaultCoalesce
	}
	if c.EmptyHold == 0 {
		c.EmptyHold = defaultEmptyHold
	}
	if c.EmptyHold < time.Second {
		return c, errors.New("topology: Config.EmptyHold must be at least 1s")
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	c.Rules = c.Rules.withDefaults()
	return c, nil
}

// Watcher merges what a Source emits, ranks it, and publishes a Table whenever
// it changed. It is the Source's Sink. A source that is silent, or gone, changes
// nothing: the set stays, and who in it answers is for the reader of the Table
// to find out.
type Watcher struct {
	cfg    Config
	wake   chan struct{} // capacity 1: something changed
	urgent chan struct{} // capacity 1: and must not wait
	ready  chan struct{} // closed after the first Table

	mu         sync.Mutex // guards all below; never held while publishing
	self       Self
	seenZone   string // zone of this node by its endpoints; kept when they go
	nodeZone   string // by its Node object
	savedZone  string // by the snapshot
	world      world
	told       [kinds]bool // kinds of ignored things that were logged
	restored   bool        // the world is that of a snapshot
	synced     bool
	dirty      bool
	published  bool
	current    Table
	empty      bool          // no endpoint is known, though some were
	emptySince time.Duration // valid while empty
	lastEvent  time.Duration
	lastTable  time.Duration
	counters   Counters
}

// New makes a Watcher; nothing runs yet.
func New(cfg Config) (*Watcher, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Watcher{
		cfg:       cfg,
		wake:      make(chan struct{}, 1),
		urgent:    make(chan struct{}, 1),
		ready:     make(chan struct{}),
		self:      cfg.Self,
		world:     newWorld(cfg.Rules),
		lastEvent: cfg.Now(),
	}, nil
}

// Ready is closed once the source was synced and the first Table, which may be
// empty, was published.
func (w *Watcher) Ready() <-chan struct{} { return w.ready }

// Run publishes until ctx ends and then returns nil. Call it once.
func (w *Watcher) Run(ctx context.Context) error {
	hold := time.NewTimer(w.cfg.EmptyHold) // set anew when a hold begins
	defer hold.Stop()
	if !w.cfg.Fallback.none() || len(w.cfg.Local) > 0 {
		w.cfg.Publish(w.complete(Table{Provisional: true}))
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.wake:
			w.gather(ctx)
		case <-hold.C:
		}
		if wait := w.refresh(); wait > 0 {
			hold.Reset(wait)
		}
	}
}

// gather waits for more events that belong together.
func (w *Watcher) gather(ctx context.Context) {
	if w.cfg.Coalesce < 0 {
		return
	}
	timer := time.NewTimer(w.cfg.Coalesce)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.urgent:
	case <-ctx.Done():
	}
}

// refresh makes the Table of the world as it is now and publishes it if it is
// new. It returns how long to wait before an empty world is looked at again, 0
// for "until something changes".
func (w *Watcher) refresh() time.Duration {
	next, changed, wait := w.next()
	if !changed {
		return wait
	}
	w.cfg.Publish(w.complete(next))
	select {
	case <-w.ready:
	default:
		close(w.ready)
	}
	return wait
}

// complete adds the servers that do not depend on any source.
func (w *Watcher) complete(t Table) Table {
	t = w.cfg.Fallback.apply(t)
	if len(w.cfg.Local) > 0 {
		t.Tiers[TierNode] = append(plain(Ready, 0, w.cfg.Local), t.Tiers[TierNode]...)
	}
	return t
}

// next decides what is current from now on.
func (w *Watcher) next() (next Table, changed bool, wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.synced || (!w.dirty && !w.empty) {
		return Table{}, false, 0
	}
	w.dirty = false
	now := w.cfg.Now()
	next = w.rank()
	if next, wait = w.hold(next, now); wait > 0 {
		return Table{}, false, wait
	}
	if w.published && next.Equal(&w.current) {
		w.counters.Unchanged++
		return Table{}, false, 0
	}
	if !w.published && next.Empty() {
		w.cfg.Log.Warn(Unmatched(w.cfg.Rules, w.world.services()))
	}
	w.counters.Published++
	w.current, w.published, w.lastTable = next, true, now
	return next, true, 0
}

// rank makes the Table of the world.
func (w *Watcher) rank() Table {
	records := w.world.byAge()
	if zone := zoneOf(records, w.self.Node); zone != "" {
		w.seenZone = zone
	}
	self, _ := w.where()
	t := table(w.world.views(records, self, w.cfg.Options))
	t.Provisional = w.restored
	return t
}

// hold keeps an empty world from erasing the last good set. For a while the set
// stays as it is (wait > 0); then its members become the last resort, for as
// long as nothing better is known.
func (w *Watcher) hold(next Table, now time.Duration) (Table, time.Duration) {
	if !next.Empty() || w.current.Empty() {
		if w.empty {
			w.empty = false
			w.cfg.Log.Info("endpoints are known again", zap.Duration("after", now-w.emptySince))
		}
		return next, 0
	}
	if !w.empty {
		w.empty, w.emptySince = true, now
		w.counters.Emptied++
		w.cfg.Log.Warn("no endpoint is known any more; keeping the last ones",
			zap.Int("usable", w.current.Usable()), zap.Int("last", len(w.current.Last)))
	}
	if left := w.emptySince + w.cfg.EmptyHold - now; left > 0 {
		return Table{}, left
	}
	return w.current.lastResort(), 0
}
