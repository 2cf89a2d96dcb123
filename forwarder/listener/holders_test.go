package listener_test

import (
	"net"
	"net/netip"
	"os"
	"testing"

	"github.com/nodens-dns/nodens/forwarder/listener"
)

func TestHolders(t *testing.T) {
	for _, local := range []string{"127.0.0.1", "127.0.0.53", "::1", "0.0.0.0", "::"} {
		for _, proto := range []listener.Proto{listener.ProtoUDP, listener.ProtoTCP} {
			address, closing := hold(t, proto, loopback(local))
			wildcard := address.Addr().IsUnspecified()
			if got := listener.Holders(proto, address); len(got) != 1 || got[0].UID != os.Getuid() || got[0].Wildcard != wildcard || got[0].Inode == 0 {
				t.Errorf("%v %v: %+v, want one of ours, wildcard %v", proto, address, got, wildcard)
			}
			other := netipPort(loopback("127.0.0.99"), address.Port())
			if got := listener.Holders(proto, other); (len(got) == 1) != wildcard || wildcard && !got[0].Wildcard {
				t.Errorf("%v %v for %v: %+v", proto, address, other, got)
			}
			if err := closing(); err != nil {
				t.Fatal(err)
			}
			if got := listener.Holders(proto, address); len(got) != 0 {
				t.Errorf("%v %v after it was closed: %+v", proto, address, got)
			}
		}
	}
	// A socket that was handed over is connected.
	going, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:9")))
	if err != nil {
		t.Fatal(err)
	}
	defer going.Close()
	if got := listener.Holders(listener.ProtoUDP, netip.MustParseAddrPort(going.LocalAddr().String())); len(got) != 0 {
		t.Errorf("connected: %+v", got)
	}
}

// hold listens as a program of somebody else does.
func hold(t *testing.T, proto listener.Proto, at netip.AddrPort) (netip.AddrPort, func() error) {
	t.Helper()
	family := "4"
	if at.Addr().Is6() {
		family = "6"
	}
	if proto == listener.ProtoUDP {
		conn, err := net.ListenPacket("udp"+family, at.String())
		if err != nil {
			t.Fatal(err)
		}
		return netip.MustParseAddrPort(conn.LocalAddr().String()), conn.Close
	}
	l, err := net.Listen("tcp"+family, at.String())
	if err != nil {
		t.Fatal(err)
	}
	return netip.MustParseAddrPort(l.Addr().String()), l.Close
}
