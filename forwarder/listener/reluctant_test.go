package listener_test

import (
	"bytes"
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/forwarder/listener"
)

// A client that takes its replies byte by byte gets no more time by that: the
// time is for a whole write.
func TestTCPReluctantReaderIsCut(t *testing.T) {
	big := make([]byte, 60_000)
	h := &handler{lookup: func(dst, _ []byte, _ listener.Peer) ([]byte, listener.Verdict) {
		return append(dst, big...), listener.Answered
	}}
	l, _ := startTCP(t, listener.TCPConfig{Addr: loopback("127.0.0.1"), Handler: h, WriteTimeout: 300 * time.Millisecond})
	c := dial(t, "tcp", l.Addr())
	go func() {
		for one := make([]byte, 1); ; time.Sleep(time.Millisecond) {
			if _, err := c.Read(one); err != nil {
				return // cut, or the end of the test
			}
		}
	}()
	_, _ = c.Write(bytes.Repeat(framed(query(1)), 2000)) // 120 MB of replies; it may be cut meanwhile
	eventually(t, "the connection is cut", func() bool {
		s := l.Stats()
		return s.Stalled == 1 && s.Connections == 0
	})
}

// Who listens on one address is not there on the others of its machine.
func TestOwnAddressOnly(t *testing.T) {
	// Addresses that no other test listens on.
	const own = "127.2.0.2"
	others := []string{"127.2.0.1", "127.2.0.3"}
	t.Run("UDP", func(t *testing.T) {
		u, _ := startUDP(t, listener.UDPConfig{Addr: loopback(own), Handler: &handler{}})
		ask(t, dial(t, "udp", u.Addr()), query(1))
		for _, other := range others {
			c := dial(t, "udp", netipPort(loopback(other), u.Addr().Port()))
			mustWrite(t, c, query(2))
			if n, err := c.Read(make([]byte, 512)); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("at %s: %d bytes and %v, want to be refused", other, n, err)
			}
		}
		if s := u.Stats(); s.Received != 1 {
			t.Errorf("%d datagrams came in, want 1", s.Received)
		}
	})
	t.Run("TCP", func(t *testing.T) {
		l, _ := startTCP(t, listener.TCPConfig{Addr: loopback(own), Handler: &handler{}})
		if err := exchange(dial(t, "tcp", l.Addr()), framed(query(1)))(); err != nil {
			t.Error(err)
		}
		for _, other := range others {
			at := netipPort(loopback(other), l.Addr().Port())
			if _, err := net.Dial("tcp", at.String()); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("at %s: %v, want to be refused", other, err)
			}
		}
	})
}
