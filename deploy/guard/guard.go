package guard

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/nodens-dns/nodens/deploy/hostnet"
	"github.com/nodens-dns/nodens/forwarder/listener"
)

// Guard watches over a node's DNS. It works inside Run.
type Guard struct {
	cfg     Config
	status  atomic.Pointer[Status]
	changes chan hostnet.State
}

// New makes a Guard. It touches nothing yet. The error names what is wrong with cfg.
func New(cfg Config) (*Guard, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	g := &Guard{cfg: cfg, changes: make(chan hostnet.State)}
	g.status.Store(&Status{Fallback: "the guard has just started"})
	return g, nil
}

// Run guards until ctx ends: it takes connections of serve at once, and the node as
// soon as no other guard has it. What it set up stays in force, unless Config.Teardown
// says otherwise. An error says what the guard cannot do without. Call it once.
func (g *Guard) Run(ctx context.Context) error {
	listener, err := listenSessions(g.cfg.Socket)
	if err != nil {
		return err
	}
	l := newLoop(g)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return l.run(ctx) })
	group.Go(func() error { return l.accept(ctx, listener) })
	group.Go(func() error { l.store.run(ctx); return nil })
	var lock *os.File
	group.Go(func() (err error) {
		lock, err = l.hold(ctx)
		return err
	})
	err = group.Wait()
	if lock != nil {
		err = errors.Join(err, l.teardown(), lock.Close())
	}
	return err
}

// teardown is what node-cache does at its end.
func (l *loop) teardown() error {
	if !l.cfg.Teardown {
		return nil
	}
	report, err := l.cfg.Host.Cleanup(l.state, func(a netip.Addr) bool {
		return listener.ServedByOthers(netip.AddrPortFrom(a, l.state.Port), l.cfg.UID)
	})
	for _, note := range report.Notes {
		l.log.Warn("not all was removed from the host", zap.String("note", note))
	}
	return err
}

const (
	watchAgain  = time.Second // how long the host goes unwatched after a failure
	watchedLong = time.Minute // after which the same failure is told again
)

// hold waits for the lock, makes this guard the owner of the node, and watches the
// host, until ctx ends. It returns the lock if it got it. A lock whose file was removed
// is taken again: another guard may have got it meanwhile.
func (l *loop) hold(ctx context.Context) (*os.File, error) {
	for {
		lock, err := takeLock(ctx, l.cfg.Lock, func(pid int) {
			l.log.Info("another guard owns this node; this one waits for its end", zap.Int("pid", pid), zap.String("lock", l.cfg.Lock))
		})
		if err != nil {
			if ctx.Err() != nil {
				err = nil
			}
			return nil, err
		}
		l.ask(ctx, l.own)
		l.watchHost(ctx, lock)
		if ctx.Err() != nil {
			return lock, nil
		}
		l.log.Error("the lock's file was removed, so that another guard may own this node: it is taken again", zap.String("lock", l.cfg.Lock))
		l.ask(ctx, func() { l.owner = false })
		_ = lock.Close() // nobody can open it any more
	}
}

// watchHost watches the host as long as the file of the lock is there, until ctx ends.
func (l *loop) watchHost(ctx context.Context, lock *os.File) {
	ctx, lost := context.WithCancel(ctx)
	var kept sync.WaitGroup
	kept.Go(func() {
		defer lost()
		keepLock(ctx, lock, l.cfg.Lock)
	})
	defer kept.Wait()
	defer lost()
	for told := ""; ctx.Err() == nil; {
		began := l.now()
		err := l.cfg.Host.Watch(ctx, func() { l.ask(ctx, l.repair) })
		if err == nil {
			continue
		}
		if err.Error() != told || l.now()-began >= watchedLong {
			l.log.Warn("the host is looked at by the clock alone until its changes can be watched", zap.Error(err))
		}
		told = err.Error()
		l.ask(ctx, func() { l.unwatched = true })
		select {
		case <-ctx.Done():
		case <-time.After(watchAgain):
		}
	}
}
