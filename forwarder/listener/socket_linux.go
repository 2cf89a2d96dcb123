package listener

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// controlSize is room for one IPV6_PKTINFO control message, the largest read.
const controlSize = 40

// socket is one bound UDP socket. Its file descriptor is used directly, and
// stays valid until close: the owner closes it after its last user ended.
type socket struct {
	fd       int
	conn     *net.UDPConn
	raw      syscall.RawConn // waits in the runtime's poller
	addr     netip.AddrPort
	wildcard bool
}

// openSocket binds a socket to addr that others of the same user may share.
func openSocket(addr netip.AddrPort, receiveBuffer int) (*socket, error) {
	wildcard := addr.Addr().IsUnspecified()
	lc := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		return control(raw, func(fd int) error {
			return errors.Join(share(fd), configure(fd, addr.Addr().Is4(), wildcard, receiveBuffer))
		})
	}}
	pc, err := lc.ListenPacket(context.Background(), network("udp", addr), addr.String())
	if err != nil {
		return nil, explain("udp", addr, err)
	}
	conn := pc.(*net.UDPConn)
	s := &socket{conn: conn, wildcard: wildcard, addr: conn.LocalAddr().(*net.UDPAddr).AddrPort()}
	s.addr = netip.AddrPortFrom(addr.Addr(), s.addr.Port())
	if s.raw, err = conn.SyscallConn(); err == nil {
		err = control(s.raw, func(fd int) error { s.fd = fd; return nil })
	}
	if err != nil {
		return nil, errors.Join(explain("udp", addr, err), conn.Close())
	}
	return s, nil
}

// control runs f on the file descriptor of raw.
func control(raw syscall.RawConn, f func(fd int) error) error {
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = f(int(fd)) }); err != nil {
		return err
	}
	return inner
}

// ready tells whether a read of the socket, or an accept, has not to wait. It looks
// whatever the deadline.
func ready(s syscall.Conn) (yes bool) {
	raw, err := s.SyscallConn()
	if err != nil {
		return false
	}
	err = control(raw, func(fd int) error {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		yes = n > 0
		return err
	})
	return yes && err == nil
}

// share lets another process of the same user bind the address as well: that
// is how a successor takes over.
func share(fd int) error {
	return sockopt("SO_REUSEPORT", fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
}

// limitBuffers bounds what the kernel holds for each connection accepted: left
// alone it would hold megabytes for a client that reads no replies. The kernel
// doubles the size for its own overhead.
func limitBuffers(fd int) error {
	const size = 32 << 10
	return errors.Join(
		sockopt("SO_SNDBUF", fd, unix.SOL_SOCKET, unix.SO_SNDBUF, size),
		sockopt("SO_RCVBUF", fd, unix.SOL_SOCKET, unix.SO_RCVBUF, size),
	)
}

// configure sets what must be set before the socket is bound.
func configure(fd int, v4, wildcard bool, receiveBuffer int) error {
	// Forcing needs CAP_NET_ADMIN; without, the kernel grants what
	// net.core.rmem_max allows. What was got is reported, never an error.
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer)
	}
	// A forged ICMP message must not make the kernel fragment replies, or
	// refuse them: the path MTU it learnt is neither used nor enforced.
	if v4 {
		return errors.Join(
			sockopt("IP_MTU_DISCOVER", fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_OMIT),
			sockoptIf(wildcard, "IP_PKTINFO", fd, unix.IPPROTO_IP, unix.IP_PKTINFO),
		)
	}
	return errors.Join(
		sockopt("IPV6_V6ONLY", fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1),
		sockopt("IPV6_MTU_DISCOVER", fd, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_OMIT),
		sockoptIf(wildcard, "IPV6_RECVPKTINFO", fd, unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO),
	)
}

func sockoptIf(wanted bool, name string, fd, level, option int) error {
	if !wanted {
		return nil
	}
	return sockopt(name, fd, level, option, 1)
}

func sockopt(name string, fd, level, option, value int) error {
	if err := unix.SetsockoptInt(fd, level, option, value); err != nil {
		return fmt.Errorf("set %s: %w", name, err)
	}
	return nil
}

