package load_test

import (
	"net"
	"net/netip"
	"testing"
	"time"
)

// startScript serves UDP on loopback: answer gives the replies to a query.
func startScript(t *testing.T, answer func(query []byte, from netip.AddrPort) [][]byte) netip.AddrPort {
	t.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadBuffer(1 << 20)
	done := make(chan struct{})
	t.Cleanup(func() {
		conn.Close()
		<-done
	})
	go func() {
		defer close(done)
		buf := make([]byte, 4096)
		for {
			n, from, err := conn.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			for _, reply := range answer(buf[:n], from) {
				_, _ = conn.WriteToUDPAddrPort(reply, from)
			}
		}
	}()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort()
}

// forward asks a server and gives its reply.
func forward(addr netip.AddrPort, query []byte) [][]byte {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(addr))
	if err != nil {
		return nil
	}
	defer conn.Close()
	buf := make([]byte, 4096)
	_ = conn.SetDeadline(time.Now().Add(long))
	if _, err := conn.Write(query); err != nil {
		return nil
	}
	n, err := conn.Read(buf)
	if err != nil {
		return nil
	}
	return [][]byte{buf[:n]}
}
