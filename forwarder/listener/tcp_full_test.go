package listener_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/forwarder/listener"
)

// askFrom opens a connection from host, asks at once, and returns what went
// wrong.
func askFrom(host string, to netip.AddrPort, n int) error {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(host)}, Timeout: wide}
	c, err := d.Dial("tcp", to.String())
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(wide))
	if _, err = c.Write(framed(query(n))); err != nil {
		return err
	}
	msg, err := readFramed(c)
	if err == nil && serial(msg) != n {
		err = fmt.Errorf("asked %d, got %d", n, serial(msg))
	}
	return err
}

// siege is attackers that each hold one connection, and open it again when it
// is closed.
type siege struct {
	ctx  context.Context
	each sync.WaitGroup
}

// lay starts attackers from 127.0.0.2 on until the test ends. Each says send.
func lay(t *testing.T, to netip.AddrPort, hosts, each int, send []byte) {
	ctx, lift := context.WithCancel(context.Background())
	s := &siege{ctx: ctx}
	for i := range hosts * each {
		host := net.IPv4(127, 0, 0, byte(2+i%hosts))
		s.each.Go(func() { s.attack(host, to, send) })
	}
	t.Cleanup(func() {
		lift()
		s.each.Wait()
	})
}

func (s *siege) attack(from net.IP, to netip.AddrPort, send []byte) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: from}, Timeout: wide}
	for s.ctx.Err() == nil {
		if c, err := d.DialContext(s.ctx, "tcp", to.String()); err == nil {
			ended := context.AfterFunc(s.ctx, func() { _ = c.Close() })
			_, _ = c.Write(send)
			_, _ = io.Copy(io.Discard, c)
			ended()
			_ = c.Close()
		}
		select {
		case <-s.ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Whoever asks at once is answered though others hold every connection there
// may be, and open each again as it is closed.
func TestTCPIsNotLockedOut(t *testing.T) {
	slow := func(ctx context.Context, _, _ []byte, _ listener.Peer) ([]byte, listener.Verdict) {
		select {
		case <-ctx.Done():
		case <-time.After(3 * time.Second):
		}
		return nil, listener.Drop
	}
	const hosts, each, attackers = 8, 32, 8 * 32
	for name, c := range map[string]struct {
		send      []byte
		honest    string
		perClient int
		evicted   func(listener.TCPStats) uint64
	}{
		"they send nothing":          {nil, "127.0.0.1", attackers, func(s listener.TCPStats) uint64 { return s.EvictedSilent }},
		"they send half a query":     {framed(query(3))[:9], "127.0.0.1", attackers, func(s listener.TCPStats) uint64 { return s.EvictedSilent }},
		"they ask once":              {framed(query(1)), "127.0.0.1", attackers, func(s listener.TCPStats) uint64 { return s.EvictedIdle }},
		"they ask what takes long":   {framed(query(3)), "127.0.0.1", attackers, func(s listener.TCPStats) uint64 { return s.EvictedBusy }},
		"they share the one address": {nil, "127.0.0.2", each, func(s listener.TCPStats) uint64 { return s.EvictedSilent }},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			l, _ := startTCP(t, listener.TCPConfig{
				Addr: loopback("127.0.0.1"), Handler: &handler{lookup: everyThirdMisses, resolve: slow},
				MaxConnections: attackers, MaxPerClient: c.perClient, Grace: time.Millisecond,
				MessageTimeout: time.Hour, IdleTimeout: time.Hour, // only eviction helps
				// Whoever asks at once may wait long for a CPU here, and is no laggard.
				Now: func() time.Duration { return time.Since(began) / 100 },
			})
			lay(t, l.Addr(), hosts, each, c.send)
			eventually(t, "no connection is free", func() bool { return l.Stats().Connections == attackers })
			var clients sync.WaitGroup
			for first := range 4 {
				clients.Go(func() {
					for i := range 50 {
						if err := askFrom(c.honest, l.Addr(), 3*(50*first+i)+1); err != nil {
							t.Errorf("query %d of client %d: %v", i, first, err)
						}
					}
				})
			}
			clients.Wait()
			if s := l.Stats(); c.evicted(s) == 0 || s.Connections > attackers {
				t.Errorf("stats: %+v", s)
			}
		})
	}
}

// Replies that nobody takes shut nobody out either, and the kernel keeps little
// of them.
func TestTCPStalledClientsAreEvicted(t *testing.T) {
	const limit, size = 4, 60_000
	big := make([]byte, size)
	h := &handler{lookup: func(dst, q []byte, _ listener.Peer) ([]byte, listener.Verdict) {
		if serial(q) == 1 {
			return append(dst, q...), listener.Answered
		}
		return append(dst, big...), listener.Answered
	}}
	l, _ := startTCP(t, listener.TCPConfig{
		Addr: loopback("127.0.0.1"), Handler: h, MaxConnections: limit, WriteTimeout: time.Hour, IdleTimeout: time.Hour,
	})
	many := bytes.Repeat(framed(query(2)), 100)
	for range limit {
		mustWrite(t, dial(t, "tcp", l.Addr()), many)
	}
	// What one of them stands for in the kernel is more than one reply and less
	// than all, so that each has asked once none is answered any more.
	var last, same uint64
	eventually(t, "all writes stall", func() bool {
		time.Sleep(50 * time.Millisecond)
		before := last
		if last = l.Stats().Answered; last != before || last < limit {
			same = 0
		}
		same++
		return same > 5 && l.Stats().Connections == limit
	})
	if kept := last * size; kept > limit<<20 {
		t.Errorf("the kernel took %d bytes of %d clients that read nothing", kept, limit)
	}
	for range 2 * limit {
		if err := askFrom("127.0.0.1", l.Addr(), 1); err != nil {
			t.Error(err)
		}
	}
	if s := l.Stats(); s.EvictedBusy == 0 || s.Stalled != 0 {
		t.Errorf("stats: %+v", s)
	}
}

// What an idle connection was sent is not lost when it is evicted.
func TestTCPEvictedClientKeepsItsReplies(t *testing.T) {
	l, _ := startTCP(t, listener.TCPConfig{Addr: loopback("127.0.0.1"), Handler: &handler{}, MaxConnections: 1, IdleTimeout: time.Hour})
	c := dial(t, "tcp", l.Addr())
	mustWrite(t, c, framed(query(7)))
	eventually(t, "the reply is sent", func() bool { return l.Stats().Answered == 1 })
	if err := askFrom("127.0.0.1", l.Addr(), 1); err != nil {
		t.Error(err)
	}
	if got := read(t, c); got != 7 {
		t.Errorf("got %d", got)
	}
	expectEnd(t, c)
}
