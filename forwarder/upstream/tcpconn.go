package upstream

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

// tcpConn is one connection. At most Config.TCPDepth queries are unanswered on
// it, so that a write always fits the send buffer and never waits.
type tcpConn struct {
	pool    *tcpPool
	expires time.Duration

	mu   sync.Mutex
	conn net.Conn // nil while dialling
	out  []byte   // queries that wait for the dial
	// pending is every query without a reply by its ID. Those that nobody
	// waits for stay: the server still owes their replies, in order.
	pending map[uint16]owed
	replies int
	retired bool // takes no more queries
	closed  bool
}

// owed is one query on its way.
type owed struct {
	asked
	endAt time.Duration // the connection is dead if the reply is not there by then
}

func newTCPConn(p *tcpPool, now time.Duration) *tcpConn {
	return &tcpConn{
		pool: p, expires: now + p.group.jittered(p.group.cfg.TCPAge),
		pending: map[uint16]owed{},
	}
}

// load is what the choice has to know; ok is false when the connection takes no
// more queries.
func (c *tcpConn) load(now time.Duration) (l connLoad, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now >= c.expires {
		c.retired = true
		c.closeIfDone()
	}
	if c.closed || c.retired {
		return l, false
	}
	l.inFlight = len(c.pending)
	for _, q := range c.pending {
		l.waited = max(l.waited, now-q.at)
	}
	return l, true
}

// send puts a's question; false when the connection takes no more.
func (c *tcpConn) send(a *attempt, now time.Duration) bool {
	conn, ok := c.register(a, now)
	if !ok || conn == nil {
		return ok
	}
	if _, err := conn.Write(a.frame); err != nil {
		c.fail(err)
	}
	return true
}

// register makes a pending. While the connection is not there, the query waits
// with it and conn is nil.
func (c *tcpConn) register(a *attempt, now time.Duration) (conn net.Conn, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.retired {
		return nil, false
	}
	a.register(c, c.freeID())
	c.pending[a.id] = owed{asked{by: a, at: now, class: a.class, speaks: a.speaks}, a.endAt}
	if c.conn == nil {
		c.out = append(c.out, a.frame...)
		return nil, true
	}
	if len(c.pending) == 1 {
		c.setDeadline()
	}
	return c.conn, true
}

func (c *tcpConn) freeID() uint16 {
	for {
		id := uint16(c.pool.group.cfg.Random())
		if _, used := c.pending[id]; !used {
			return id
		}
	}
}

// run is the connection's goroutine: it dials, then reads until the end.
func (c *tcpConn) run() {
	defer c.pool.forget(c)
	conn, err := c.pool.connect()
	if err != nil {
		c.fail(err)
		return
	}
	if !c.connected(conn) {
		_ = conn.Close() // it was given up while dialling
		return
	}
	c.fail(c.readAll(bufio.NewReader(conn)))
}

// connected sends the queries that waited; false when the connection was closed
// meanwhile.
func (c *tcpConn) connected(conn net.Conn) bool {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return false
	}
	c.conn = conn
	out := c.out
	c.out = nil
	c.setDeadline()
	c.mu.Unlock()
	// On an error the reader finds the connection broken.
	_, _ = conn.Write(out)
	return true
}

// readAll takes messages until the connection ends, and returns why.
func (c *tcpConn) readAll(r *bufio.Reader) error {
	var msg []byte
	for {
		head, err := r.Peek(2)
		if errors.Is(err, os.ErrDeadlineExceeded) && c.goOn() {
			continue
		}
		if err != nil {
			return err
		}
		n := int(binary.BigEndian.Uint16(head))
		_, _ = r.Discard(2) // cannot fail after Peek
		if cap(msg) < n {
			msg = make([]byte, n)
		}
		if _, err := io.ReadFull(r, msg[:n]); err != nil {
			return err
		}
		if err := c.take(msg[:n]); err != nil {
			return err
		}
	}
}

// take gives one message to its attempt. On a stream nobody can forge, so that
// anything else than a reply is the server's error and ends the connection.
func (c *tcpConn) take(msg []byte) error {
	reply, err := wire.ParseReply(msg)
	if err != nil {
		return errors.Join(ErrMalformed, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	id := wire.ID(msg)
	q, known := c.pending[id]
	switch {
	case !known:
		return ErrMismatch
	case q.by == nil:
		c.pool.score.ignored[IgnoredLate].Add(1)
		c.pool.group.learnLate(c.pool.score, q.asked, reply.RCode)
	case !wire.Matches(msg, q.by.query()):
		return ErrMismatch
	default:
		q.by.deliver(reply)
	}
	delete(c.pending, id)
	c.replies++
	c.setDeadline()
	c.closeIfDone()
	return nil
}

// setDeadline lets the reader wake when the oldest query in flight is lost, or
// the connection has been idle too long. The lock is held.
func (c *tcpConn) setDeadline() {
	wait := c.wait(c.pool.group.cfg.Now())
	// It fails only on a closed connection, which wakes the reader, too.
	_ = c.conn.SetReadDeadline(time.Now().Add(wait))
}

func (c *tcpConn) wait(now time.Duration) time.Duration {
	if len(c.pending) == 0 {
		return c.pool.group.cfg.TCPIdle
	}
	first := time.Duration(1<<63 - 1)
	for _, q := range c.pending {
		first = min(first, q.endAt)
	}
	return first - now
}

// goOn is asked when the deadline has passed: true when it was an older one,
// and the connection is not yet lost.
func (c *tcpConn) goOn() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pending) == 0 {
		c.retired = true
		c.closeIfDone()
		return false
	}
	wait := c.wait(c.pool.group.cfg.Now())
	return wait > 0 && c.conn.SetReadDeadline(time.Now().Add(wait)) == nil
}

// abandon lets nobody wait for a's reply any more.
func (c *tcpConn) abandon(a *attempt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if q := c.pending[a.id]; q.by == a {
		q.by = nil
		c.pending[a.id] = q
	}
}

// closeIfDone closes a retired connection after its last query. The lock is
// held.
func (c *tcpConn) closeIfDone() {
	if len(c.pending) == 0 && c.retired {
		c.shut()
	}
}

// shut closes the connection. The lock is held.
func (c *tcpConn) shut() {
	c.closed = true
	if c.conn != nil {
		_ = c.conn.Close() // nothing is lost, and nobody could act on it
	}
}

// signal tells every query in flight that its chances are bad.
func (c *tcpConn) signal(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, q := range c.pending {
		if q.by != nil {
			q.by.signal(gotSignal, cause)
		}
	}
	c.retired = true
	c.closeIfDone()
}

// fail ends a connection that broke. Servers close connections after some time
// or some queries: if it had worked before, a query on it is only unlucky and
// may go again.
func (c *tcpConn) fail(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := gotEnd
	if c.replies > 0 && isClosedByPeer(cause) {
		k = gotStale
	}
	c.endAll(k, cause)
}

// close ends the connection and every query in flight.
func (c *tcpConn) close(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endAll(gotEnd, cause)
}

func (c *tcpConn) endAll(k kind, cause error) {
	if errors.Is(cause, os.ErrDeadlineExceeded) || errors.Is(cause, context.DeadlineExceeded) {
		cause = ErrSilent
	}
	for _, q := range c.pending {
		if q.by != nil {
			q.by.tell(k, cause)
		}
	}
	clear(c.pending)
	c.shut()
}
