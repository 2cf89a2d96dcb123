package upstream

import (
	"context"
	"hash/maphash"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

// Group is the servers of one route. Its methods may be called at the same
// time, but Update by one goroutine only.
type Group struct {
	cfg    Config
	ctx    context.Context // ends with the group; stops dialling
	cancel context.CancelFunc
	// snapshot is what exchanges read: a whole table or the next one.
	snapshot atomic.Pointer[snapshot]

	routines  sync.WaitGroup
	exchanges sync.Pool    // *exchange
	buffers   sync.Pool    // *[wire.MaxMessage]byte, to read datagrams into
	open      atomic.Int64 // sockets and connections
	count     *counters
	hedges    hedges
	whileOut  limit        // of packets while every target is out
	packets   limit        // of all, with Config.PacketRate
	line      line         // of exchanges that wait for these
	held      atomic.Int32 // exchanges that wait for one of the two
	fast      zoneSet
	prober    *prober
	loops     loops
	proofs    proofs
	seed      maphash.Seed // of what is left of questions

	mu      sync.Mutex
	known   map[netip.AddrPort]*target // of the snapshot, by their first address
	leaving map[path]*time.Timer       // removed, not yet closed
	watches map[*score]*watch          // of the node tier
	tallies map[netip.AddrPort]*tally  // of the group before
	started bool                       // the prober
	closed  bool
}

// snapshot is an immutable list of targets by tier.
type snapshot struct {
	targets  []*target
	draining bool
	closed   bool
}

type counters struct {
	exchanges, attempts, retries, exhausted atomic.Uint64
	probes, held, looped                    atomic.Uint64
	tcpFallbacks, ednsFallbacks             atomic.Uint64
	served, hedges, spills                  [tierCount]atomic.Uint64
	suspicions, ejections, panics           [tierCount]atomic.Uint64
}

// New makes a group without servers: Update gives it some. It opens nothing and
// starts nothing.
func New(cfg Config) *Group {
	g := &Group{
		cfg:     cfg.withDefaults(),
		seed:    maphash.MakeSeed(),
		known:   map[netip.AddrPort]*target{},
		leaving: map[path]*time.Timer{},
		watches: map[*score]*watch{},
	}
	g.count, g.tallies = cfg.Before.counted()
	g.cfg.Before = nil // it may go
	g.ctx, g.cancel = context.WithCancel(context.Background())
	g.exchanges.New = func() any { return newExchange(g) }
	g.buffers.New = func() any { return new([wire.MaxMessage]byte) }
	g.snapshot.Store(&snapshot{})
	g.hedges.saved.Store(hedgeSaved)
	g.fast = newZoneSet(g.cfg.Fast)
	g.prober = newProber(g)
	return g
}

// counted is what a group counted, for the one that takes over from it. There
// may be none.
func (g *Group) counted() (*counters, map[netip.AddrPort]*tally) {
	if g == nil {
		return &counters{}, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	tallies := make(map[netip.AddrPort]*tally, len(g.known))
	for addr, t := range g.known {
		tallies[addr] = t.score.tally
	}
	return g.count, tallies
}

// Update replaces the servers. Exchanges read the whole old table or the whole
// new one. A target whose address stayed keeps its sockets, health and counters;
// the exchanges of a removed one turn to another target at once, though answers
// on their way are still taken. A server that stands in several places of the
// table counts in the first. Of a zone and a cluster with many servers a few are
// used, others on other nodes, and of those not ready no more.
func (g *Group) Update(table Table) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return
	}
	old := g.known
	if !g.cfg.External {
		table = cutTable(table, g.cfg.Node, func(a netip.AddrPort) bool { return old[a] != nil })
	}
	next := &snapshot{draining: table.Draining}
	g.known = map[netip.AddrPort]*target{}
	for tier, members := range [...][]Member{table.Tiers[0], table.Tiers[1], table.Tiers[2], table.Last} {
		for _, m := range members {
			addr := m.addr()
			if g.known[addr] != nil || !addr.IsValid() {
				continue
			}
			t := g.targetOf(m, tier, old[addr])
			g.known[addr] = t
			next.targets = append(next.targets, t)
		}
	}
	g.snapshot.Store(next)
	// Exchanges that turn elsewhere now find the new table.
	for addr, was := range old {
		g.settle(was, g.known[addr])
	}
	g.watchAll()
	g.startProber()
}

// targetOf makes the target of a member. One that became ready has to answer a
// probe before it is used, but not in the first table, when nobody is known
// better, nor in the last resort, where none is. The lock is held.
func (g *Group) targetOf(m Member, tier int, old *target) *target {
	t := newTarget(g, m, tier, old)
	if g.started && tier != LastTier && (old == nil || old.member.State != Ready && m.State == Ready) {
		t.score.readied(g.cfg.Now())
	}
	return t
}

// startProber starts the prober with the first table, or shows it another. The
// lock is held.
func (g *Group) startProber() {
	if !g.started && len(g.known) > 0 {
		g.started = true
		g.routines.Go(g.prober.run)
	}
	g.prober.wake()
}

// settle deals with what a target was and is no longer; is may be nil.
func (g *Group) settle(was, is *target) {
	for i, p := range was.paths {
		switch {
		case p == nil:
		case is == nil || is.paths[i] != p:
			g.retire(p)
		case was.member.State != NotReady && is.member.State == NotReady:
			p.signal(ErrNotReady)
		}
	}
}

