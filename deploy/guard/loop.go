package guard

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// loop owns all state of a guard. Its methods run in one goroutine, one at a time,
// except those of the other files that say otherwise.
type loop struct {
	cfg   *Config
	now   func() time.Duration
	log   *zap.Logger
	work  chan func()
	over  chan struct{} // closed when nobody does the work any more
	store *store
	show  func(*Status)

	state     hostnet.State // desired
	changes   <-chan hostnet.State
	changing  changing
	probeName string // what the servers of the fallback know
	owner     bool
	problem   string // why the host does not look as it should; "" = it does
	repaired  time.Duration
	unwatched bool // what changed before the watch began was not told
	leftovers leftovers

	sessions  []*session
	dead      map[string]bool // instances whose connection ended
	places    []*place
	turned    time.Time // the set bypass changed last
	deaths    deaths
	rounds    sync.WaitGroup
	probing   bool
	overdue   bool // a round should have begun while another was not over
	behind    behind
	following following
	counts    Counts
}

func newLoop(g *Guard) *loop {
	l := &loop{
		cfg: &g.cfg, now: g.cfg.Now, log: g.cfg.Log, work: make(chan func()), over: make(chan struct{}),
		state: g.cfg.State, changes: g.changes, dead: map[string]bool{}, show: g.status.Store,
		store: newStore(g.cfg.Endpoints, g.cfg.Log),
	}
	l.place()
	if table, ok := l.store.table(); ok {
		l.target(table)
	}
	return l
}

// ask has f done by the loop, and waits for it. It may be called by any other goroutine.
func (l *loop) ask(ctx context.Context, f func()) {
	done := make(chan struct{})
	select {
	case l.work <- func() { f(); close(done) }:
		<-done
	case <-l.over:
	case <-ctx.Done():
	}
}

// run does the work until ctx ends.
func (l *loop) run(ctx context.Context) error {
	defer l.rounds.Wait()
	defer close(l.over)
	tick := time.NewTicker(roundEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case f := <-l.work:
			f()
		case s := <-l.changes:
			l.change(s)
		case <-tick.C:
			l.tick(ctx)
		}
	}
}

// tick is what time brings.
func (l *loop) tick(ctx context.Context) {
	now := l.now()
	l.leaveFormer(now)
	l.seeToServers(ctx)
	if l.owner {
		l.startRound(ctx)
		l.askBehind(ctx)
		for _, s := range l.sessions {
			if s.sockets != nil {
				l.deaths.lived(s.since, now)
			}
		}
		if l.repairDue(now) {
			l.repair()
		}
		l.steer()
	}
	for _, p := range l.places {
		p.forget(now)
	}
	for _, s := range l.sessions {
		l.tell(s)
	}
	l.show(l.describe())
}

// repairDue says that it is time to look at the host without a hint.
func (l *loop) repairDue(now time.Duration) bool {
	age := now - l.repaired
	if l.unwatched && age >= watchStarts {
		l.unwatched = false
		return true
	}
	return (l.problem != "" && age >= retryEvery) || age >= repairEvery
}

// own makes this guard the owner of the node.
func (l *loop) own() {
	l.owner, l.unwatched = true, true
	l.log.Info("this guard owns the node", zap.Stringer("mode", l.state.Mode), zap.Stringers("addresses", l.addrs()))
	l.repair()
	l.store.write()
	for _, s := range l.sessions {
		l.tell(s)
	}
}

func (l *loop) addrs() []netip.Addr {
	var list []netip.Addr
	for _, p := range l.places {
		list = append(list, p.addr)
	}
	return list
}

// follow takes over what is told of the servers. That none is known changes nothing: the
// last ones are better than nobody. Neither does what a serve remembers of them, once a
// source has told.
func (l *loop) follow(t Table) {
	if t.empty() || t.Provisional && l.following.told {
		return
	}
	l.following.told = !t.Provisional
	l.target(t)
	l.store.keepTable(t)
	if l.owner {
		l.repair()
		l.store.write()
	}
}

// target makes the fallback of a table.
func (l *loop) target(t Table) {
	fallback, refused := t.fallback(&l.state)
	if len(refused) > 0 {
		l.log.Warn("servers are left out of the fallback: packets may not be sent there", zap.Stringers("servers", refused))
	}
	if len(fallback.UDP)+len(fallback.TCP) == 0 {
		return
	}
	l.state.Fallback = fallback
	l.probeName = t.Probe
	l.behind.stale()
}

// withoutFuture are the instances whose answers do not count.
func (l *loop) withoutFuture() map[string]bool {
	list := make(map[string]bool, len(l.dead)+1)
	for instance := range l.dead {
		list[instance] = true
	}
	for _, s := range l.sessions {
		if s.leaving {
			list[s.hello.Instance] = true
		}
	}
	return list
}
