package load

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// eachLane opens a TCP connection for every query and closes it after the
// reply, as most clients do that ask over TCP at all.
type eachLane struct {
	index   int32
	family  int
	target  unix.Sockaddr
	conns   []eachConn // by slot
	pending *pending
}

// eachConn is one connection. Its buffers stay for the slot's next query.
type eachConn struct {
	fd  int // -1: none
	out []byte
	in  []byte
}

func newEachLane(index int32, target netip.AddrPort, slots int) *eachLane {
	l := &eachLane{index: index, conns: make([]eachConn, slots), pending: newPending(slots)}
	l.family, l.target = sockaddr(target)
	for i := range l.conns {
		l.conns[i].fd = -1
	}
	return l
}

func (l *eachLane) flights() *pending { return l.pending }
func (l *eachLane) tick(*worker)      {}

func (l *eachLane) send(w *worker, slot int32, msg []byte) bool {
	l.ended(slot) // a query that is sent again takes a connection of its own
	fd, err := openTCP(l.family, l.target)
	if err != nil {
		return false
	}
	c := &l.conns[slot]
	c.fd, c.out, c.in = fd, append(c.out[:0], msg...), c.in[:0]
	if w.poll.add(fd, l.index, slot) != nil {
		return false
	}
	w.poll.writable(fd, l.index, slot, true) // writable means connected
	return true
}

func (l *eachLane) ready(w *worker, ev unix.EpollEvent) {
	slot := ev.Fd
	c := &l.conns[slot]
	if c.fd < 0 {
		return // closed since the event was reported
	}
	switch {
	case ev.Events&unix.EPOLLIN != 0:
		l.read(w, slot)
	case ev.Events&(unix.EPOLLERR|unix.EPOLLHUP) != 0:
		l.broken(w, slot)
	case ev.Events&unix.EPOLLOUT != 0:
		l.write(w, slot)
	}
}

func (l *eachLane) write(w *worker, slot int32) {
	c := &l.conns[slot]
	n, err := unix.Write(c.fd, c.out)
	switch {
	case err == unix.EAGAIN:
	case err != nil:
		l.broken(w, slot)
	case n < len(c.out):
		c.out = c.out[:copy(c.out, c.out[n:])]
	default:
		w.poll.writable(c.fd, l.index, slot, false)
	}
}

// read takes the reply when it is whole.
func (l *eachLane) read(w *worker, slot int32) {
	c := &l.conns[slot]
	n, err := unix.Read(c.fd, w.in)
	if err == unix.EAGAIN {
		return
	}
	if err != nil || n == 0 {
		l.broken(w, slot)
		return
	}
	c.in = append(c.in, w.in[:n]...)
	if len(c.in) < 2 || len(c.in) < 2+int(binary.BigEndian.Uint16(c.in)) {
		return
	}
	// Nothing more comes on this connection. If the query is sent again it gets
	// another, and a reply with another ID leaves it waiting.
	l.ended(slot)
	w.take(l, c.in[2:2+int(binary.BigEndian.Uint16(c.in))])
}

// broken closes the connection; its query ends as lost when its time is up.
func (l *eachLane) broken(w *worker, slot int32) {
	w.trouble.Broken++
	l.ended(slot)
}

func (l *eachLane) ended(slot int32) {
	if c := &l.conns[slot]; c.fd >= 0 {
		unix.Close(c.fd)
		c.fd = -1
	}
}

func (l *eachLane) close() uint64 {
	for slot := range l.conns {
		l.ended(int32(slot))
	}
	return 0
}
