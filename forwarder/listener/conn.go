package listener

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// lingering is how long a connection that we end reads on after its last reply
// and FIN: closing it with unread bytes would reset it, and the client would
// lose replies that it has not read yet.
const lingering = 250 * time.Millisecond

// conn is one TCP connection. Its reader goroutine answers hits itself and
// starts a goroutine for each miss; both write, one at a time.
type conn struct {
	tcp  *TCP
	net  *net.TCPConn
	seat seat

	// Owned by the reader.
	from    Peer
	in      input
	out     *output // nil while nothing waits to be written
	hits    int     // replies in out
	queries int     // taken in so far
	working bool    // a query is being answered, not waited for
	began   time.Time

	slots  slots // one for each miss in flight
	misses sync.WaitGroup

	stopping atomic.Bool
	stopBy   atomic.Int64 // Unix time in ns
	writing  sync.Mutex
	aborted  sync.Once
	gone     chan struct{} // closed when nothing more can be written
}

func newConn(t *TCP, nc *net.TCPConn, client netip.AddrPort) *conn {
	return &conn{
		tcp:   t,
		net:   nc,
		from:  Peer{Client: client, Listener: t.cfg.Listener, Stripe: t.cfg.Stripe, Proto: ProtoTCP},
		in:    newInput(),
		slots: newSlots(t.cfg.MaxInFlightPerConnection),
		gone:  make(chan struct{}),
	}
}

// serve reads and answers until the connection ends. It returns when every
// reply was sent and the connection is closed.
func (c *conn) serve(ctx context.Context) {
	var err error
	for err == nil {
		var query []byte
		if query, err = c.next(); err == nil {
			err = c.answer(ctx, query)
		}
	}
	c.count(err)
	_ = c.flush() // an error has closed the connection
	c.misses.Wait()
	c.end(err)
}

// Why a connection ends, beside the errors of the network.
var (
	errClose    = errors.New("the handler closed the connection")
	errEnough   = errors.New("as many queries as one connection may ask")
	errStopping = errors.New("the listener stops")
	errGone     = errors.New("the client takes no replies")
)

// count tells the counters why the connection ended.
func (c *conn) count(err error) {
	switch {
	case errors.Is(err, errFrame), errors.Is(err, errClose):
		c.tcp.counters.malformed.Add(1)
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.tcp.counters.timedOut.Add(1)
	}
}

// end closes the connection. Whoever has not ended his side yet is told that
// ours has, and gets time to read.
func (c *conn) end(why error) {
	if errors.Is(why, errEnough) || errors.Is(why, errStopping) {
		if c.net.CloseWrite() == nil && c.net.SetReadDeadline(time.Now().Add(lingering)) == nil {
			_, _ = io.Copy(io.Discard, onlyReader{c.net})
		}
	}
	_ = c.net.Close() // nothing to be done about an error
}

// onlyReader hides the methods by which io.Copy would read in other ways.
type onlyReader struct{ io.Reader }

// next returns the next query, which stays valid until it is called again.
// Before it waits for more bytes it writes the replies gathered so far.
func (c *conn) next() ([]byte, error) {
	if limit := c.tcp.cfg.MaxQueries; limit > 0 && c.queries >= limit {
		return nil, errEnough
	}
	for {
		query, ok, err := c.in.message()
		if ok {
			c.queries++
			c.tcp.counters.received.Add(1)
			c.began = time.Time{}
			c.work()
		}
		if ok || err != nil {
			return query, err
		}
		if err := c.flush(); err != nil {
			return nil, err
		}
		c.rest()
		if err := c.fill(); err != nil {
			return nil, err
		}
	}
}

// work tells the admission that the reader has a query to answer.
func (c *conn) work() {
	if !c.working {
		c.working = true
		c.tcp.admission.begin(&c.seat, c.from.Received)
	}
}

// rest tells the admission that the reader has none left.
func (c *conn) rest() {
	if c.working {
		c.working = false
		c.tcp.admission.finish(&c.seat)
	}
}

