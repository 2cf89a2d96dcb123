package listener_test

import (
	"bytes"
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/forwarder/listener"
)

// At its cap a connection reads no further, and another connection does not
// notice.
func TestTCPBackPressure(t *testing.T) {
	const limit, queries = 4, 50
	release := make(chan struct{})
	var peak, now atomic.Int64
	h := &handler{lookup: alwaysMiss, resolve: func(_ context.Context, dst, q []byte, _ listener.Peer) ([]byte, listener.Verdict) {
		defer now.Add(-1)
		if n := now.Add(1); n > peak.Load() {
			peak.Store(n)
		}
		if serial(q) != 1000 {
			<-release
		}
		return append(dst, q...), listener.Answered
	}}
	l, r := startTCP(t, listener.TCPConfig{Addr: loopback("127.0.0.1"), Handler: h, MaxInFlightPerConnection: limit})
	c, other := dial(t, "tcp", l.Addr()), dial(t, "tcp", l.Addr())
	for i := range queries {
		mustWrite(t, c, framed(query(i)))
	}
	eventually(t, "the reader waits", func() bool { return l.Stats().Waited == 1 })
	if s := l.Stats(); s.InFlight != limit || s.Received != limit+1 {
		t.Errorf("stats at the cap: %+v", s)
	}
	mustWrite(t, other, framed(query(1000)))
	read(t, other)
	close(release)
	seen := map[int]bool{}
	for range queries {
		seen[read(t, c)] = true
	}
	r.end(t)
	if len(seen) != queries || peak.Load() > limit+1 || l.Stats().InFlight != 0 {
		t.Errorf("%d answers, at most %d at once, stats %+v", len(seen), peak.Load(), l.Stats())
	}
}

// The bound over all connections holds in the same way, and hits go on.
func TestTCPBoundOverAllConnections(t *testing.T) {
	release := make(chan struct{})
	h := &handler{lookup: everyThirdMisses, resolve: func(_ context.Context, dst, q []byte, _ listener.Peer) ([]byte, listener.Verdict) {
		<-release
		return append(dst, q...), listener.Answered
	}}
	l, _ := startTCP(t, listener.TCPConfig{Addr: loopback("127.0.0.1"), Handler: h, MaxInFlight: 3})
	var conns []net.Conn
	for i := range 6 {
		c := dial(t, "tcp", l.Addr())
		mustWrite(t, c, append(framed(query(3*i+1)), framed(query(3*i))...))
		conns = append(conns, c)
		if got := read(t, c); got != 3*i+1 {
			t.Errorf("the hit came back as %d", got)
		}
	}
	eventually(t, "three wait", func() bool { return l.Stats().Waited == 3 })
	if s := l.Stats(); s.InFlight != 3 {
		t.Errorf("stats at the bound: %+v", s)
	}
	close(release)
	for i, c := range conns {
		if got := read(t, c); got != 3*i {
			t.Errorf("the miss came back as %d, want %d", got, 3*i)
		}
	}
}

// A client that asks and never reads is cut, and what it cost is given back.
func TestTCPClientThatNeverReadsIsCut(t *testing.T) {
	big := make([]byte, 60_000)
	for name, lookup := range map[string]func(_, _ []byte, _ listener.Peer) ([]byte, listener.Verdict){
		"hit": func(dst, _ []byte, _ listener.Peer) ([]byte, listener.Verdict) {
			return append(dst, big...), listener.Answered
		},
		"miss": alwaysMiss,
	} {
		t.Run(name, func(t *testing.T) {
			h := &handler{lookup: lookup, resolve: func(_ context.Context, dst, _ []byte, _ listener.Peer) ([]byte, listener.Verdict) {
				return append(dst, big...), listener.Answered
			}}
			l, _ := startTCP(t, listener.TCPConfig{Addr: loopback("127.0.0.1"), Handler: h, WriteTimeout: 100 * time.Millisecond})
			c := dial(t, "tcp", l.Addr())
			many := bytes.Repeat(framed(query(1)), 2000) // 120 MB of replies
			if _, err := c.Write(many); err != nil {
				t.Logf("cut while asking: %v", err)
			}
			eventually(t, "the connection is cut", func() bool {
				s := l.Stats()
				return s.Stalled >= 1 && s.Connections == 0 && s.InFlight == 0
			})
		})
	}
}

