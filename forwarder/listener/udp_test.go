package listener_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nodens-dns/nodens/forwarder/listener"
)

// ask sends msg and returns the reply.
func ask(t *testing.T, c net.Conn, msg []byte) []byte {
	t.Helper()
	mustWrite(t, c, msg)
	buf := make([]byte, 65535)
	n, err := c.Read(buf)
	if err != nil {
		t.Fatalf("no reply: %v", err)
	}
	return buf[:n]
}

func TestUDPAnswers(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "::1"} {
		for name, lookup := range map[string]func(dst, query []byte, from listener.Peer) ([]byte, listener.Verdict){
			"hit": nil, "miss": alwaysMiss,
		} {
			t.Run(host+" "+name, func(t *testing.T) {
				u, r := startUDP(t, listener.UDPConfig{Addr: loopback(host), Sockets: 2, Handler: &handler{lookup: lookup}})
				c := dial(t, "udp", u.Addr())
				for i := range 100 {
					if diff := cmp.Diff(query(i), ask(t, c, query(i))); diff != "" {
						t.Fatalf("reply (-want +got):\n%s", diff)
					}
				}
				r.end(t)
				s := u.Stats()
				if s.Received != 100 || s.Answered != 100 || s.InFlight != 0 || len(s.Sockets) != 2 || s.Sockets[0].ReceiveBuffer == 0 || s.Sockets[1].ReceiveBuffer == 0 {
					t.Errorf("stats: %+v", s)
				}
			})
		}
	}
}

func TestUDPPeer(t *testing.T) {
	peers := make(chan listener.Peer, 1)
	h := &handler{lookup: func(dst, q []byte, from listener.Peer) ([]byte, listener.Verdict) {
		peers <- from
		return append(dst, q...), listener.Answered
	}}
	done := make(chan time.Duration, 1)
	h.done = func(_ listener.Peer, took time.Duration) { done <- took }
	var clock atomic.Int64
	u, _ := startUDP(t, listener.UDPConfig{
		Addr: loopback("::ffff:127.0.0.1"), Listener: 3, Stripe: 7, Handler: h,
		Now: func() time.Duration { return time.Duration(clock.Add(5)) },
	})
	c := dial(t, "udp", u.Addr())
	ask(t, c, query(1))
	want := listener.Peer{
		Client:   c.LocalAddr().(*net.UDPAddr).AddrPort(),
		Received: 5, Listener: 3, Stripe: 7, Proto: listener.ProtoUDP,
	}
	want.Client = netip.AddrPortFrom(want.Client.Addr().Unmap(), want.Client.Port())
	if diff := cmp.Diff(want, <-peers, cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); diff != "" {
		t.Errorf("peer (-want +got):\n%s", diff)
	}
	if took := <-done; took != 5 {
		t.Errorf("took %d, want one tick of the clock, 5", took)
	}
}

// A socket bound to all addresses answers from the one that was asked: a
// connected client takes no other.
func TestUDPWildcardAnswersFromTheAskedAddress(t *testing.T) {
	for _, c := range []struct{ bind, ask string }{
		{"0.0.0.0", "127.0.0.1"}, {"0.0.0.0", "127.0.0.2"}, {"0.0.0.0", "127.0.0.3"}, {"::", "::1"},
	} {
		for _, lookup := range []func(_, _ []byte, _ listener.Peer) ([]byte, listener.Verdict){nil, alwaysMiss} {
			t.Run(c.bind+" asked at "+c.ask, func(t *testing.T) {
				u, _ := startUDP(t, listener.UDPConfig{Addr: loopback(c.bind), Handler: &handler{lookup: lookup}})
				conn := dial(t, "udp", netipPort(loopback(c.ask), u.Addr().Port()))
				for i := range 3 {
					ask(t, conn, query(i))
				}
			})
		}
	}
}

func TestUDPDropsWithoutAsking(t *testing.T) {
	u, r := startUDP(t, listener.UDPConfig{Addr: loopback("127.0.0.1"), Handler: &handler{}})
	c := dial(t, "udp", u.Addr())
	mustWrite(t, c, make([]byte, 11))
	mustWrite(t, c, nil)
	mustWrite(t, c, make([]byte, listener.MaxDatagram+1))
	longest := make([]byte, listener.MaxDatagram)
	if got := ask(t, c, longest); len(got) != len(longest) {
		t.Errorf("the longest query came back with %d bytes", len(got))
	}
	r.end(t)
	if s := u.Stats(); s.Short != 2 || s.Long != 1 || s.Received != 4 || s.Answered != 1 {
		t.Errorf("stats: %+v", s)
	}
}

