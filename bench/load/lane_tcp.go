package load

import (
	"encoding/binary"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

const (
	maxUnsent = 256 << 10             // octets that may wait for a slow connection
	redial    = 50 * time.Millisecond // between two attempts to connect
)

// tcpLane is one TCP connection that carries many queries at once. A broken one
// is made anew when the next query wants to leave; what was in flight on it
// never gets a reply and ends as lost.
type tcpLane struct {
	index   int32
	family  int
	target  unix.Sockaddr
	fd      int // -1: none
	retry   time.Duration
	waiting bool   // for the socket to become writable
	out     []byte // not yet taken by the kernel
	in      []byte // read, but not yet a whole message
	pending *pending
}

func newTCPLane(index int32, target netip.AddrPort, slots int) *tcpLane {
	l := &tcpLane{
		index:   index,
		fd:      -1,
		out:     make([]byte, 0, maxUnsent),
		in:      make([]byte, 0, 2*65537),
		pending: newPending(slots),
	}
	l.family, l.target = sockaddr(target)
	return l
}

func (l *tcpLane) flights() *pending { return l.pending }
func (l *tcpLane) ended(int32)       {}

func (l *tcpLane) send(w *worker, _ int32, msg []byte) bool {
	if l.fd < 0 && !l.dial(w) || len(l.out)+len(msg) > cap(l.out) {
		return false
	}
	l.out = append(l.out, msg...)
	if !l.waiting {
		l.flush(w)
	}
	return true
}

func (l *tcpLane) dial(w *worker) bool {
	if w.now() < l.retry {
		return false
	}
	l.retry = w.now() + redial
	fd, err := openTCP(l.family, l.target)
	if err != nil {
		w.trouble.Broken++
		return false
	}
	if err := w.poll.add(fd, l.index, 0); err != nil {
		unix.Close(fd)
		return false
	}
	l.fd = fd
	l.wait(w, true) // writable means connected
	return true
}

func (l *tcpLane) wait(w *worker, on bool) {
	if l.waiting != on {
		l.waiting = on
		w.poll.writable(l.fd, l.index, 0, on)
	}
}

// flush writes as much as the kernel takes.
func (l *tcpLane) flush(w *worker) {
	for len(l.out) > 0 {
		n, err := unix.Write(l.fd, l.out)
		if err == unix.EAGAIN {
			l.wait(w, true)
			return
		}
		if err != nil {
			l.broken(w)
			return
		}
		l.out = l.out[:copy(l.out, l.out[n:])]
	}
	l.wait(w, false)
}

func (l *tcpLane) ready(w *worker, ev unix.EpollEvent) {
	if l.fd >= 0 && ev.Events&unix.EPOLLIN != 0 {
		l.read(w)
	}
	if l.fd >= 0 && ev.Events&unix.EPOLLOUT != 0 {
		l.flush(w)
	}
	if l.fd >= 0 && ev.Events&(unix.EPOLLERR|unix.EPOLLHUP) != 0 {
		l.broken(w)
	}
}

// read takes the messages that are whole and keeps the rest.
func (l *tcpLane) read(w *worker) {
	n, err := unix.Read(l.fd, l.in[len(l.in):cap(l.in)])
	if err == unix.EAGAIN {
		return
	}
	if err != nil || n == 0 {
		l.broken(w)
		return
	}
	l.in = l.in[:len(l.in)+n]
	rest := l.in
	for len(rest) >= 2 {
		size := 2 + int(binary.BigEndian.Uint16(rest))
		if len(rest) < size {
			break
		}
		w.take(l, rest[2:size])
		rest = rest[size:]
	}
	l.in = l.in[:copy(l.in, rest)]
}

func (l *tcpLane) broken(w *worker) {
	w.trouble.Broken++
	l.close()
}

func (l *tcpLane) close() uint64 {
	if l.fd >= 0 {
		unix.Close(l.fd)
	}
	l.fd, l.waiting, l.out, l.in = -1, false, l.out[:0], l.in[:0]
	return 0
}
