package space

import (
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"testing"
)

// Ports that Linux gives to no client by default, and that need no privilege.
const lowPort, highPort = 10240, 32767

// given counts the ports that Free gave away.
var given = sync.OnceValue(func() *atomic.Uint32 { return new(atomic.Uint32) })

// Free is an address of loopback on which nothing listens, by UDP or TCP, and that
// stays free until the test binds it: its IP is this process' own, and its port one
// that the kernel gives to nobody who asks for any.
func Free(t testing.TB) netip.AddrPort {
	t.Helper()
	const tries = 64
	for range tries {
		port := lowPort + given().Add(1)%(highPort-lowPort)
		if at := netip.AddrPortFrom(ownAddress(os.Getpid()), uint16(port)); unused(at) {
			return at
		}
	}
	t.Fatalf("no free port of %v in %d tries", ownAddress(os.Getpid()), tries)
	return netip.AddrPort{}
}

// ownAddress is one of 127.64.0.0 to 127.127.255.255 for each process: Linux numbers
// them below 1<<22.
func ownAddress(pid int) netip.Addr {
	return netip.AddrFrom4([4]byte{127, byte(64 | pid>>16&63), byte(pid >> 8), byte(pid)})
}

func unused(at netip.AddrPort) bool {
	l, err := net.Listen("tcp", at.String())
	if err != nil {
		return false
	}
	_ = l.Close()
	p, err := net.ListenPacket("udp", at.String())
	if err != nil {
		return false
	}
	_ = p.Close()
	return true
}
