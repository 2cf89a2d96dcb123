package hostnet_test

import (
	"net"
	"net/netip"
	"testing"

	"github.com/nodens-dns/nodens/deploy/hostnet"
)

func TestListenedAt(t *testing.T) {
	for _, local := range []string{"127.0.0.1:0", "127.0.0.53:0", "[::1]:0", "0.0.0.0:0", "[::]:0"} {
		network := "udp4"
		if netip.MustParseAddrPort(local).Addr().Is6() {
			network = "udp6"
		}
		socket, err := net.ListenPacket(network, local)
		if err != nil {
			t.Fatal(err)
		}
		address := netip.MustParseAddrPort(socket.LocalAddr().String())
		if !hostnet.ListenedAt(address) {
			t.Errorf("%s is not found", address)
		}
		if other := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.99"), address.Port()); hostnet.ListenedAt(other) {
			t.Errorf("%s is found for %s", other, address)
		}
		if err := socket.Close(); err != nil {
			t.Fatal(err)
		}
		if hostnet.ListenedAt(address) {
			t.Errorf("%s is still found", address)
		}
	}
	// A socket that was handed over is connected.
	going, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:9")))
	if err != nil {
		t.Fatal(err)
	}
	defer going.Close()
	if address := netip.MustParseAddrPort(going.LocalAddr().String()); hostnet.ListenedAt(address) {
		t.Errorf("%s is connected and is found", address)
	}
}
