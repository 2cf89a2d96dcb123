package load

import (
	"fmt"
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// receiveBuffer is asked for on every socket; the kernel gives what it may.
const receiveBuffer = 4 << 20

// sockaddr turns an address into the form that system calls take.
func sockaddr(addr netip.AddrPort) (family int, sa unix.Sockaddr) {
	if ip := addr.Addr().Unmap(); ip.Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: int(addr.Port()), Addr: ip.As4()}
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Port: int(addr.Port()), Addr: addr.Addr().As16()}
}

// openUDP makes a connected, non-blocking socket.
func openUDP(family int, sa unix.Sockaddr) (int, error) {
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("load: open a UDP socket: %w", err)
	}
	if err := unix.Connect(fd, sa); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("load: connect a UDP socket: %w", err)
	}
	return fd, nil
}

// openTCP makes a non-blocking socket whose connection is under way.
func openTCP(family int, sa unix.Sockaddr) (int, error) {
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("load: open a TCP socket: %w", err)
	}
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	if err := unix.Connect(fd, sa); err != nil && err != unix.EINPROGRESS {
		unix.Close(fd)
		return -1, fmt.Errorf("load: connect a TCP socket: %w", err)
	}
	return fd, nil
}

// overflowed gives the number of packets the kernel dropped because this socket
// was not read in time: the generator's loss, not the server's.
func overflowed(fd int) uint64 {
	const drops = 8 // SK_MEMINFO_DROPS
	var info [drops + 1]uint32
	size := uint32(unsafe.Sizeof(info))
	// The kernel fills at most size octets of info, which outlives the call.
	_, _, failed := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	if failed != 0 {
		return 0
	}
	return uint64(info[drops])
}

// processCPU is the CPU time of this process so far.
func processCPU() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