// fill reads what is there, and waits for it.
func (c *conn) fill() error {
	for {
		if err := c.arm(); err != nil {
			return err
		}
		n, err := c.net.Read(c.in.space())
		if n > 0 {
			c.in.read(n)
			c.from.Received = c.tcp.cfg.Now()
			return nil
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		if c.stopping.Load() {
			return c.lastLook()
		}
		if !c.in.empty() || c.slots.inUse() == 0 {
			return err
		}
	}
}

// lastLook reads what came while this goroutine waited for a CPU: a read whose
// deadline is over returns without a look at the socket.
func (c *conn) lastLook() error {
	if !ready(c.net) {
		return errStopping
	}
	if err := c.net.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	n, err := c.net.Read(c.in.space())
	if n > 0 {
		c.in.read(n)
		c.from.Received = c.tcp.cfg.Now()
		return nil
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errStopping
	}
	return err
}

// arm sets the deadline of the next read. A query has MessageTimeout from its
// first byte to its last, which more bytes do not extend. Pressure that rises
// later shortens no deadline: a full listener evicts instead.
func (c *conn) arm() error {
	now := time.Now()
	var deadline time.Time
	switch {
	case !c.in.empty():
		if c.began.IsZero() {
			c.began = now
		}
		deadline = c.began.Add(c.tcp.patience(c.tcp.cfg.MessageTimeout))
	case c.queries == 0:
		deadline = now.Add(c.tcp.patience(c.tcp.cfg.MessageTimeout))
	default:
		deadline = now.Add(c.tcp.idle())
	}
	if err := c.net.SetReadDeadline(deadline); err != nil {
		return err
	}
	// After the deadline is set, so that either stop sees it or we see stop.
	if c.stopping.Load() {
		return c.armStopping(now, deadline)
	}
	return nil
}

// armStopping waits only as long as the last queries may need to come in.
func (c *conn) armStopping(now, deadline time.Time) error {
	quiet := now.Add(c.tcp.cfg.DrainQuiet)
	if quiet.After(time.Unix(0, c.stopBy.Load())) {
		return errStopping
	}
	if quiet.Before(deadline) {
		deadline = quiet
	}
	return c.net.SetReadDeadline(deadline)
}

// stop makes the reader end once its client is silent, at the latest after
// half of the grace. It may be called by any goroutine.
func (c *conn) stop() {
	now := time.Now()
	c.stopBy.Store(now.Add(c.tcp.cfg.Grace / 2).UnixNano())
	c.stopping.Store(true)
	_ = c.net.SetReadDeadline(now.Add(c.tcp.cfg.DrainQuiet)) // fails only on a closed connection
}

// answer looks the query up and gathers the reply, or starts a miss.
func (c *conn) answer(ctx context.Context, query []byte) error {
	if c.out == nil {
		c.out = c.tcp.outputs.Get().(*output)
	}
	reply, v := c.tcp.cfg.Handler.Lookup(c.out.room(), query, c.from)
	switch {
	case v == Close:
		return errClose
	case v == Miss:
		return c.miss(ctx, query)
	case v != Answered:
		return nil
	case !sendable(reply):
		c.tcp.counters.oversized.Add(1)
		return nil
	}
	c.out.add(reply)
	c.hits++
	if c.out.due() {
		return c.flush()
	}
	return nil
}

// flush writes the replies gathered and gives the output back.
func (c *conn) flush() error {
	if c.out == nil {
		return nil
	}
	err := error(nil)
	if c.hits > 0 {
		err = c.write(c.out.data[:c.out.used], c.hits)
		c.tcp.cfg.Handler.Done(c.from, c.tcp.cfg.Now()-c.from.Received)
	}
	c.out.used, c.hits = 0, 0
	c.tcp.outputs.Put(c.out)
	c.out = nil
	return err
}

// miss starts a goroutine for the query. While too many are in flight it waits,
// so that the client has to wait as well.
func (c *conn) miss(ctx context.Context, query []byte) error {
	c.tcp.counters.missed.Add(1)
	if err := c.takeSlot(c.slots); err != nil {
		return err
	}
	if err := c.takeSlot(c.tcp.inFlight); err != nil {
		c.slots.give()
		return err
	}
	// One array holds the query, the prefix of the reply, and the reply.
	data := make([]byte, len(query)+prefixSize+ReplySize)
	copy(data, query)
	from := c.from
	c.tcp.admission.begin(&c.seat, from.Received)
	c.misses.Go(func() { c.resolve(ctx, data, len(query), from) })
	return nil
}

// takeSlot takes a slot of s. Replies gathered so far do not wait with it.
func (c *conn) takeSlot(s slots) error {
	if s.tryTake() {
		return nil
	}
	c.tcp.counters.waited.Add(1)
	if err := c.flush(); err != nil {
		return err
	}
	if !s.take(c.gone) {
		return errGone
	}
	return nil
}

// resolve owns data, which begins with a query of n bytes.
func (c *conn) resolve(ctx context.Context, data []byte, n int, from Peer) {
	defer c.slots.give()
	defer c.tcp.inFlight.give()
	defer c.tcp.admission.finish(&c.seat)
	query, framed := data[:n:n], data[n:]
	body := framed[prefixSize:]
	reply, v := c.tcp.cfg.Handler.Resolve(ctx, body[:0], query, from)
	switch {
	case v == Close:
		c.tcp.counters.malformed.Add(1)
		c.abort()
		return
	case v != Answered:
		return
	case !sendable(reply):
		c.tcp.counters.oversized.Add(1)
		return
	}
	if len(reply) > len(body) {
		framed = make([]byte, prefixSize+len(reply))
		body = framed[prefixSize:]
	}
	frame(framed, body, reply)
	_ = c.write(framed[:prefixSize+len(reply)], 1) // an error has closed the connection
}

// write writes whole messages, in one piece. If the client does not take them
// in time the connection is cut.
func (c *conn) write(messages []byte, replies int) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	select {
	case <-c.gone:
		return errGone
	default:
	}
	err := c.net.SetWriteDeadline(time.Now().Add(c.tcp.patience(c.tcp.cfg.WriteTimeout)))
	if err == nil {
		_, err = c.net.Write(messages)
	}
	if err != nil {
		if c.abort() {
			c.tcp.counters.stalled.Add(1)
		}
		return err
	}
	c.tcp.counters.answered.Add(uint64(replies))
	return nil
}

// abort resets the connection, which wakes its reader and frees what the kernel
// still holds for the client. It may be called by any goroutine, repeatedly, and
// reports whether this call was the first.
func (c *conn) abort() (first bool) {
	c.aborted.Do(func() {
		first = true
		close(c.gone)
		_ = c.net.SetLinger(0)
		_ = c.net.Close()
	})
	return first
}
