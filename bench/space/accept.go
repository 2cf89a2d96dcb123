package space

import (
	"net"
	"net/netip"
	"sync"
	"testing"
)

// Accept hands each connection to a port of loopback to a goroutine of its own, which
// closes it. The test waits for all of them at its end.
func Accept(t testing.TB, handle func(net.Conn)) netip.AddrPort {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	t.Cleanup(func() { _ = listener.Close(); running.Wait() })
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { handle(conn) })
		}
	})
	return listener.Addr().(*net.TCPAddr).AddrPort()
}