// No answer could reach port 0, and some ports answer anything they get.
func TestUDPBadSource(t *testing.T) {
	raw, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_RAW, syscall.IPPROTO_UDP)
	if err != nil {
		t.Skipf("needs root to forge a source port: %v", err)
	}
	defer syscall.Close(raw)
	u, r := startUDP(t, listener.UDPConfig{Addr: loopback("127.0.0.1"), Handler: &handler{}})
	to := &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	for _, from := range []uint16{0, 7, 13, 17, 19, 37, u.Addr().Port()} {
		datagram := binary.BigEndian.AppendUint16(nil, from)
		datagram = binary.BigEndian.AppendUint16(datagram, u.Addr().Port())
		datagram = append(datagram, 0, byte(8+len(query(0))), 0, 0) // length, no checksum
		if err := syscall.Sendto(raw, append(datagram, query(0)...), 0, to); err != nil {
			t.Fatal(err)
		}
	}
	ask(t, dial(t, "udp", u.Addr()), query(1))
	r.end(t)
	if s := u.Stats(); s.BadSource != 7 || s.Answered != 1 {
		t.Errorf("stats: %+v", s)
	}
}

func TestUDPVerdicts(t *testing.T) {
	for name, c := range map[string]struct {
		lookup, resolve listener.Verdict
		wantDone        bool
	}{
		"drop": {lookup: listener.Drop}, "close": {lookup: listener.Close},
		"miss then drop":  {lookup: listener.Miss, resolve: listener.Drop},
		"miss then close": {lookup: listener.Miss, resolve: listener.Close},
		"miss then miss":  {lookup: listener.Miss, resolve: listener.Miss},
		"empty reply":     {lookup: listener.Answered},
	} {
		t.Run(name, func(t *testing.T) {
			h := &handler{
				lookup: func(dst, q []byte, _ listener.Peer) ([]byte, listener.Verdict) {
					if serial(q) == 0 {
						return dst, c.lookup
					}
					return append(dst, q...), listener.Answered
				},
				resolve: func(_ context.Context, dst, q []byte, _ listener.Peer) ([]byte, listener.Verdict) {
					return append(dst, q...), c.resolve
				},
			}
			u, r := startUDP(t, listener.UDPConfig{Addr: loopback("127.0.0.1"), Handler: h})
			conn := dial(t, "udp", u.Addr())
			mustWrite(t, conn, query(0))
			if got := serial(ask(t, conn, query(1))); got != 1 {
				t.Errorf("query %d was answered first", got)
			}
			r.end(t)
			if s := u.Stats(); s.Answered != 1 || s.SendErrors != 0 {
				t.Errorf("stats: %+v", s)
			}
		})
	}
}

func TestUDPRefusedReplyIsCounted(t *testing.T) {
	h := &handler{lookup: func(dst, q []byte, _ listener.Peer) ([]byte, listener.Verdict) {
		if serial(q) == 0 {
			return make([]byte, 65535), listener.Answered // more than a datagram holds
		}
		return append(dst, q...), listener.Answered
	}}
	u, r := startUDP(t, listener.UDPConfig{Addr: loopback("127.0.0.1"), Handler: h})
	c := dial(t, "udp", u.Addr())
	mustWrite(t, c, query(0))
	ask(t, c, query(1))
	r.end(t)
	if s := u.Stats(); s.SendErrors != 1 || s.Answered != 1 {
		t.Errorf("stats: %+v", s)
	}
}

