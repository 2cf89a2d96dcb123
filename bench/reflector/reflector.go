// Package reflector is the yardstick for a DNS server in Go on one UDP socket:
// one read, one write, nothing between. It sends every query back as its own
// reply, with one fixed A record.
//
// [Run] has one goroutine per socket and waits for them.
package reflector

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Run reflects on an address, with so many sockets that share the port, 1 to
// 64, until ctx ends.
func Run(ctx context.Context, addr string, sockets int) error {
	if sockets < 1 || sockets > 64 {
		return fmt.Errorf("reflector: %d sockets, want 1 to 64", sockets)
	}
	config := net.ListenConfig{Control: reusePort}
	var conns []*net.UDPConn
	for range sockets {
		conn, err := config.ListenPacket(ctx, "udp", addr)
		if err != nil {
			closeAll(conns)
			return fmt.Errorf("reflector: listen on %s: %w", addr, err)
		}
		packets := conn.(*net.UDPConn)
		_ = packets.SetReadBuffer(4 << 20) // as much of it as the kernel allows
		conns = append(conns, packets)
		addr = conn.LocalAddr().String() // port 0 was chosen by the first
	}
	var running sync.WaitGroup
	for _, conn := range conns {
		running.Go(func() { reflect(conn) })
	}
	<-ctx.Done()
	closeAll(conns)
	running.Wait()
	return nil
}

func closeAll(conns []*net.UDPConn) {
	for _, conn := range conns {
		conn.Close()
	}
}

func reusePort(_, _ string, raw syscall.RawConn) (err error) {
	failed := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	})
	return errors.Join(failed, err)
}

// reflect answers until its socket is closed.
func reflect(conn *net.UDPConn) {
	buf := make([]byte, 65535)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || n < 12 {
			continue
		}
		sendBack(conn, buf, n, from)
	}
}

func sendBack(conn *net.UDPConn, buf []byte, n int, from netip.AddrPort) {
	n = reply(buf, n)
	// A reply that cannot be sent is lost, as on any network.
	_, _ = conn.WriteToUDPAddrPort(buf[:n], from)
}

// reply turns the query of n octets in buf into its reply and gives that one's
// length. The record takes the place of whatever followed the question.
func reply(buf []byte, n int) int {
	const header = 12
	end := header
	for end < n && buf[end] != 0 {
		end += int(buf[end]) + 1
	}
	end += 5 // root label, type, class
	if end > n {
		end = header
	}
	buf[2] |= 0x80                                                                 // QR
	buf[3] = 0x80                                                                  // RA, NOERROR
	copy(buf[6:header], []byte{0, 1, 0, 0, 0, 0})                                  // one answer, nothing else
	record := [...]byte{0xc0, header, 0, 1, 0, 1, 0, 0, 0, 30, 0, 4, 10, 96, 0, 1} // A, 30 s
	return end + copy(buf[end:], record[:])
}