// network is proto with the family of addr: "udp4", "udp6".
func network(proto string, addr netip.AddrPort) string {
	if addr.Addr().Is4() {
		return proto + "4"
	}
	return proto + "6"
}

// explain names the address of a failed bind, and the reason once.
func explain(proto string, addr netip.AddrPort, err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		err = errno
	}
	return fmt.Errorf("listen %s %v: %w", proto, addr, err)
}

// buffer returns the receive buffer the socket got, in bytes.
func (s *socket) buffer() int {
	n, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	if err != nil {
		return 0
	}
	return n / 2 // the kernel doubles what it was asked for its own overhead
}

// overflowed returns how many datagrams the kernel dropped at this socket,
// modulo 2^32.
func (s *socket) overflowed() uint32 {
	const fields, drops = 9, 8 // SK_MEMINFO_VARS, SK_MEMINFO_DROPS
	var info [fields]uint32
	size := uint32(unsafe.Sizeof(info))
	// SO_MEMINFO fills an array of 32-bit numbers, which lives on this stack
	// for the time of the call.
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(s.fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return 0
	}
	return info[drops]
}

// connect ties the socket to a peer that never sends, see handover.go.
func (s *socket) connect(peer netip.AddrPort) error {
	var sa unix.Sockaddr = &unix.SockaddrInet4{Port: int(peer.Port())}
	if peer.Addr().Is4() {
		sa.(*unix.SockaddrInet4).Addr = peer.Addr().As4()
	} else {
		sa = &unix.SockaddrInet6{Port: int(peer.Port()), Addr: peer.Addr().As16(), ZoneId: zoneIndex(peer.Addr().Zone())}
	}
	return unix.Connect(s.fd, sa)
}

func zoneIndex(zone string) uint32 {
	if zone == "" {
		return 0
	}
	link, err := net.InterfaceByName(zone)
	if err != nil {
		return 0
	}
	return uint32(link.Index)
}

// wakeAt makes a wait in the poller end at t.
func (s *socket) wakeAt(t time.Time) error { return s.conn.SetReadDeadline(t) }

func (s *socket) close() error { return s.conn.Close() }

// addrPortOf reads a struct sockaddr_in or sockaddr_in6, which begin with the
// family in the machine's order and the port in the network's.
func addrPortOf(raw *unix.RawSockaddrInet6) netip.AddrPort {
	port := (*[2]byte)(unsafe.Pointer(&raw.Port))
	var addr netip.Addr
	switch raw.Family {
	case unix.AF_INET:
		addr = netip.AddrFrom4((*unix.RawSockaddrInet4)(unsafe.Pointer(raw)).Addr)
	case unix.AF_INET6:
		addr = netip.AddrFrom16(raw.Addr).Unmap()
	default:
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(addr, binary.BigEndian.Uint16(port[:]))
}

// answerFrom turns the control message that came with a query (struct cmsghdr,
// then struct in_pktinfo or in6_pktinfo) into the one that makes the reply
// leave from the address that was asked: the interface is left to the routing
// table, except for a link-local address, which means nothing without it.
func answerFrom(control []byte) {
	if len(control) < unix.SizeofCmsghdr+unix.SizeofInet4Pktinfo {
		return
	}
	header := (*unix.Cmsghdr)(unsafe.Pointer(unsafe.SliceData(control)))
	data := control[unix.SizeofCmsghdr:]
	switch {
	case header.Level == unix.IPPROTO_IP && header.Type == unix.IP_PKTINFO:
		clear(data[:4]) // ipi_ifindex; ipi_spec_dst is the local address
	case header.Level == unix.IPPROTO_IPV6 && header.Type == unix.IPV6_PKTINFO && len(data) >= unix.SizeofInet6Pktinfo:
		if linkLocal := data[0] == 0xfe && data[1]&0xc0 == 0x80; !linkLocal {
			clear(data[16:20]) // ipi6_ifindex
		}
	}
}
