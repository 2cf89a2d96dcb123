package listener_test

import (
	"testing"

	"github.com/nodens-dns/nodens/forwarder/listener"
)

// TestOverflowIsCounted: with the receive buffer that most nodes grant, 212 992 bytes,
// every datagram of a burst is either answered or counted.
func TestOverflowIsCounted(t *testing.T) {
	open := make(chan struct{})
	h := &handler{lookup: func(dst, q []byte, _ listener.Peer) ([]byte, listener.Verdict) {
		<-open
		return append(dst, q...), listener.Answered
	}}
	u, r := startUDP(t, listener.UDPConfig{Addr: loopback("127.0.0.1"), Handler: h, ReceiveBuffer: 212992, Sockets: 2})
	for i, s := range u.Stats().Sockets {
		if s.ReceiveBuffer != 212992 {
			t.Fatalf("the kernel granted socket %d %d bytes", i, s.ReceiveBuffer)
		}
	}
	const burst = 5000
	c := dial(t, "udp", u.Addr())
	for i := range burst {
		mustWrite(t, c, query(i))
	}
	eventually(t, "the overflow is counted", func() bool { return u.Stats().Overflowed > 0 })
	close(open)
	eventually(t, "the rest is read", func() bool { s := u.Stats(); return s.Received+s.Overflowed == burst })
	r.end(t)
	if s := u.Stats(); s.Received+s.Overflowed != burst || s.Answered != s.Received || s.Received == 0 {
		t.Errorf("of %d: %+v", burst, s)
	} else if one, other := s.Sockets[0].Overflowed, s.Sockets[1].Overflowed; len(s.Sockets) != 2 || one+other != s.Overflowed || one > 0 && other > 0 {
		t.Errorf("one client meets one socket, and %d and %d of %d overflowed", one, other, s.Overflowed)
	}
}