// retire turns the exchanges of a path to another target, and closes it later:
// answers may be on their way.
func (g *Group) retire(p path) {
	p.end(ErrRemoved)
	p.signal(ErrRemoved)
	g.routines.Add(1)
	g.leaving[p] = time.AfterFunc(g.cfg.RemoveLinger, func() {
		defer g.routines.Done()
		p.close(ErrRemoved)
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.leaving, p)
	})
}

// Exchange asks q and returns the reply, whose bytes are in dst[:0], grown if
// they need it. When all servers tried gave only failures (SERVFAIL, REFUSED,
// FORMERR, NOTIMP), or a truncated reply that could not be had over TCP, the
// last such reply is returned. Without any reply the error is an
// *ExchangeError, or wraps ctx's. The reply's Via is the tier that it came from,
// plus one. q is not kept.
func (g *Group) Exchange(ctx context.Context, dst []byte, q *wire.Query) (wire.Reply, error) {
	x := g.exchanges.Get().(*exchange)
	reply, err := x.run(ctx, dst, q)
	g.exchanges.Put(x)
	return reply, err
}

// mayOpen counts one more socket, if the bound allows it or it is the first one to its
// address: nothing could be asked there without.
func (g *Group) mayOpen(first bool) bool {
	if g.open.Add(1) > int64(g.cfg.MaxOpen) && !first {
		g.open.Add(-1)
		return false
	}
	return true
}

// full reports whether the bound on sockets is reached.
func (g *Group) full() bool { return g.open.Load() >= int64(g.cfg.MaxOpen) }

// isFast reports whether a name in wire form is one that the servers know
// themselves.
func (g *Group) isFast(name []byte) bool { return len(g.fast) == 0 || g.fast.holds(name) }

// noteReply notes a reply of a target; good says that it proves it fit for use.
func (g *Group) noteReply(s *score, now time.Duration, good bool) {
	s.replied(now, good, s.health.Load() != nil && g.allOut())
}

// allOut reports whether every target is out.
func (g *Group) allOut() bool {
	for _, t := range g.snapshot.Load().targets {
		if !t.score.state().out {
			return false
		}
	}
	return true
}

// suspected has a target probed that was silent too often: nothing else may be
// asked of it now.
func (g *Group) suspected(t *target) {
	g.count.suspicions[t.tier].Add(1)
	g.prober.wake()
}

// ejected turns the exchanges of a target that just went out to another one if
// the network said that it is not there, and has it probed.
func (g *Group) ejected(t *target, cause error) {
	g.count.ejections[t.tier].Add(1)
	g.prober.wake()
	if cause == nil {
		return
	}
	for _, p := range t.paths {
		if p != nil {
			p.signal(ErrEjected)
		}
	}
}

// learnLate learns from a reply that nobody waited for any more, if it came in a
// time that might have been waited for: the server lives, and is slower than it
// was.
func (g *Group) learnLate(s *score, was asked, code wire.RCode) {
	now := g.cfg.Now()
	took, most := now-was.at, 2*g.cfg.RetryMax
	if took <= most {
		s.took(now, took, was.class, was.speaks)
	}
	if was.class == fast {
		g.noteLate(s, now, took)
		most = g.cfg.Budget
	}
	if took <= most {
		g.noteReply(s, now, was.speaks && (g.cfg.External || isAnswer(code)))
	}
}

// noteLate notes how long a reply about a name that the server knows by heart
// took, if that is longer than silences are borne.
func (g *Group) noteLate(s *score, now, took time.Duration) {
	if took > g.cfg.RetryMax && took <= g.cfg.Budget {
		s.late(took, now, g.cfg.RetryMax)
	}
}

// Status reads the counters. They are read one after the other, not at one
// moment.
func (g *Group) Status() Status {
	now, c := g.cfg.Now(), g.count
	s := Status{
		Exchanges: c.exchanges.Load(), Attempts: c.attempts.Load(), Retries: c.retries.Load(),
		Probes: c.probes.Load(), Looped: c.looped.Load(), Held: c.held.Load(), Exhausted: c.exhausted.Load(),
		TCPFallbacks: c.tcpFallbacks.Load(), EDNSFallbacks: c.ednsFallbacks.Load(),
		Open: int(g.open.Load()),
	}
	for i := range s.Served {
		s.Served[i] = c.served[i].Load()
		s.Hedges[i], s.Spills[i] = c.hedges[i].Load(), c.spills[i].Load()
		s.Suspicions[i], s.Ejections[i], s.Panics[i] = c.suspicions[i].Load(), c.ejections[i].Load(), c.panics[i].Load()
	}
	snap := g.snapshot.Load()
	s.Draining = snap.draining
	for _, t := range snap.targets {
		s.Targets = append(s.Targets, t.status(&g.cfg, now))
	}
	return s
}

// Close closes the sockets and waits for the goroutines. Exchanges that run end
// with ErrClosed. It returns nil; a second call does nothing.
func (g *Group) Close() error {
	g.mu.Lock()
	for p, timer := range g.leaving {
		if timer.Stop() {
			p.close(ErrClosed)
			g.routines.Done()
		}
	}
	clear(g.leaving)
	g.closed = true
	g.snapshot.Store(&snapshot{closed: true})
	for _, t := range g.known {
		for _, p := range t.paths {
			if p != nil {
				p.end(ErrClosed)
				p.close(ErrClosed)
			}
		}
	}
	clear(g.known)
	g.mu.Unlock()
	g.cancel()
	g.routines.Wait()
	return nil
}
