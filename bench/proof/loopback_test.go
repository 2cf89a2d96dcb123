package proof

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"
)

// loopback is a ground without namespaces: pods are addresses of 127.0.0.0/8.
// An address cannot fall silent there, but a process can.
type loopback struct {
	t       *testing.T
	listens [4]netip.AddrPort
	admins  [4]netip.AddrPort
	made    int // pods, ever
	block   int // second octet of the pods' addresses
}

func newLoopback(t *testing.T) *loopback {
	t.Helper()
	l := &loopback{t: t, block: 64 + rand.IntN(128)}
	for i := 1; i <= 3; i++ {
		l.listens[i], l.admins[i] = freeAddress(t, "127.0.0.1"), freeAddress(t, "127.0.0.1")
	}
	return l
}

// freeAddress is an address on which nothing listens, by UDP or TCP. Its port
// is below those that clients get, so that none takes it meanwhile.
func freeAddress(t *testing.T, ip string) netip.AddrPort {
	t.Helper()
	for range 64 {
		at := netip.AddrPortFrom(netip.MustParseAddr(ip), uint16(10240+rand.IntN(20000)))
		l, err := net.Listen("tcp", at.String())
		if err != nil {
			continue
		}
		p, err := net.ListenPacket("udp", at.String())
		l.Close()
		if err == nil {
			p.Close()
			return at
		}
	}
	t.Fatalf("no free port of %s found", ip)
	return netip.AddrPort{}
}

func (l *loopback) node(int) place              { return place{} }
func (l *loopback) client(int) place            { return place{} }
func (l *loopback) listen(i int) netip.AddrPort { return l.listens[i] }
func (l *loopback) admin(i int) netip.AddrPort  { return l.admins[i] }
func (l *loopback) removePod(place)             {}

func (l *loopback) newPod(i int) (place, netip.AddrPort) {
	l.t.Helper()
	l.made++
	return place{}, freeAddress(l.t, fmt.Sprintf("127.%d.%d.%d", l.block, i, l.made))
}
