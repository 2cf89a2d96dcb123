package listener_test

import (
	"net"
	"net/netip"
	"testing"

	"github.com/nodens-dns/nodens/forwarder/listener"
)

// BenchmarkUDP measures answered queries from socket to socket, 32 outstanding,
// beside a reflector of the plain read and write calls. The client takes part
// in the time, so that the difference between the two is what counts.
//
// More telling at the rates of a node is the CPU time of a process of its own,
// per query, because most of it is waking up.
func BenchmarkUDP(b *testing.B) {
	b.Run("listener", func(b *testing.B) {
		u, _ := startUDP(b, listener.UDPConfig{Addr: loopback("127.0.0.1"), Handler: &handler{}})
		pump(b, dial(b, "udp", u.Addr()))
	})
	b.Run("listener, all addresses", func(b *testing.B) {
		u, _ := startUDP(b, listener.UDPConfig{Addr: loopback("0.0.0.0"), Handler: &handler{}})
		pump(b, dial(b, "udp", netipPort(loopback("127.0.0.1"), u.Addr().Port())))
	})
	b.Run("plain calls", func(b *testing.B) {
		pump(b, dial(b, "udp", reflect(b)))
	})
	b.Run("listener, misses", func(b *testing.B) {
		u, _ := startUDP(b, listener.UDPConfig{Addr: loopback("127.0.0.1"), Handler: &handler{lookup: alwaysMiss}})
		pump(b, dial(b, "udp", u.Addr()))
	})
}

func BenchmarkTCP(b *testing.B) {
	l, _ := startTCP(b, listener.TCPConfig{Addr: loopback("127.0.0.1"), Handler: &handler{}})
	ask := exchange(dial(b, "tcp", l.Addr()), framed(query(1)))
	b.ReportAllocs()
	for b.Loop() {
		if err := ask(); err != nil {
			b.Fatal(err)
		}
	}
}

// pump keeps 32 queries outstanding on c.
func pump(b *testing.B, c net.Conn) {
	const outstanding = 32
	msg, buf := query(1), make([]byte, 4096)
	for range outstanding {
		mustWrite(b, c, msg)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Read(buf); err != nil {
			b.Fatal(err)
		}
		if _, err := c.Write(msg); err != nil {
			b.Fatal(err)
		}
	}
}

// reflect answers with the calls that net offers, one packet at a time.
func reflect(b *testing.B) netip.AddrPort {
	c, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(loopback("127.0.0.1")))
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 4096)
		for {
			n, from, err := c.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			_, _ = c.WriteToUDPAddrPort(buf[:n], from)
		}
	}()
	b.Cleanup(func() {
		_ = c.Close()
		<-done
	})
	return c.LocalAddr().(*net.UDPAddr).AddrPort()
}
