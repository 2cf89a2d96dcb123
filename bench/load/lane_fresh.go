package load

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

// freshLane opens a UDP socket for every query, so that each has a source port
// of its own, and closes it when the query has ended.
type freshLane struct {
	index   int32
	family  int
	target  unix.Sockaddr
	fds     []int // by slot, -1: none
	pending *pending
}

func newFreshLane(index int32, target netip.AddrPort, slots int) *freshLane {
	l := &freshLane{index: index, fds: make([]int, slots), pending: newPending(slots)}
	l.family, l.target = sockaddr(target)
	for i := range l.fds {
		l.fds[i] = -1
	}
	return l
}

func (l *freshLane) flights() *pending { return l.pending }
func (l *freshLane) tick(*worker)      {}

func (l *freshLane) send(w *worker, slot int32, msg []byte) bool {
	if fd := l.fds[slot]; fd >= 0 { // sent before, and once more from the same port
		return w.sendPacket(fd, msg[2:])
	}
	fd, err := openUDP(l.family, l.target)
	if err != nil {
		return false
	}
	l.fds[slot] = fd
	return w.poll.add(fd, l.index, slot) == nil && w.sendPacket(fd, msg[2:])
}

func (l *freshLane) ready(w *worker, ev unix.EpollEvent) {
	// A reply ends the query and closes the socket, so there is no second read.
	fd := l.fds[ev.Fd]
	if fd < 0 {
		return // closed since the event was reported
	}
	switch n, err := unix.Read(fd, w.in); err {
	case nil:
		w.take(l, w.in[:n])
	case unix.ECONNREFUSED:
		w.trouble.Refused++
	}
}

func (l *freshLane) ended(slot int32) {
	if fd := l.fds[slot]; fd >= 0 {
		unix.Close(fd)
		l.fds[slot] = -1
	}
}

func (l *freshLane) close() uint64 {
	for slot := range l.fds {
		l.ended(int32(slot))
	}
	return 0 // each buffer held one reply at most
}
