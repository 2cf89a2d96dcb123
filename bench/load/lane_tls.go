package load

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	handshake = 5 * time.Second // that the making of a connection may take
	maxUnsent = 256 << 10       // octets that may wait for a slow connection
)

// tlsLane is one TLS connection that carries many queries at once. A goroutine
// of its own makes the connection; then the worker reads and writes it without
// waiting. A broken one is made anew when the next query wants to leave. Queries
// wait for it as in [tcpLane].
type tlsLane struct {
	index   int32
	target  netip.AddrPort
	config  *tls.Config
	making  sync.WaitGroup
	fresh   chan madeTLS // the connection that was made, or why not
	busy    bool         // one is being made
	retry   time.Duration
	conn    *tls.Conn // nil: none
	wire    *wire
	waiting bool
	out     []byte // queries that wait for a connection
	in      []byte
	pending *pending
}

type madeTLS struct {
	conn *tls.Conn
	wire *wire
	err  error
}

func newTLSLane(index int32, target netip.AddrPort, config *tls.Config, slots int) *tlsLane {
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	config = config.Clone()
	if config.ServerName == "" {
		config.ServerName = target.Addr().Unmap().String()
	}
	return &tlsLane{
		index:   index,
		target:  target,
		config:  config,
		fresh:   make(chan madeTLS, 1),
		in:      make([]byte, 0, 2*65537),
		pending: newPending(slots),
	}
}

func (l *tlsLane) flights() *pending { return l.pending }
func (l *tlsLane) ended(int32)       {}

// made waits for the first connection.
func (l *tlsLane) made(w *worker) error {
	l.make()
	m := <-l.fresh
	return l.begin(w, m)
}

// make starts to make a connection.
func (l *tlsLane) make() {
	l.busy = true
	l.making.Go(func() { l.fresh <- dialTLS(l.target, l.config) })
}

func dialTLS(target netip.AddrPort, config *tls.Config) madeTLS {
	fd, err := openTCP(sockaddr(target))
	if err != nil {
		return madeTLS{err: err}
	}
	w := &wire{fd: fd, waits: true}
	conn := tls.Client(w, config)
	w.until = time.Now().Add(handshake)
	if err := conn.Handshake(); err != nil {
		_ = w.Close()
		return madeTLS{err: fmt.Errorf("load: TLS with %v: %w", target, err)}
	}
	w.waits = false
	return madeTLS{conn: conn, wire: w}
}

func (l *tlsLane) begin(w *worker, m madeTLS) error {
	l.busy = false
	if m.err != nil {
		return m.err
	}
	l.conn, l.wire = m.conn, m.wire
	return w.poll.add(m.wire.fd, l.index, 0)
}

// connected tells whether there is a connection, and sees to it that there will
// be one.
func (l *tlsLane) connected(w *worker) bool {
	if l.conn != nil {
		return true
	}
	select {
	case m := <-l.fresh:
		if err := l.begin(w, m); err != nil {
			w.trouble.Broken++
			l.retry = w.now() + redial
		}
		return l.conn != nil
	default:
	}
	if !l.busy && w.now() >= l.retry {
		l.make()
	}
	return false
}

func (l *tlsLane) send(w *worker, _ int32, msg []byte) bool {
	l.out = append(l.out, msg...)
	l.write(w)
	return true
}

// tick forgets the queries that have ended while they waited, and connects for
// the others.
func (l *tlsLane) tick(w *worker) {
	if l.out = l.pending.waiting(l.out); len(l.out) > 0 {
		l.write(w)
	}
}

// write encrypts what waits, if there is a connection.
func (l *tlsLane) write(w *worker) {
	if !l.connected(w) || len(l.wire.out) > maxUnsent {
		return
	}
	if _, err := l.conn.Write(l.out); err != nil {
		l.broken(w)
		return
	}
	l.out = l.out[:0]
	if !l.waiting {
		l.flush(w)
	}
}

func (l *tlsLane) flush(w *worker) {
	rest, err := l.wire.flush()
	if err != nil {
		l.broken(w)
		return
	}
	if l.waiting != rest {
		l.waiting = rest
		w.poll.writable(l.wire.fd, l.index, 0, rest)
	}
}

func (l *tlsLane) ready(w *worker, ev unix.EpollEvent) {
	if l.conn != nil && ev.Events&(unix.EPOLLIN|unix.EPOLLERR|unix.EPOLLHUP) != 0 {
		l.read(w)
	}
	if l.conn != nil && ev.Events&unix.EPOLLOUT != 0 {
		l.flush(w)
	}
}

// read takes the messages that are whole, until nothing more has come.
func (l *tlsLane) read(w *worker) {
	for {
		n, err := l.conn.Read(l.in[len(l.in):cap(l.in)])
		if errors.Is(err, errAgain{}) {
			return
		}
		if err != nil {
			l.broken(w)
			return
		}
		l.in = l.in[:len(l.in)+n]
		rest := l.in
		for len(rest) >= 2 && len(rest) >= 2+int(binary.BigEndian.Uint16(rest)) {
			size := 2 + int(binary.BigEndian.Uint16(rest))
			w.take(l, rest[2:size])
			rest = rest[size:]
		}
		l.in = l.in[:copy(l.in, rest)]
	}
}

func (l *tlsLane) broken(w *worker) {
	w.trouble.Broken++
	l.drop()
}

func (l *tlsLane) drop() {
	if l.conn != nil {
		_ = l.wire.Close()
	}
	l.conn, l.wire, l.waiting, l.in = nil, nil, false, l.in[:0]
}

func (l *tlsLane) close() uint64 {
	l.making.Wait()
	select {
	case m := <-l.fresh:
		l.conn, l.wire = m.conn, m.wire
	default:
	}
	l.drop()
	return 0
}
