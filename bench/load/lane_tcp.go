package load

import (
	"encoding/binary"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// redial is the pause after an attempt to connect that failed.
const redial = 50 * time.Millisecond

// tcpLane is one TCP connection that carries many queries at once. A broken one
// is made anew when the next query wants to leave; what was in flight on it
// never gets a reply and ends as lost. Queries wait for a connection until their
// time is up, so that a server that is away loses them and one that comes back
// gets those that are left.
type tcpLane struct {
	index   int32
	family  int
	target  unix.Sockaddr
	fd      int  // -1: none
	made    bool // the connection was: it took or gave something
	retry   time.Duration
	waiting bool   // for the socket to become writable
	out     []byte // queries not yet taken by the kernel
	part    int    // octets at the begin of out that are the rest of a query
	in      []byte // read, but not yet a whole message
	pending *pending
}

func newTCPLane(index int32, target netip.AddrPort, slots int) *tcpLane {
	l := &tcpLane{
		index:   index,
		fd:      -1,
		out:     make([]byte, 0, 64<<10),
		in:      make([]byte, 0, 2*65537),
		pending: newPending(slots),
	}
	l.family, l.target = sockaddr(target)
	return l
}

func (l *tcpLane) flights() *pending { return l.pending }
func (l *tcpLane) ended(int32)       {}

func (l *tcpLane) send(w *worker, _ int32, msg []byte) bool {
	l.out = append(l.out, msg...)
	switch {
	case l.fd < 0:
		l.dial(w)
	case !l.waiting:
		l.flush(w)
	}
	return true
}

// tick forgets the queries that have ended while they waited, and connects for
// the others.
func (l *tcpLane) tick(w *worker) {
	if len(l.out) == 0 {
		return
	}
	l.out = l.out[:l.part+len(l.pending.waiting(l.out[l.part:]))]
	if l.fd < 0 && len(l.out) > 0 {
		l.dial(w)
	}
}

func (l *tcpLane) dial(w *worker) {
	if w.now() < l.retry {
		return
	}
	fd, err := openTCP(l.family, l.target)
	if err == nil {
		if err = w.poll.add(fd, l.index, 0); err != nil {
			unix.Close(fd)
		}
	}
	if err != nil {
		l.broken(w)
		return
	}
	l.fd = fd
	l.wait(w, true) // writable means connected
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
		l.took(n)
	}
	l.wait(w, false)
}

// took drops what the kernel took, and notes how much of its last query is left.
func (l *tcpLane) took(n int) {
	end := l.part
	for end < n {
		end += 2 + int(binary.BigEndian.Uint16(l.out[end:]))
	}
	l.made, l.part = true, end-n
	l.out = l.out[:copy(l.out, l.out[n:])]
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
	l.made = true
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

// broken closes the connection. The next one is made at once, or after a pause
// if this one never was.
func (l *tcpLane) broken(w *worker) {
	w.trouble.Broken++
	if !l.made {
		l.retry = w.now() + redial
	}
	l.close()
}

func (l *tcpLane) close() uint64 {
	if l.fd >= 0 {
		unix.Close(l.fd)
	}
	// The rest of a query means nothing to another connection.
	l.out = l.out[:copy(l.out, l.out[l.part:])]
	l.fd, l.made, l.waiting, l.part, l.in = -1, false, false, 0, l.in[:0]
	return 0
}
