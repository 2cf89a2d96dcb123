package upstream

import (
	"net/netip"
	"syscall"
)

// hearErrors has the kernel tell a connected socket of everything that routers
// report of what it sent. Without being asked it tells of closed ports only, and
// keeps to itself that a host or a network cannot be reached, and that a full
// queue on the way out lost a datagram.
func hearErrors(fd uintptr, to netip.Addr) error {
	if to.Is4() || to.Is4In6() {
		return syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IP, syscall.IP_RECVERR, 1)
	}
	return syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IPV6, syscall.IPV6_RECVERR, 1)
}

// dropReports empties the queue of reports that were told as errors already. They
// take room in the receive buffer.
func dropReports(fd uintptr) {
	const most = 1024 // more than the buffer holds
	var buf [1]byte
	for range most {
		if _, _, _, _, err := syscall.Recvmsg(int(fd), buf[:], nil, syscall.MSG_ERRQUEUE|syscall.MSG_DONTWAIT); err != nil && err != syscall.EINTR {
			return
		}
	}
}
