package listener

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"sync/atomic"
	"time"
)

const (
	// passBatches is how many full batches a loop reads before it lets other
	// goroutines run: about a millisecond's work.
	passBatches = 8
	// maxReadErrors is how many reads may fail in a row before the socket is
	// given up.
	maxReadErrors = 100
)

// loop reads one socket. All but its counters and the stop flag belongs to the
// goroutine in run.
type loop struct {
	udp      *UDP
	socket   *socket
	handler  Handler
	now      func() time.Duration
	counters *udpCounters
	batch    *batch
	ctx      context.Context // of the misses; the loop lives shorter than Run
	from     Peer            // what is the same for all queries of a batch

	stopping atomic.Bool
	draining bool  // the socket was handed over
	heard    bool  // the last pass read something
	failed   int   // reads that failed in a row
	err      error // the last of them
}

func newLoop(ctx context.Context, u *UDP, i int, s *socket) *loop {
	return &loop{
		udp:      u,
		socket:   s,
		handler:  u.cfg.Handler,
		now:      u.cfg.Now,
		counters: &u.counters[i],
		batch:    newBatch(u.packets),
		ctx:      ctx,
		from:     Peer{Listener: u.cfg.Listener, Stripe: u.cfg.Stripe + uint8(i), Proto: ProtoUDP},
	}
}

// run reads until stop is called, then hands the socket over and drains it.
func (l *loop) run() error {
	defer l.batch.release(l.udp.packets)
	pass := func(uintptr) bool { return l.pass() }
	for !l.stopping.Load() {
		err := l.socket.raw.Read(pass)
		if err == nil {
			err = l.givenUp()
		}
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("read udp %v: %w", l.socket.addr, err)
		}
		runtime.Gosched()
	}
	return l.drain()
}

// stop makes run leave its loop. It may be called by any goroutine, once. The
// flag comes last: from then on the deadline is drain's.
func (l *loop) stop() {
	_ = l.socket.wakeAt(past) // fails only on a closed socket
	l.stopping.Store(true)
}

// pass answers what is queued at the socket. It returns false to be called
// again when the poller sees more, and true to return to run.
func (l *loop) pass() (finished bool) {
	l.heard = false
	for range passBatches {
		n, err := l.batch.read(l.socket, l.heard)
		switch {
		case nothingThere(err):
			return l.draining && l.heard
		case err != nil:
			l.counters.readErrors.Add(1)
			l.failed, l.err = l.failed+1, err
			return true
		}
		l.failed = 0
		l.heard = true
		l.serve(n)
		if l.stopping.Load() && !l.draining {
			return true
		}
		if n < batchSize && !l.draining {
			return false // the queue was seen empty
		}
	}
	return true
}

// givenUp returns the last read error once too many followed each other.
func (l *loop) givenUp() error {
	if l.failed < maxReadErrors {
		return nil
	}
	return l.err
}

// serve answers the first n packets of the batch.
func (l *loop) serve(n int) {
	l.from.Received = l.now()
	for i := range n {
		l.answer(i)
	}
	l.counters.received.Add(uint64(n))
	if l.batch.queued == 0 {
		return
	}
	sent, refused := l.batch.flush(l.socket)
	l.counters.answered.Add(uint64(sent))
	if refused > 0 {
		l.counters.sendErrors.Add(uint64(refused))
	}
	l.handler.Done(l.from, l.now()-l.from.Received)
}

// answer looks packet i up and queues the reply, or starts a miss.
func (l *loop) answer(i int) {
	p := l.batch.packets[i]
	from := l.from
	from.Client = p.from()
	if !l.acceptable(p, from.Client) {
		return
	}
	reply, v := l.handler.Lookup(p.reply[:0], p.query[:p.length], from)
	switch {
	case v == Miss:
		l.miss(i, from)
	case v == Answered && len(reply) > 0:
		l.batch.queue(i, reply, l.socket)
	}
}

// acceptable drops and counts what no handler need see.
func (l *loop) acceptable(p *packet, client netip.AddrPort) bool {
	switch {
	case p.length < headerSize:
		l.counters.short.Add(1)
	case p.length > MaxDatagram:
		l.counters.long.Add(1)
	case badSource(client.Port()) || client == l.socket.addr:
		l.counters.badSource.Add(1)
	default:
		return true
	}
	return false
}

// badSource names the source ports that are not answered: no reply can reach
// port 0, and echo, daytime, qotd, chargen and time answer anything they get,
// so that a forged query would start an endless exchange.
func badSource(port uint16) bool {
	switch port {
	case 0, 7, 13, 17, 19, 37:
		return true
	}
	return false
}

// miss hands packet i to a resolver.
func (l *loop) miss(i int, from Peer) {
	l.counters.missed.Add(1)
	if !l.udp.inFlight.tryTake() {
		l.counters.full.Add(1)
		return
	}
	p := l.batch.swap(i, l.udp.packets.take())
	l.udp.misses.start(miss{l, p, from})
}

// resolve owns p and releases it.
func (l *loop) resolve(p *packet, from Peer) {
	defer l.udp.inFlight.give()
	defer l.udp.packets.release(p)
	reply, v := l.handler.Resolve(l.ctx, p.reply[:0], p.query[:p.length], from)
	if v != Answered || len(reply) == 0 {
		return
	}
	if send(l.socket, p, reply) != nil {
		l.counters.sendErrors.Add(1)
		return
	}
	l.counters.answered.Add(1)
}
