package neverdark

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// connections are TCP connections of pods, of which half asks all the time and half
// has asked once. One that was ended is opened again.
type connections struct {
	n    *node
	done sync.WaitGroup
	ends atomic.Bool

	refused  atomic.Int64 // connections that could not be opened
	reset    atomic.Int64 // connections reset while a reply was owed
	hungUp   atomic.Int64 // connections ended in good form while a reply was owed
	finished atomic.Int64 // connections ended in good form while none was owed
	answered atomic.Int64
	opened   atomic.Int64
	open     atomic.Int64
}

// connect opens connections, half of them from each pod.
func (n *node) connect(count int, to string) *connections {
	n.t.Helper()
	c := &connections{n: n}
	n.t.Cleanup(c.stop)
	for i := range count {
		from := []space.Space{n.Bridged, n.Routed}[i%2]
		busy := i%4 < 2
		c.done.Go(func() {
			for !c.ends.Load() {
				c.live(from, to, busy)
			}
		})
	}
	waitFor(n.t, "all connections are open", 20*time.Second, func() bool { return c.open.Load() == int64(count) })
	return c
}

// live is the life of one connection.
func (c *connections) live(from space.Space, to string, busy bool) {
	var conn net.Conn
	err := from.Try(func() (err error) {
		conn, err = net.DialTimeout("tcp", to, 5*time.Second)
		return err
	})
	if err != nil {
		c.refused.Add(1)
		time.Sleep(100 * time.Millisecond)
		return
	}
	defer conn.Close()
	c.opened.Add(1)
	c.open.Add(1)
	defer c.open.Add(-1)
	for first := true; !c.ends.Load(); first = false {
		if first || busy {
			_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
			if err := askOn(conn); err != nil {
				c.count(err, true)
				return
			}
			c.answered.Add(1)
			_ = conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		} else {
			_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		}
		var none [1]byte
		if _, err := conn.Read(none[:]); !isTimeout(err) {
			c.count(err, false)
			return
		}
	}
}

func (c *connections) count(err error, owed bool) {
	switch {
	case !owed:
		c.finished.Add(1)
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), isTimeout(err):
		c.reset.Add(1)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		c.hungUp.Add(1)
	default:
		c.reset.Add(1)
	}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

func (c *connections) stop() {
	c.ends.Store(true)
	c.done.Wait()
}

func (c *connections) judge(event string) {
	c.n.t.Helper()
	c.n.t.Logf("%s: %d connections, %d replies; %d refused, %d reset and %d ended while a reply was owed, %d ended otherwise",
		event, c.opened.Load(), c.answered.Load(), c.refused.Load(), c.reset.Load(), c.hungUp.Load(), c.finished.Load())
	if c.refused.Load() != 0 || c.reset.Load() != 0 {
		c.n.t.Errorf("%s: %d connections refused, %d reset while a reply was owed, want none", event, c.refused.Load(), c.reset.Load())
	}
}

// TestConnections restarts nodens under 200 TCP connections.
func TestConnections(t *testing.T) {
	const count = 200
	for _, c := range []struct {
		name  string
		event func(n *node, d *daemon) *daemon
	}{
		{"restart with a successor", func(n *node, d *daemon) *daemon {
			next := n.start()
			d.stop()
			return next
		}},
		{"restart without one", func(n *node, d *daemon) *daemon {
			d.stop()
			time.Sleep(500 * time.Millisecond)
			return n.start()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNode(t, hostnet.LinkLocal)
			d := n.start()
			conns := n.connect(count, own4+":53")
			for range space.Form(3, 10) {
				time.Sleep(300 * time.Millisecond)
				d = c.event(n, d)
			}
			time.Sleep(300 * time.Millisecond)
			conns.stop()
			conns.judge(c.name)
		})
	}
}

// TestConnectionsOfTheFallback end where they began: a nodens that comes back resets
// none of those that CoreDNS answers meanwhile.
func TestConnectionsOfTheFallback(t *testing.T) {
	n := newNode(t, hostnet.LinkLocal)
	d := n.start() // tells the guard who is behind
	warmUp()
	d.stop()
	conns := n.connect(200, own4+":53")
	time.Sleep(300 * time.Millisecond)
	n.start()
	time.Sleep(space.Form(time.Second, 5*time.Second))
	conns.stop()
	conns.judge("return during fallback")
	if conns.hungUp.Load()+conns.finished.Load() > 0 {
		t.Errorf("%d connections ended, want none", conns.hungUp.Load()+conns.finished.Load())
	}
}
