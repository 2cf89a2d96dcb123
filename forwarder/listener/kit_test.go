package listener_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/forwarder/listener"
)

// wide is a bound no test should come near.
const wide = time.Minute

// handler is a Handler of functions; what is not set echoes the query.
type handler struct {
	lookup  func(dst, query []byte, from listener.Peer) ([]byte, listener.Verdict)
	resolve func(ctx context.Context, dst, query []byte, from listener.Peer) ([]byte, listener.Verdict)
	done    func(from listener.Peer, took time.Duration)
}

func (h *handler) Lookup(dst, query []byte, from listener.Peer) ([]byte, listener.Verdict) {
	if h.lookup != nil {
		return h.lookup(dst, query, from)
	}
	return append(dst, query...), listener.Answered
}

func (h *handler) Resolve(ctx context.Context, dst, query []byte, from listener.Peer) ([]byte, listener.Verdict) {
	if h.resolve != nil {
		return h.resolve(ctx, dst, query, from)
	}
	return append(dst, query...), listener.Answered
}

func (h *handler) Done(from listener.Peer, took time.Duration) {
	if h.done != nil {
		h.done(from, took)
	}
}

// alwaysMiss is a lookup.
func alwaysMiss(_, _ []byte, _ listener.Peer) ([]byte, listener.Verdict) {
	return nil, listener.Miss
}

// query is 12 bytes of header, with n as ID and 8 bytes of serial number.
func query(n int) []byte {
	q := make([]byte, 20)
	binary.BigEndian.PutUint16(q, uint16(n))
	binary.BigEndian.PutUint64(q[12:], uint64(n))
	return q
}

func serial(msg []byte) int { return int(binary.BigEndian.Uint64(msg[12:])) }

func loopback(host string) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr(host), 0)
}

// running is a listener whose Run can be stopped and waited for.
type running struct {
	stop context.CancelFunc
	done chan error
}

func start(t testing.TB, run func(context.Context) error) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{stop: cancel, done: make(chan error, 1)}
	go func() { r.done <- run(ctx) }()
	t.Cleanup(func() { r.end(t) })
	return r
}

// end stops the listener and waits for Run. It may be called repeatedly.
func (r *running) end(t testing.TB) {
	t.Helper()
	r.stop()
	select {
	case err := <-r.done:
		if err != nil {
			t.Errorf("Run: %v", err)
		}
		r.done <- nil
	case <-time.After(wide):
		t.Fatalf("Run did not return:\n%s", stacks())
	}
}

func startUDP(t testing.TB, cfg listener.UDPConfig) (*listener.UDP, *running) {
	t.Helper()
	checkLeaks(t)
	u, err := listener.ListenUDP(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return u, start(t, u.Run)
}

func startTCP(t testing.TB, cfg listener.TCPConfig) (*listener.TCP, *running) {
	t.Helper()
	checkLeaks(t)
	l, err := listener.ListenTCP(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l, start(t, l.Run)
}

// checkLeaks fails the test if goroutines of the package outlive it.
func checkLeaks(t testing.TB) {
	t.Cleanup(func() {
		eventually(t, "no goroutine of the package is left", func() bool {
			return !strings.Contains(stacks(), "forwarder/listener.(")
		})
	})
}

func stacks() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}

// eventually waits for what must come true.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(wide); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never came true: %s\n%s", what, stacks())
		}
	}
}

func dial(t testing.TB, network string, to netip.AddrPort) net.Conn {
	t.Helper()
	c, err := net.Dial(network, to.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(wide)); err != nil {
		t.Fatal(err)
	}
	return c
}

func mustWrite(t testing.TB, c net.Conn, msg []byte) {
	t.Helper()
	if _, err := c.Write(msg); err != nil {
		t.Fatalf("write: %v", err)
	}
}

func netipPort(a netip.AddrPort, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr(), port)
}

// reachable is an address by which a socket bound to host can be asked.
func reachable(host string) netip.AddrPort {
	switch host {
	case "0.0.0.0":
		return loopback("127.0.0.1")
	case "::":
		return loopback("::1")
	}
	return loopback(host)
}

// framed is msg with its length in front.
func framed(msg []byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(msg))), msg...)
}

// readFramed returns the next message.
func readFramed(c io.Reader) ([]byte, error) {
	var prefix [2]byte
	if _, err := io.ReadFull(c, prefix[:]); err != nil {
		return nil, err
	}
	msg := make([]byte, binary.BigEndian.Uint16(prefix[:]))
	_, err := io.ReadFull(c, msg)
	return msg, err
}

// exchange returns a function that sends msg and reads the reply.
func exchange(c net.Conn, msg []byte) func() error {
	buf := make([]byte, 4096)
	return func() error {
		if _, err := c.Write(msg); err != nil {
			return err
		}
		_, err := c.Read(buf)
		return err
	}
}
