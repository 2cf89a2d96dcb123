package listener_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/forwarder/listener"
)

// everyThirdMisses is a lookup.
func everyThirdMisses(dst, q []byte, _ listener.Peer) ([]byte, listener.Verdict) {
	if serial(q)%3 == 0 {
		return nil, listener.Miss
	}
	return append(dst, q...), listener.Answered
}

// load keeps a few queries outstanding on each of its sockets until stopped,
// and counts what was never answered.
type load struct {
	clients    sync.WaitGroup
	stopping   atomic.Bool
	sent, lost atomic.Int64
}

func (l *load) add(t *testing.T, u *listener.UDP, window int) {
	c := dial(t, "udp", u.Addr()).(*net.UDPConn)
	l.clients.Go(func() {
		outstanding := map[int]bool{}
		buf := make([]byte, 100)
		for next := 0; ; {
			_ = c.SetDeadline(time.Now().Add(wide))
			for ; len(outstanding) < window && !l.stopping.Load(); next++ {
				if _, err := c.Write(query(next)); err != nil {
					t.Errorf("write: %v", err)
					return
				}
				outstanding[next] = true
				l.sent.Add(1)
			}
			if len(outstanding) == 0 {
				return
			}
			n, err := c.Read(buf)
			if err != nil {
				l.lost.Add(int64(len(outstanding)))
				return
			}
			delete(outstanding, serial(buf[:n]))
		}
	})
}

func TestHandoverToASuccessorLosesNothing(t *testing.T) {
	cfg := listener.UDPConfig{Addr: loopback("127.0.0.1"), Sockets: 2, Handler: &handler{
		lookup: everyThirdMisses,
		resolve: func(_ context.Context, dst, q []byte, _ listener.Peer) ([]byte, listener.Verdict) {
			time.Sleep(time.Millisecond)
			return append(dst, q...), listener.Answered
		},
	}}
	old, oldRun := startUDP(t, cfg)
	cfg.Addr = old.Addr()
	var l load
	// The kernel spreads flows over the sockets of both listeners by chance: with
	// so many, neither is ever left without one.
	for range 32 {
		l.add(t, old, 4)
	}
	const generations = 5
	for range generations {
		successor, successorRun := startUDP(t, cfg)
		before := old.Stats().Answered
		eventually(t, "the old listener is under load", func() bool { return old.Stats().Answered > before+500 })
		oldRun.end(t)
		old, oldRun = successor, successorRun
		eventually(t, "the successor has the load", func() bool { return old.Stats().Answered > 500 })
	}
	l.stopping.Store(true)
	l.clients.Wait()
	if l.lost.Load() != 0 {
		t.Errorf("%d of %d queries lost over %d handovers; overflowed: %d", l.lost.Load(), l.sent.Load(), generations, old.Stats().Overflowed)
	}
	t.Logf("%d queries over %d handovers", l.sent.Load(), generations)
}

// What the kernel had taken for us before the end is answered, though the loop
// had not read it yet, and though the time of silence is over before it looks: it
// may wait that long for a CPU.
func TestEndWithoutSuccessorAnswersWhatWasReceived(t *testing.T) {
	for name, quiet := range map[string]time.Duration{"in time": 0, "late": time.Nanosecond} {
		t.Run(name, func(t *testing.T) { endWithQueue(t, quiet) })
	}
}

func endWithQueue(t *testing.T, quiet time.Duration) {
	const queries = 300
	open := make(chan struct{})
	h := &handler{lookup: func(dst, q []byte, from listener.Peer) ([]byte, listener.Verdict) {
		<-open
		return everyThirdMisses(dst, q, from)
	}}
	u, r := startUDP(t, listener.UDPConfig{Addr: loopback("127.0.0.1"), Sockets: 2, Handler: h, DrainQuiet: quiet})
	var clients []net.Conn
	for range 6 {
		clients = append(clients, dial(t, "udp", u.Addr()))
	}
	for i := range queries {
		mustWrite(t, clients[i%len(clients)], query(i))
	}
	r.stop()
	close(open)
	r.end(t)
	answered := map[int]bool{}
	for i := range queries {
		buf := make([]byte, 100)
		n, err := clients[i%len(clients)].Read(buf)
		if err != nil {
			t.Fatalf("after %d replies: %v", i, err)
		}
		answered[serial(buf[:n])] = true
	}
	if len(answered) != queries {
		t.Errorf("%d of %d queries answered", len(answered), queries)
	}
	if s := u.Stats(); s.Received != queries || s.Answered != queries {
		t.Errorf("stats: %+v", s)
	}
}

func TestEndWaitsForMissesInFlight(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	h := &handler{lookup: alwaysMiss, resolve: func(ctx context.Context, dst, q []byte, _ listener.Peer) ([]byte, listener.Verdict) {
		close(started)
		select {
		case <-release:
			return append(dst, q...), listener.Answered
		case <-ctx.Done():
			return nil, listener.Drop
		}
	}}
	u, r := startUDP(t, listener.UDPConfig{Addr: loopback("127.0.0.1"), Handler: h, Grace: wide})
	c := dial(t, "udp", u.Addr())
	mustWrite(t, c, query(7))
	<-started
	r.stop()
	time.AfterFunc(100*time.Millisecond, func() { close(release) })
	buf := make([]byte, 100)
	if n, err := c.Read(buf); err != nil || serial(buf[:n]) != 7 {
		t.Errorf("reply: %v %v", buf[:n], err)
	}
	r.end(t)
}

func TestEndCancelsMissesAfterTheGrace(t *testing.T) {
	started := make(chan struct{})
	h := &handler{lookup: alwaysMiss, resolve: func(ctx context.Context, _, _ []byte, _ listener.Peer) ([]byte, listener.Verdict) {
		close(started)
		<-ctx.Done()
		return nil, listener.Drop
	}}
	u, r := startUDP(t, listener.UDPConfig{Addr: loopback("127.0.0.1"), Handler: h, Grace: 50 * time.Millisecond})
	mustWrite(t, dial(t, "udp", u.Addr()), query(7))
	<-started
	r.end(t)
}

// A socket bound to all addresses hands over as well, and goes on answering
// from the one that was asked.
func TestHandoverOfAWildcard(t *testing.T) {
	for _, c := range []struct{ bind, ask string }{{"0.0.0.0", "127.0.0.2"}, {"::", "::1"}} {
		t.Run(c.bind, func(t *testing.T) {
			open := make(chan struct{})
			h := &handler{lookup: func(dst, q []byte, _ listener.Peer) ([]byte, listener.Verdict) {
				<-open
				return append(dst, q...), listener.Answered
			}}
			u, r := startUDP(t, listener.UDPConfig{Addr: loopback(c.bind), Handler: h})
			to := loopback(c.ask)
			conn := dial(t, "udp", netipPort(to, u.Addr().Port()))
			for i := range 100 {
				mustWrite(t, conn, query(i))
			}
			r.stop()
			close(open)
			buf := make([]byte, 100)
			for i := range 100 {
				if _, err := conn.Read(buf); err != nil {
					t.Fatalf("after %d replies: %v", i, err)
				}
			}
		})
	}
}
