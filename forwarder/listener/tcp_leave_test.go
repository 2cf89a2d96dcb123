package listener_test

import (
	"context"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/forwarder/listener"
)

// callers connect, ask once and hang up, again and again. Whoever is refused, reset
// or left without a reply is counted.
type callers struct {
	clients        sync.WaitGroup
	stopping       atomic.Bool
	calls, refused atomic.Int64
}

func (c *callers) add(t *testing.T, to netip.AddrPort) {
	c.clients.Go(func() {
		for n := 0; !c.stopping.Load(); n++ {
			if err := call(to, n); err != nil && c.refused.Add(1) < 10 {
				t.Errorf("call %d: %v", n, err)
			}
			c.calls.Add(1)
		}
	})
}

func call(to netip.AddrPort, n int) error {
	conn, err := net.Dial("tcp", to.String())
	if err != nil {
		return err
	}
	defer conn.Close()
	// Without the state that the kernel keeps for an hour of ports.
	defer func() { _ = conn.(*net.TCPConn).SetLinger(0) }()
	if err := conn.SetDeadline(time.Now().Add(wide)); err != nil {
		return err
	}
	if _, err := conn.Write(framed(query(n))); err != nil {
		return err
	}
	_, err = readFramed(conn)
	return err
}

func slowMisses() *handler {
	return &handler{
		lookup: everyThirdMisses,
		resolve: func(_ context.Context, dst, q []byte, _ listener.Peer) ([]byte, listener.Verdict) {
			time.Sleep(time.Millisecond)
			return append(dst, q...), listener.Answered
		},
	}
}

// TestTCPHandoverRefusesNobody lets the oldest leave, the newest, or any of several
// that share the address, so that they change places.
func TestTCPHandoverRefusesNobody(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "::1"} {
		for _, c := range []struct {
			name string
			stay int // how many share the address while one more leaves
			who  func(n int) int
		}{
			{"the oldest of two", 1, func(int) int { return 0 }},
			{"the newest of two", 1, func(n int) int { return n - 1 }},
			{"any of four", 3, rand.IntN},
		} {
			t.Run(host+", "+c.name, func(t *testing.T) {
				// Callers may be kept from the CPU between connecting and asking, longer than
				// a silent connection is given by default.
				cfg := listener.TCPConfig{Addr: loopback(host), Handler: slowMisses(), MaxPerClient: 1000, DrainQuiet: 200 * time.Millisecond}
				var (
					all  []*running
					load callers
				)
				begin := func() {
					l, r := startTCP(t, cfg)
					cfg.Addr, all = l.Addr(), append(all, r)
				}
				begin()
				t.Cleanup(func() { load.stopping.Store(true); load.clients.Wait() })
				for range 4 {
					load.add(t, cfg.Addr)
				}
				for range c.stay - 1 {
					begin()
				}
				for range 8 {
					begin()
					before := load.calls.Load()
					eventually(t, "there is load", func() bool { return load.calls.Load() > before+100 })
					i := c.who(len(all))
					all[i].end(t)
					all = append(all[:i], all[i+1:]...)
				}
				load.stopping.Store(true)
				load.clients.Wait()
				for _, r := range all {
					r.end(t)
				}
				if n := load.refused.Load(); n != 0 {
					t.Errorf("%d of %d calls failed", n, load.calls.Load())
				}
				t.Logf("%d calls over 8 handovers", load.calls.Load())
			})
		}
	}
}
