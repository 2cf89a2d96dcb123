package upstream_test

import (
	"context"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/forwarder/upstream"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// descriptors are what a process may have open.
type descriptors struct{ left atomic.Int64 }

// dial fails as the kernel does where none is left.
func (d *descriptors) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if d.left.Add(-1) < 0 {
		d.left.Add(1)
		return nil, &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("socket", syscall.EMFILE)}
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

// TestShortOfDescriptors has two for eight sockets: all queries go out on these.
func TestShortOfDescriptors(t *testing.T) {
	var d descriptors
	d.left.Store(2)
	s := serve(t, good(t))
	cfg := inOrder
	cfg.Dial, cfg.Sockets, cfg.SocketAge, cfg.Attempts = d.dial, 8, time.Hour, 1
	g := group(t, cfg, plain(s))
	for i := range 100 {
		mustAnswer(t, g, nameOf(i), wire.NoError)
	}
	if st := g.Status(); st.Open != 2 || st.Targets[0].OpenedUDP != 2 || st.Targets[0].HardErrors != 0 {
		t.Errorf("%d open, %d opened, %d hard errors", st.Open, st.Targets[0].OpenedUDP, st.Targets[0].HardErrors)
	}
}

// TestShortWhileRetired has the only socket out of use, with a query on its way, when
// there is no descriptor for another.
func TestShortWhileRetired(t *testing.T) {
	var d descriptors
	d.left.Store(1)
	entered, goOn := make(chan struct{}), make(chan struct{})
	s := serve(t, func(r *request) {
		if r.number == 0 {
			close(entered)
			<-goOn
		}
		good(t)(r)
	})
	cfg := inOrder
	cfg.Dial, cfg.Sockets, cfg.SocketQueries, cfg.Attempts = d.dial, 1, 1, 1
	g := group(t, cfg, plain(s))
	done := make(chan struct{})
	go func() {
		defer close(done)
		mustAnswer(t, g, "first.test", wire.NoError)
	}()
	<-entered
	mustAnswer(t, g, "second.test", wire.NoError)
	close(goOn)
	<-done
	if seen := s.requests(false); seen[0].from != seen[1].from {
		t.Error("the queries did not share a socket")
	}
	waitFor(t, "the socket closes", func() bool { return g.Status().Open == 0 })
}

// TestFirstSocketIsFree asks more servers than the bound has sockets: each gets one.
func TestFirstSocketIsFree(t *testing.T) {
	var servers []*server
	for range 4 { // of a cluster no more are used
		servers = append(servers, serve(t, good(t)))
	}
	for name, byTCP := range map[string]bool{"UDP": false, "TCP": true} {
		t.Run(name, func(t *testing.T) {
			cfg := patient
			cfg.Policy, cfg.ForceTCP, cfg.Attempts = upstream.Random, byTCP, 1
			cfg.Sockets, cfg.SocketAge, cfg.MaxOpen = 32, time.Hour, 1
			g := group(t, cfg, plain(servers...))
			for i := range 120 { // a server is left out once in 10^14 times
				mustAnswer(t, g, nameOf(i), wire.NoError)
			}
			for _, ts := range g.Status().Targets {
				if ts.OpenedUDP+ts.OpenedTCP == 0 || ts.HardErrors != 0 {
					t.Errorf("%v: %d and %d opened, %d hard errors", ts.Addr, ts.OpenedUDP, ts.OpenedTCP, ts.HardErrors)
				}
			}
			if open := g.Status().Open; open > len(servers) {
				t.Errorf("%d open, want at most %d", open, len(servers))
			}
		})
	}
}
