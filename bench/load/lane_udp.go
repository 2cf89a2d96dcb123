package load

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

// udpLane is one connected UDP socket.
type udpLane struct {
	fd      int
	pending *pending
}

func newUDPLane(poll *poll, index int32, target netip.AddrPort, slots int) (*udpLane, error) {
	fd, err := openUDP(sockaddr(target))
	if err != nil {
		return nil, err
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer)
	if err := poll.add(fd, index, 0); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &udpLane{fd: fd, pending: newPending(slots)}, nil
}

func (l *udpLane) flights() *pending { return l.pending }
func (l *udpLane) ended(int32)       {}
func (l *udpLane) tick(*worker)      {}

func (l *udpLane) send(w *worker, _ int32, msg []byte) bool {
	return w.sendPacket(l.fd, msg[2:])
}

func (l *udpLane) ready(w *worker, _ unix.EpollEvent) {
	for range maxReads {
		n, err := unix.Read(l.fd, w.in)
		switch err {
		case nil:
			w.take(l, w.in[:n])
		case unix.ECONNREFUSED:
			w.trouble.Refused++
		default: // nothing more
			return
		}
	}
}

func (l *udpLane) close() uint64 {
	lost := overflowed(l.fd)
	unix.Close(l.fd)
	return lost
}

// sendPacket sends one datagram. An ICMP error about an earlier one takes its
// place once; it is counted and the sending repeated.
func (w *worker) sendPacket(fd int, msg []byte) bool {
	for range 2 {
		_, err := unix.Write(fd, msg)
		if err == nil {
			return true
		}
		if err != unix.ECONNREFUSED {
			break
		}
		w.trouble.Refused++
	}
	return false
}
