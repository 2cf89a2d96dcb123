package listener_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/forwarder/listener"
)

// A client that ends its side still gets what it asked for.
func TestTCPHalfClose(t *testing.T) {
	h := &handler{lookup: everyThirdMisses, resolve: func(_ context.Context, dst, q []byte, _ listener.Peer) ([]byte, listener.Verdict) {
		time.Sleep(50 * time.Millisecond)
		return append(dst, q...), listener.Answered
	}}
	l, _ := startTCP(t, listener.TCPConfig{Addr: loopback("127.0.0.1"), Handler: h})
	c := dial(t, "tcp", l.Addr()).(*net.TCPConn)
	for i := range 20 {
		mustWrite(t, c, framed(query(i)))
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		read(t, c)
	}
	expectEnd(t, c)
}

// The end answers what was asked on open connections, and on those that wait
// to be accepted, before it closes any.
func TestTCPEndAnswersWhatWasAsked(t *testing.T) {
	started, release := make(chan struct{}, 100), make(chan struct{})
	h := &handler{lookup: everyThirdMisses, resolve: func(_ context.Context, dst, q []byte, _ listener.Peer) ([]byte, listener.Verdict) {
		started <- struct{}{}
		<-release
		return append(dst, q...), listener.Answered
	}}
	l, r := startTCP(t, listener.TCPConfig{Addr: loopback("127.0.0.1"), Handler: h})
	open, idle := dial(t, "tcp", l.Addr()), dial(t, "tcp", l.Addr())
	mustWrite(t, open, append(framed(query(1)), framed(query(3))...))
	read(t, open)
	<-started
	late := make([]net.Conn, 10)
	for i := range late {
		late[i] = dial(t, "tcp", l.Addr())
		mustWrite(t, late[i], framed(query(3*i+4)))
	}
	r.stop()
	time.AfterFunc(100*time.Millisecond, func() { close(release) })
	for i, c := range late {
		if got := read(t, c); got != 3*i+4 {
			t.Errorf("late connection %d: %d", i, got)
		}
		expectEnd(t, c)
	}
	if got := read(t, open); got != 3 {
		t.Errorf("open connection: %d", got)
	}
	expectEnd(t, open)
	expectEnd(t, idle)
	r.end(t)
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("the address still accepts")
	}
}

// Connections that the kernel completed are served though Run ends at once, and
// though the time of silence is over before it looks.
func TestTCPEndServesTheAcceptQueue(t *testing.T) {
	for name, quiet := range map[string]time.Duration{"in time": 0, "late": time.Nanosecond} {
		t.Run(name, func(t *testing.T) { endWithAcceptQueue(t, quiet) })
	}
}

func endWithAcceptQueue(t *testing.T, quiet time.Duration) {
	checkLeaks(t)
	l, err := listener.ListenTCP(listener.TCPConfig{Addr: loopback("127.0.0.1"), Handler: &handler{}, DrainQuiet: quiet})
	if err != nil {
		t.Fatal(err)
	}
	var waiting []net.Conn
	for i := range 50 {
		c := dial(t, "tcp", l.Addr())
		mustWrite(t, c, framed(query(i)))
		waiting = append(waiting, c)
	}
	start(t, l.Run).stop()
	for i, c := range waiting {
		if got := read(t, c); got != i {
			t.Errorf("connection %d was answered %d", i, got)
		}
	}
}

func TestTCPEndCancelsMissesAfterTheGrace(t *testing.T) {
	started := make(chan struct{})
	h := &handler{lookup: alwaysMiss, resolve: func(ctx context.Context, _, _ []byte, _ listener.Peer) ([]byte, listener.Verdict) {
		close(started)
		<-ctx.Done()
		return nil, listener.Drop
	}}
	l, r := startTCP(t, listener.TCPConfig{Addr: loopback("127.0.0.1"), Handler: h, Grace: 50 * time.Millisecond})
	mustWrite(t, dial(t, "tcp", l.Addr()), framed(query(1)))
	<-started
	r.end(t)
}
