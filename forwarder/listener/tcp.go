package listener

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"
)

// acceptPause is how long accepting pauses after it failed, for want of file
// descriptors or memory.
const acceptPause = 20 * time.Millisecond

// TCP answers the connections to one address.
type TCP struct {
	cfg       TCPConfig
	listener  *net.TCPListener
	addr      netip.AddrPort
	counters  tcpCounters
	admission *admission
	inFlight  slots
	outputs   sync.Pool // of *output, one for each connection that is writing
	life      lifetime
	readers   sync.WaitGroup
}

// ListenTCP binds the socket of cfg. Nothing is accepted before Run. The error
// says which address failed and wraps the reason, a syscall.Errno.
func ListenTCP(cfg TCPConfig) (*TCP, error) {
	cfg = cfg.withDefaults()
	lc := net.ListenConfig{
		KeepAlive: -1, // the idle timeout is shorter
		Control: func(_, _ string, raw syscall.RawConn) error {
			return control(raw, func(fd int) error { return errors.Join(share(fd), limitBuffers(fd)) })
		},
	}
	lc.SetMultipathTCP(false) // its sockets take no program, see leave.go
	l, err := lc.Listen(context.Background(), network("tcp", cfg.Addr), cfg.Addr.String())
	if err != nil {
		return nil, explain("tcp", cfg.Addr, err)
	}
	listener := l.(*net.TCPListener)
	port := listener.Addr().(*net.TCPAddr).AddrPort().Port()
	t := &TCP{
		cfg:       cfg,
		listener:  listener,
		addr:      netip.AddrPortFrom(cfg.Addr.Addr(), port),
		admission: newAdmission(cfg.MaxConnections, cfg.MaxPerClient),
		inFlight:  newSlots(cfg.MaxInFlight),
	}
	t.outputs.New = func() any { return new(output) }
	t.control(unsteer) // what one that left attached
	return t, nil
}

// Run answers queries until ctx ends. It then hands new connections over,
// accepts those that are under way, answers what was received, waits for the
// misses in flight, and closes every connection. It can run once. The error tells of a listener that failed; nil is the
// normal end.
func (t *TCP) Run(ctx context.Context) error {
	if err := t.life.begin(); err != nil {
		return fmt.Errorf("run tcp %v: %w", t.addr, err)
	}
	resolving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	// The acceptor leaves its wait when ctx ends; the goroutine that tells it
	// to is gone before its queue is drained.
	told := make(chan struct{})
	accepting, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		defer close(told)
		<-accepting.Done()
		_ = t.listener.SetDeadline(past)
	}()
	err := t.accept(ctx, resolving)
	stop()
	<-told
	t.leave(resolving)
	err = errors.Join(err, t.listener.Close())
	t.stopReaders()
	timer := time.AfterFunc(t.cfg.Grace, cancel)
	defer timer.Stop()
	t.readers.Wait()
	return err
}

// Addr returns the address the socket is bound to, with the port that the
// kernel chose if TCPConfig.Addr left it open.
func (t *TCP) Addr() netip.AddrPort { return t.addr }

// Stats returns the counters. It may be called at any time.
func (t *TCP) Stats() TCPStats {
	s := t.counters.snapshot()
	s.Connections = t.admission.inUse()
	s.InFlight = t.inFlight.inUse()
	return s
}

// Close releases the socket of a TCP that was never run. Once Run was called
// it does nothing, because Run closes it.
func (t *TCP) Close() error {
	if t.life.begin() != nil {
		return nil
	}
	return t.listener.Close()
}

// accept takes connections until ctx ends.
func (t *TCP) accept(ctx, resolving context.Context) error {
	for ctx.Err() == nil {
		nc, err := t.listener.AcceptTCP()
		switch {
		case err == nil:
			t.admit(resolving, nc)
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("accept tcp %v: %w", t.addr, err)
		case !errors.Is(err, os.ErrDeadlineExceeded):
			t.counters.acceptErrors.Add(1)
			if !t.relieve(err) {
				pause(ctx, acceptPause)
			}
		}
	}
	return nil
}

// relieve makes room for the connection that could not be accepted, if want of
// file descriptors was the reason and someone can be evicted. Each call that
// says true closed one connection, so that accepting again cannot spin.
func (t *TCP) relieve(err error) bool {
	if !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE) {
		return false
	}
	evicted, was := t.admission.relieve(t.cfg.Now())
	t.evict(evicted, was)
	return evicted != nil
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// admit starts the reader of a connection, and evicts another if there are too
// many.
func (t *TCP) admit(resolving context.Context, nc *net.TCPConn) {
	t.counters.accepted.Add(1)
	client := nc.RemoteAddr().(*net.TCPAddr).AddrPort()
	client = netip.AddrPortFrom(client.Addr().Unmap().WithZone(""), client.Port())
	c := newConn(t, nc, client)
	t.evict(t.admission.enter(c, t.cfg.Now()))
	t.readers.Go(func() {
		defer t.admission.leave(&c.seat)
		c.serve(resolving)
	})
}

// evict ends a connection that lost its seat, nil for none. It is reset, so
// that the kernel keeps nothing for it either; what it was sent before stays
// readable to its client.
func (t *TCP) evict(c *conn, was class) {
	if c != nil {
		t.counters.evicted[was].Add(1)
		c.abort()
	}
}

func (t *TCP) stopReaders() {
	for _, c := range t.admission.conns() {
		c.stop()
	}
}

// pressure returns by what timeouts are divided as connections fill up: ten
// below half of them free, fifty below a fifth.
func (t *TCP) pressure() time.Duration {
	switch free := t.admission.free(); {
	case free >= 50:
		return 1
	case free >= 20:
		return 10
	default:
		return 50
	}
}

// idle returns the idle timeout under the pressure of now.
func (t *TCP) idle() time.Duration { return t.cfg.IdleTimeout / t.pressure() }

// patience returns a timeout for what a client is in the middle of, under the
// pressure of now: an honest one may be slow, so it shrinks less.
func (t *TCP) patience(timeout time.Duration) time.Duration {
	return timeout / min(t.pressure(), 10)
}
