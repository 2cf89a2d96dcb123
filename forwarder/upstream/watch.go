package upstream

import (
	"context"
	"errors"
	"net"
	"os"
	"time"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

const (
	// watchEvery is how often something is asked on a watched connection, so
	// that its server does not find it idle: CoreDNS waits 10 s.
	watchEvery = 4 * time.Second
	// watchSoon is the wait after a connection that ended without an answer: a
	// process that ends may still accept one. watchAgain is the wait after more.
	watchSoon  = 50 * time.Millisecond
	watchAgain = time.Second
	// watchSlow is the same while none was ever answered: the server may not
	// serve TCP at all.
	watchSlow = 30 * time.Second
)

// watch holds a quiet TCP connection to a target of the node tier: most queries
// go there, and the kernel says at once when its process ends, even while
// nobody asks anything. A closed connection alone says little, because servers
// close them on a reload, too; but when it cannot be opened again, nobody is
// there.
type watch struct {
	group  *Group
	target *target
	addr   string
	frame  []byte // length prefix and query
	stop   context.CancelFunc
}

// watchable reports whether a watch can say something of t.
func (g *Group) watchable(t *target) bool {
	return g.cfg.Probe != "" && !g.cfg.External && t.tier == NodeTier &&
		t.member.State != NotReady && t.member.TCP.IsValid()
}

// watchAll starts and ends watches as the table says. The lock is held.
func (g *Group) watchAll() {
	for s, w := range g.watches {
		if is := g.known[w.target.addr]; is == nil || is.score != s || !g.watchable(is) || is.member.TCP.String() != w.addr {
			w.stop()
			delete(g.watches, s)
		}
	}
	for _, t := range g.known {
		if !g.watchable(t) || g.watches[t.score] != nil {
			continue
		}
		ctx, stop := context.WithCancel(g.ctx)
		w := &watch{group: g, target: t, addr: t.member.TCP.String(), stop: stop}
		q := &g.prober.query
		w.frame = wire.AppendQuery(make([]byte, 2), q, 0, g.cfg.UDPSize)
		w.frame[1] = byte(len(w.frame) - 2) // short, as all names
		w.frame[0] = byte((len(w.frame) - 2) >> 8)
		g.watches[t.score] = w
		g.routines.Go(func() { w.run(ctx) })
	}
}

// run is the watch's goroutine.
func (w *watch) run(ctx context.Context) {
	worked, brief := false, false // some connection; the last one
	for ctx.Err() == nil {
		conn, err := w.dial(ctx)
		wait := watchSlow
		switch {
		case err == nil:
			answered := w.hold(ctx, conn)
			wait = nextWatch(answered, brief)
			worked, brief = worked || answered, !answered
		case worked && isHard(err):
			w.gone(err)
			worked = false
			wait = watchAgain
		case worked:
			wait = watchAgain
		}
		sleep(ctx, wait)
	}
}

// nextWatch is how long to wait after a connection. The first new one comes at
// once: it shows whether anybody is there.
func nextWatch(answered, briefBefore bool) time.Duration {
	switch {
	case answered:
		return 0
	case !briefBefore:
		return watchSoon
	}
	return watchAgain
}

func (w *watch) dial(ctx context.Context) (net.Conn, error) {
	if !w.group.mayOpen(false) {
		return nil, ErrTooMany
	}
	ctx, cancel := context.WithTimeout(ctx, w.group.cfg.TCPDial)
	defer cancel()
	conn, err := w.group.cfg.Dial(ctx, "tcp", w.addr)
	if err != nil {
		w.group.open.Add(-1)
	}
	return conn, err
}

// hold asks now and then until the connection ends, and reports whether
// anything was answered.
func (w *watch) hold(ctx context.Context, conn net.Conn) (answered bool) {
	defer w.group.open.Add(-1)
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })()
	var buf [512]byte
	for silences := 0; silences < missesToEject && ctx.Err() == nil; silences++ {
		wire.SetID(w.frame[2:], uint16(w.group.cfg.Random()))
		if _, err := conn.Write(w.frame); err != nil {
			return answered
		}
		conn.SetReadDeadline(time.Now().Add(watchEvery))
		for {
			_, err := conn.Read(buf[:])
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if err != nil {
				return answered
			}
			answered, silences = true, -1
		}
	}
	return answered
}

// gone ejects the target: its server could not be reached again.
func (w *watch) gone(err error) {
	now := w.group.cfg.Now()
	w.target.score.countHard(err)
	if w.target.score.failed(now, now) {
		w.group.ejected(w.target, err)
	}
}

// sleep waits, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