func TestUDPMaxInFlight(t *testing.T) {
	release := make(chan struct{})
	h := &handler{lookup: alwaysMiss, resolve: func(_ context.Context, dst, q []byte, _ listener.Peer) ([]byte, listener.Verdict) {
		<-release
		return append(dst, q...), listener.Answered
	}}
	u, r := startUDP(t, listener.UDPConfig{Addr: loopback("127.0.0.1"), Handler: h, MaxInFlight: 5})
	c := dial(t, "udp", u.Addr())
	for i := range 20 {
		mustWrite(t, c, query(i))
	}
	eventually(t, "all queries are read", func() bool { return u.Stats().Received == 20 })
	if s := u.Stats(); s.InFlight != 5 || s.Full != 15 || s.Missed != 20 {
		t.Errorf("stats: %+v", s)
	}
	close(release)
	seen := map[int]bool{}
	for range 5 {
		buf := make([]byte, 100)
		n, err := c.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		seen[serial(buf[:n])] = true
	}
	for i := range 5 {
		if !seen[i] {
			t.Errorf("query %d was not answered", i)
		}
	}
	r.end(t)
	if s := u.Stats(); s.InFlight != 0 || s.Answered != 5 {
		t.Errorf("stats at the end: %+v", s)
	}
}

// Misses keep their packet while the loop reads on into others.
func TestUDPMissesKeepTheirBytes(t *testing.T) {
	h := &handler{lookup: alwaysMiss, resolve: func(_ context.Context, dst, q []byte, _ listener.Peer) ([]byte, listener.Verdict) {
		time.Sleep(time.Duration(serial(q)%7) * time.Millisecond)
		return append(dst, q...), listener.Answered
	}}
	u, _ := startUDP(t, listener.UDPConfig{Addr: loopback("127.0.0.1"), Handler: h})
	var clients sync.WaitGroup
	for k := range 8 {
		c := dial(t, "udp", u.Addr())
		clients.Go(func() {
			buf := make([]byte, 100)
			for i := range 200 {
				want := k*1000 + i
				if _, err := c.Write(query(want)); err != nil {
					t.Errorf("write: %v", err)
					return
				}
				n, err := c.Read(buf)
				if err != nil || serial(buf[:n]) != want {
					t.Errorf("reply to %d: %v %v", want, buf[:n], err)
					return
				}
			}
		})
	}
	clients.Wait()
}

func TestListenErrors(t *testing.T) {
	taken, err := net.ListenPacket("udp4", "127.0.0.1:0") // does not share
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	takenTCP, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer takenTCP.Close()
	elsewhere := netip.MustParseAddrPort("192.0.2.1:5353")
	udp := func(a netip.AddrPort) error {
		_, err := listener.ListenUDP(listener.UDPConfig{Addr: a, Sockets: 2})
		return err
	}
	tcp := func(a netip.AddrPort) error { _, err := listener.ListenTCP(listener.TCPConfig{Addr: a}); return err }
	for name, c := range map[string]struct {
		got  error
		is   error
		says string
	}{
		"udp in use":       {udp(taken.LocalAddr().(*net.UDPAddr).AddrPort()), syscall.EADDRINUSE, ": address already in use"},
		"udp not assigned": {udp(elsewhere), syscall.EADDRNOTAVAIL, "listen udp 192.0.2.1:5353: cannot assign requested address"},
		"tcp in use":       {tcp(takenTCP.Addr().(*net.TCPAddr).AddrPort()), syscall.EADDRINUSE, ": address already in use"},
		"tcp not assigned": {tcp(elsewhere), syscall.EADDRNOTAVAIL, "listen tcp 192.0.2.1:5353: cannot assign requested address"},
	} {
		t.Run(name, func(t *testing.T) {
			if !errors.Is(c.got, c.is) || !strings.Contains(c.got.Error(), c.says) || strings.Contains(c.got.Error(), "\n") {
				t.Errorf("error: %v", c.got)
			}
		})
	}
}

func TestBeginsOnce(t *testing.T) {
	checkLeaks(t)
	u, err := listener.ListenUDP(listener.UDPConfig{Addr: loopback("127.0.0.1"), Handler: &handler{}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := listener.ListenTCP(listener.TCPConfig{Addr: loopback("127.0.0.1"), Handler: &handler{}})
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]interface {
		Close() error
		Run(context.Context) error
	}{"udp": u, "tcp": l} {
		if err := errors.Join(x.Close(), x.Close()); err != nil {
			t.Errorf("%s: close: %v", name, err)
		}
		if err := x.Run(t.Context()); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: run after close: %v", name, err)
		}
	}
	if s := u.Stats(); len(s.Sockets) != 1 || s.Sockets[0].ReceiveBuffer == 0 {
		t.Errorf("stats after close: %+v", s)
	}
}
