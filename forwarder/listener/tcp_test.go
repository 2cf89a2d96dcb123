package listener_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/nodens-dns/nodens/forwarder/listener"
)

// read returns the serial number of the next reply.
func read(t *testing.T, c io.Reader) int {
	t.Helper()
	msg, err := readFramed(c)
	if err != nil {
		t.Fatalf("no reply: %v", err)
	}
	return serial(msg)
}

// expectEnd reads until the server ends the connection, by FIN or reset.
func expectEnd(t *testing.T, c net.Conn) {
	t.Helper()
	n, err := io.Copy(io.Discard, c)
	var timeout net.Error
	if n != 0 || errors.As(err, &timeout) && timeout.Timeout() {
		t.Errorf("%d more bytes, then %v; want the end of the connection", n, err)
	}
}

func TestTCPManyQueriesOnOneConnection(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "::1"} {
		for name, lookup := range map[string]func(_, _ []byte, _ listener.Peer) ([]byte, listener.Verdict){
			"hit": nil, "miss": alwaysMiss, "mixed": everyThirdMisses,
		} {
			t.Run(host+" "+name, func(t *testing.T) {
				l, r := startTCP(t, listener.TCPConfig{Addr: loopback(host), Handler: &handler{lookup: lookup}})
				c := dial(t, "tcp", l.Addr())
				for i := range 50 {
					mustWrite(t, c, framed(query(i)))
					if got := read(t, c); got != i {
						t.Fatalf("asked %d, got %d", i, got)
					}
				}
				// Two in one segment, as resolvers ask for both address families.
				mustWrite(t, c, append(framed(query(1)), framed(query(2))...))
				if a, b := read(t, c), read(t, c); a+b != 3 {
					t.Errorf("replies %d and %d", a, b)
				}
				_ = c.Close()
				eventually(t, "the connection is gone", func() bool { return l.Stats().Connections == 0 })
				r.end(t)
				if s := l.Stats(); s.Received != 52 || s.Answered != 52 || s.Accepted != 1 || s.InFlight != 0 || s.Stalled != 0 {
					t.Errorf("stats: %+v", s)
				}
			})
		}
	}
}

// A query that comes byte by byte is one query; so is one longer than the
// reader's usual buffer, and its long reply is one reply.
func TestTCPFraming(t *testing.T) {
	for name, lookup := range map[string]func(_, _ []byte, _ listener.Peer) ([]byte, listener.Verdict){
		"hit": nil, "miss": alwaysMiss,
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := startTCP(t, listener.TCPConfig{Addr: loopback("127.0.0.1"), Handler: &handler{lookup: lookup}})
			c := dial(t, "tcp", l.Addr())
			for _, b := range framed(query(5)) {
				mustWrite(t, c, []byte{b})
			}
			if got := read(t, c); got != 5 {
				t.Errorf("got %d", got)
			}
			for _, size := range []int{12, 4000, 4093, 4094, 4095, 4096, 30_000, 65535, 12} {
				msg := bytes.Repeat([]byte{byte(size)}, size)
				mustWrite(t, c, append(framed(msg), framed(query(size))...))
				for range 2 {
					got, err := readFramed(c)
					if err != nil {
						t.Fatal(err)
					}
					if !bytes.Equal(got, msg) && !bytes.Equal(got, query(size)) {
						t.Fatalf("size %d: a reply of %d bytes is neither query", size, len(got))
					}
				}
			}
		})
	}
}

// A fast answer does not wait for a slow one that was asked before it, and two
// queries of one ID are two queries.
func TestTCPOutOfOrderAndSameID(t *testing.T) {
	release := make(chan struct{})
	h := &handler{
		lookup: func(dst, q []byte, _ listener.Peer) ([]byte, listener.Verdict) {
			if serial(q) >= 1<<16 {
				return nil, listener.Miss
			}
			return append(dst, q...), listener.Answered
		},
		resolve: func(_ context.Context, dst, q []byte, _ listener.Peer) ([]byte, listener.Verdict) {
			<-release
			return append(dst, q...), listener.Answered
		},
	}
	l, _ := startTCP(t, listener.TCPConfig{Addr: loopback("127.0.0.1"), Handler: h})
	c := dial(t, "tcp", l.Addr())
	slow := []int{1<<16 + 9, 2<<16 + 9} // both have the ID 9
	mustWrite(t, c, append(framed(query(slow[0])), framed(query(slow[1]))...))
	mustWrite(t, c, framed(query(9)))
	if got := read(t, c); got != 9 {
		t.Fatalf("first reply %d", got)
	}
	close(release)
	if a, b := read(t, c), read(t, c); a+b != slow[0]+slow[1] || a == b {
		t.Errorf("slow replies %d and %d", a, b)
	}
}

// Queries are told apart by what they are, not by their ID.
func TestTCPSameIDs(t *testing.T) {
	h := &handler{lookup: alwaysMiss, resolve: func(_ context.Context, dst, q []byte, _ listener.Peer) ([]byte, listener.Verdict) {
		return append(dst, q...), listener.Answered
	}}
	l, _ := startTCP(t, listener.TCPConfig{Addr: loopback("127.0.0.1"), Handler: h})
	c := dial(t, "tcp", l.Addr())
	const each = 50
	asked := map[int]bool{}
	var all []byte
	for i := range each {
		asked[i<<16|9] = true
		all = append(all, framed(query(i<<16|9))...)
	}
	for i := range each {
		asked[100+i] = true
		all = append(all, framed(query(100+i))...)
	}
	mustWrite(t, c, all)
	for range 2 * each {
		delete(asked, read(t, c))
	}
	if len(asked) != 0 {
		t.Errorf("not answered: %v", asked)
	}
	eventually(t, "nothing is in flight", func() bool { return l.Stats().InFlight == 0 })
}

func TestTCPPipelinedHits(t *testing.T) {
	const queries = 100_000
	l, _ := startTCP(t, listener.TCPConfig{Addr: loopback("127.0.0.1"), Handler: &handler{}})
	c := dial(t, "tcp", l.Addr())
	var writer sync.WaitGroup
	writer.Go(func() {
		w := bufio.NewWriter(c)
		for i := range queries {
			_, _ = w.Write(framed(query(i)))
		}
		if err := w.Flush(); err != nil {
			t.Errorf("write: %v", err)
		}
	})
	r := bufio.NewReader(c)
	for i := range queries {
		if got := read(t, r); got != i {
			t.Fatalf("reply %d in place of %d", got, i)
		}
	}
	writer.Wait()
}