func TestTCPTimeouts(t *testing.T) {
	const short = 400 * time.Millisecond // enough for a busy machine to send a query
	for name, c := range map[string]struct {
		cfg  listener.TCPConfig
		send func(t *testing.T, c net.Conn)
	}{
		"nothing is sent": {listener.TCPConfig{MessageTimeout: short}, func(*testing.T, net.Conn) {}},
		"half a prefix": {listener.TCPConfig{MessageTimeout: short}, func(t *testing.T, c net.Conn) {
			mustWrite(t, c, []byte{0})
		}},
		"a prefix and one byte": {listener.TCPConfig{MessageTimeout: short}, func(t *testing.T, c net.Conn) {
			mustWrite(t, c, []byte{0, 20, 1})
		}},
		"half a prefix after a query": {listener.TCPConfig{MessageTimeout: short}, func(t *testing.T, c net.Conn) {
			mustWrite(t, c, append(framed(query(1)), 0))
			read(t, c)
		}},
		"idle after a query": {listener.TCPConfig{IdleTimeout: short}, func(t *testing.T, c net.Conn) {
			mustWrite(t, c, framed(query(1)))
			read(t, c)
		}},
		"nothing is sent among many connections": {listener.TCPConfig{MaxConnections: 1, MessageTimeout: 20 * short}, func(*testing.T, net.Conn) {}},
		"idle among many connections": {listener.TCPConfig{MaxConnections: 1, IdleTimeout: 50 * short}, func(t *testing.T, c net.Conn) {
			mustWrite(t, c, framed(query(1)))
			read(t, c)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c.cfg.Addr, c.cfg.Handler = loopback("127.0.0.1"), &handler{}
			l, r := startTCP(t, c.cfg)
			conn := dial(t, "tcp", l.Addr())
			began := time.Now()
			c.send(t, conn)
			expectEnd(t, conn)
			if took := time.Since(began); took > 4*time.Second {
				t.Errorf("cut after %v", took)
			}
			r.end(t)
			if s := l.Stats(); s.TimedOut != 1 {
				t.Errorf("stats: %+v", s)
			}
		})
	}
}

// More bytes do not extend the time that a whole query has.
func TestTCPDrippingClientIsCut(t *testing.T) {
	l, _ := startTCP(t, listener.TCPConfig{Addr: loopback("127.0.0.1"), Handler: &handler{}, MessageTimeout: 200 * time.Millisecond})
	c := dial(t, "tcp", l.Addr())
	began := time.Now()
	for _, b := range framed(make([]byte, 5000)) {
		if _, err := c.Write([]byte{b}); err != nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("cut after %v", took)
	}
	eventually(t, "the timeout is counted", func() bool { return l.Stats().TimedOut == 1 })
}

// A silent connection stays, and takes more queries, while one is being
// resolved.
func TestTCPIdleWaitsForMisses(t *testing.T) {
	const idle = 20 * time.Millisecond
	release := make(chan struct{})
	h := &handler{lookup: everyThirdMisses, resolve: func(_ context.Context, dst, q []byte, _ listener.Peer) ([]byte, listener.Verdict) {
		<-release
		return append(dst, q...), listener.Answered
	}}
	l, _ := startTCP(t, listener.TCPConfig{Addr: loopback("127.0.0.1"), Handler: h, IdleTimeout: idle})
	c := dial(t, "tcp", l.Addr())
	mustWrite(t, c, framed(query(3)))
	time.Sleep(10 * idle)
	mustWrite(t, c, framed(query(4)))
	if got := read(t, c); got != 4 {
		t.Errorf("got %d", got)
	}
	close(release)
	if got := read(t, c); got != 3 {
		t.Errorf("got %d", got)
	}
	expectEnd(t, c)
}

func TestTCPCloses(t *testing.T) {
	closing := &handler{lookup: func(dst, q []byte, _ listener.Peer) ([]byte, listener.Verdict) {
		if serial(q) == 666 {
			return nil, listener.Close
		}
		return append(dst, q...), listener.Answered
	}}
	resolving := &handler{lookup: alwaysMiss, resolve: func(context.Context, []byte, []byte, listener.Peer) ([]byte, listener.Verdict) {
		return nil, listener.Close
	}}
	for name, c := range map[string]struct {
		h       *handler
		send    []byte
		replies int
	}{
		"length 0":             {&handler{}, framed(nil), 0},
		"length 11":            {&handler{}, framed(make([]byte, 11)), 0},
		"length 11 after one":  {&handler{}, append(framed(query(1)), framed(make([]byte, 11))...), 1},
		"lookup closes":        {closing, framed(query(666)), 0},
		"lookup closes second": {closing, append(framed(query(1)), framed(query(666))...), 1},
		"resolve closes":       {resolving, framed(query(1)), 0},
	} {
		t.Run(name, func(t *testing.T) {
			l, r := startTCP(t, listener.TCPConfig{Addr: loopback("127.0.0.1"), Handler: c.h})
			conn := dial(t, "tcp", l.Addr())
			mustWrite(t, conn, c.send)
			for range c.replies {
				read(t, conn)
			}
			expectEnd(t, conn)
			r.end(t)
			if s := l.Stats(); s.Malformed != 1 {
				t.Errorf("stats: %+v", s)
			}
		})
	}
}

func TestTCPMaxQueries(t *testing.T) {
	l, _ := startTCP(t, listener.TCPConfig{Addr: loopback("127.0.0.1"), Handler: &handler{}, MaxQueries: 3})
	c := dial(t, "tcp", l.Addr())
	mustWrite(t, c, bytes.Repeat(framed(query(1)), 5))
	for range 3 {
		read(t, c)
	}
	expectEnd(t, c)
}
