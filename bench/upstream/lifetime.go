package upstream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lifetime is the sockets and goroutines from one Start to the next Kill.
type lifetime struct {
	server   *Server // nil in a relay
	addr     netip.AddrPort
	packets  []*net.UDPConn
	listener *net.TCPListener
	streams  streams
	later    *later
	running  sync.WaitGroup
}

// Ports that Linux gives to no client by default, and that need no privilege.
const (
	lowPort  = 10240
	highPort = 32767
)

// bind opens so many UDP sockets and a TCP listener at addr, trying random ports
// if it names none.
func bind(addr netip.AddrPort, sockets int, now func() time.Duration) (*lifetime, error) {
	if addr.Port() != 0 {
		return bindPort(addr, sockets, now)
	}
	for range 64 {
		port := uint16(lowPort + rand.IntN(highPort-lowPort))
		life, err := bindPort(netip.AddrPortFrom(addr.Addr(), port), sockets, now)
		if !errors.Is(err, unix.EADDRINUSE) {
			return life, err
		}
	}
	return nil, fmt.Errorf("no free port from %d to %d found: %w", lowPort, highPort, unix.EADDRINUSE)
}

func bindPort(addr netip.AddrPort, sockets int, now func() time.Duration) (*lifetime, error) {
	life := &lifetime{addr: addr, later: newLater(now)}
	life.streams.open = make(map[*stream]struct{})
	config := net.ListenConfig{}
	if sockets > 1 {
		config.Control = reusePort
	}
	for range sockets {
		conn, err := config.ListenPacket(context.Background(), "udp", addr.String())
		if err != nil {
			life.closeSockets()
			return nil, err
		}
		packet := conn.(*net.UDPConn)
		// A larger buffer than the kernel allows is no error: it gives what it may.
		_ = packet.SetReadBuffer(4 << 20)
		life.packets = append(life.packets, packet)
	}
	listener, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(addr))
	if err != nil {
		life.closeSockets()
		return nil, err
	}
	life.listener = listener
	return life, nil
}

func reusePort(_, _ string, raw syscall.RawConn) (err error) {
	failed := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	})
	return errors.Join(failed, err)
}

// serve starts the goroutines.
func (l *lifetime) serve() {
	for i, packet := range l.packets {
		l.running.Go(func() { l.readPackets(packet, i) })
	}
	l.running.Go(l.accept)
	l.running.Go(l.later.run)
}

// end closes everything and waits for the goroutines.
func (l *lifetime) end(reset bool) {
	close(l.later.stop)
	l.closeSockets()
	l.streams.closeAll(reset)
	l.running.Wait()
}

func (l *lifetime) closeSockets() {
	for _, packet := range l.packets {
		packet.Close()
	}
	if l.listener != nil {
		l.listener.Close()
	}
}
