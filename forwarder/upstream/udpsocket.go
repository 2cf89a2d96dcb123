package upstream

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

// udpSocket is a connected socket with a random port of its own, shared by many
// queries and told apart by ID. It lives shortly: a new one has a new port, and
// a new way through whatever keeps state on the path.
type udpSocket struct {
	pool    *udpPool
	conn    net.Conn
	raw     syscall.RawConn
	expires time.Duration
	retired atomic.Bool // takes no more queries

	// Writing. The function is made once, because making it allocates.
	writing  sync.Mutex
	out      []byte
	outErr   error
	writeOut func(fd uintptr) bool

	readErr error // reader only: why it gave up

	mu sync.Mutex
	// pending is every query without a reply by its ID. Those that nobody
	// waits for any more stay for the life of the socket, so that their IDs
	// are not used again and a late reply cannot be taken for another's.
	pending map[uint16]asked
	active  int // in pending and waited for
	sent    int
	closed  bool
}

// mostQueries is how many queries a socket can carry in its life, so that free IDs are
// easy to find.
const mostQueries = 1 << 15

// asked is one query on its way.
type asked struct {
	by     *attempt // nil: its exchange has ended
	at     time.Duration
	class  class
	speaks bool // for the target, as the attempt's

	// Over UDP, what is left of the question once its exchange has ended.
	question uint64 // its hash
	nameLen  uint8
}

func newUDPSocket(p *udpPool, conn net.Conn, now time.Duration) (*udpSocket, error) {
	plain, ok := conn.(syscall.Conn)
	if !ok {
		return nil, errors.Join(ErrNoSocket, conn.Close())
	}
	raw, err := plain.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	var deaf error
	if err = raw.Control(func(fd uintptr) { deaf = hearErrors(fd, p.addr.Addr()) }); err == nil {
		err = deaf
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	life := p.group.jittered(p.group.cfg.SocketAge)
	// The reader, too, sees to the age, for sockets that nobody uses.
	if err := conn.SetReadDeadline(time.Now().Add(life)); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	s := &udpSocket{
		pool: p, conn: conn, raw: raw, expires: now + life,
		pending: map[uint16]asked{},
	}
	s.writeOut = s.writeTo
	return s, nil
}

func (s *udpSocket) usable(now time.Duration) bool { return !s.retired.Load() && now < s.expires }

// send puts a's question; ok is false when the socket takes no more. Anyhow has one
// that is out of use take it while it is open.
func (s *udpSocket) send(a *attempt, now time.Duration, anyhow bool) (ok bool, err error) {
	if !s.register(a, now, anyhow) {
		return false, nil
	}
	err = s.write(a.query())
	if err != nil {
		// The kernel gives an error of earlier datagrams to whoever comes
		// first, and sends nothing: theirs is the error, and ours goes again.
		s.signal(err, a)
		err = s.write(a.query())
	}
	if err != nil {
		s.abandon(a)
		a.via = nil
		return true, err
	}
	return true, nil
}

func (s *udpSocket) register(a *attempt, now time.Duration, anyhow bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.retired.Load() && !anyhow || s.sent >= mostQueries {
		return false
	}
	a.register(s, s.freeID())
	s.pending[a.id] = asked{by: a, at: now, class: a.class, speaks: a.speaks}
	s.active++
	s.sent++
	if s.sent >= s.pool.group.cfg.SocketQueries {
		s.retired.Store(true)
	}
	return true
}

// freeID is a random ID that was not used since the socket opened, or whose
// query was answered. At least half of all IDs are free, so the loop is short.
func (s *udpSocket) freeID() uint16 {
	for {
		id := uint16(s.pool.group.cfg.Random())
		if _, used := s.pending[id]; !used {
			return id
		}
	}
}

// write sends without waiting for room in the send buffer: datagrams to a host
// that does not answer ARP can fill it for seconds.
func (s *udpSocket) write(b []byte) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.out = b
	if err := s.raw.Write(s.writeOut); err != nil {
		return err
	}
	return s.outErr
}

func (s *udpSocket) writeTo(fd uintptr) bool {
	for {
		switch _, s.outErr = writeRaw(fd, s.out); s.outErr {
		case syscall.EINTR:
			continue
		case syscall.ENOBUFS:
			s.outErr = nil // lost on the way out, as it may be farther on
		case nil, syscall.EAGAIN:
		default:
			dropReports(fd)
		}
		return true
	}
}

// read is the socket's goroutine: it takes what arrives, until the socket is
// done, and closes it.
func (s *udpSocket) read() {
	defer s.pool.forget(s)
	take := s.takeAll
	for {
		err := s.raw.Read(take)
		if errors.Is(err, os.ErrDeadlineExceeded) && !s.outlived() {
			continue
		}
		if err == nil {
			err = s.readErr
		}
		s.close(err)
		_ = s.conn.Close() // nothing is lost, and nobody could act on it
		return
	}
}

// outlived takes the socket out of use because its time has come; true when it
// is done. Whatever is in flight ends within a budget.
func (s *udpSocket) outlived() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retired.Store(true)
	s.closeIfDone()
	return s.closed || s.conn.SetReadDeadline(time.Now().Add(s.pool.group.cfg.Budget)) != nil
}

// takeAll reads until nothing is there, or nothing that is waited for can be: most
// replies come one at a time, and are spared the read that finds nothing. What else
// lies behind the last, a late reply, a duplicate or a forgery, is read with the next.
// false asks to be called again when more comes, also between that read and the
// return; true says that the socket is broken.
func (s *udpSocket) takeAll(fd uintptr) bool {
	// The buffer is borrowed only while there is something to read, so that
	// idle sockets hold none.
	buf := s.pool.group.buffers.Get().(*[wire.MaxMessage]byte)
	defer s.pool.group.buffers.Put(buf)
	const broken = 64 // errors in a row, which no network can cause
	for failures := 0; failures < broken; {
		n, err := readRaw(fd, buf[:])
		switch err {
		case nil:
			failures = 0
			if s.take(buf[:n]) {
				return false
			}
		case syscall.EINTR:
		case syscall.EAGAIN:
			return false
		default: // an ICMP error; the socket stays usable
			failures++
			dropReports(fd)
			s.readErr = err
			s.signal(err, nil)
		}
	}
	return true
}

// take judges one datagram, and reports whether it is the last reply that is waited
// for. What is not the reply to a query in flight is counted and changes nothing: it
// may be forged.
func (s *udpSocket) take(msg []byte) (last bool) {
	if len(msg) < wire.HeaderLen {
		s.ignore(IgnoredShort)
		return false
	}
	if !wire.IsResponse(msg) {
		s.ignore(IgnoredNotResponse)
		return false
	}
	s.mu.Lock()
	was, known := s.pending[wire.ID(msg)]
	why, ignored := s.match(msg, was, known)
	last = !ignored && s.active == 0
	s.mu.Unlock()
	if ignored {
		s.ignore(why)
	}
	if ignored && why == IgnoredLate {
		s.pool.group.learnLate(s.pool.score, was, wire.HeaderRCode(msg))
	}
	return last
}

func (s *udpSocket) match(msg []byte, was asked, known bool) (why Ignored, ignored bool) {
	a := was.by
	switch {
	case !known:
		return IgnoredWrongID, true
	case a == nil && !s.pool.group.repeats(msg, was):
		return IgnoredWrongQuestion, true
	case a == nil:
		return IgnoredLate, true
	case !a.plain && isBareFormErr(msg):
		a.signal(gotHint, nil)
		return IgnoredWrongQuestion, true
	case !wire.Matches(msg, a.query()):
		return IgnoredWrongQuestion, true
	}
	if a.mixed {
		same := a.repeats(msg)
		s.pool.score.sameCase(s.pool.group.cfg.Now(), same)
		if !same {
			a.signal(gotCase, nil)
			return IgnoredWrongCase, true
		}
	}
	reply, err := wire.ParseReply(msg)
	if err != nil {
		a.signal(gotSignal, ErrMalformed)
		return IgnoredUnparsable, true
	}
	delete(s.pending, a.id)
	a.deliver(reply)
	s.release()
	return 0, false
}

// isBareFormErr reports whether msg is a FORMERR without a question, as servers
// answer that cannot read an OPT record.
func isBareFormErr(msg []byte) bool {
	return wire.HeaderRCode(msg) == wire.FormErr && msg[4] == 0 && msg[5] == 0
}

func (s *udpSocket) ignore(why Ignored) { s.pool.score.ignored[why].Add(1) }

// abandon lets nobody wait for a's reply any more.
func (s *udpSocket) abandon(a *attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was := s.pending[a.id]; was.by == a {
		was.by, was.nameLen = nil, uint8(len(a.name))
		was.question = s.pool.group.hashQuestion(a.query(), len(a.name))
		s.pending[a.id] = was
		s.release()
	}
}

// release counts one query less; the last one closes a retired socket.
func (s *udpSocket) release() {
	s.active--
	s.closeIfDone()
}

// closeIfDone has the reader close a retired socket. Nobody else can: a close
// waits for the reader to come out of what it does, and the lock is held.
func (s *udpSocket) closeIfDone() {
	if s.active == 0 && s.retired.Load() && !s.closed {
		s.closed = true
		_ = s.conn.SetReadDeadline(time.Unix(1, 0)) // wakes it
	}
}

// retire takes the socket out of use; it closes when its last query has ended.
func (s *udpSocket) retire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retired.Store(true)
	s.closeIfDone()
}

// signal tells every query in flight, but one, that its chances are bad.
func (s *udpSocket) signal(cause error, except *attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.pending {
		if q.by != nil && q.by != except {
			q.by.signal(gotSignal, cause)
		}
	}
}

// close ends every query in flight.
func (s *udpSocket) close(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, q := range s.pending {
		if q.by != nil {
			q.by.tell(gotEnd, cause)
			q.by = nil
			s.pending[id] = q
		}
	}
	s.active = 0
	s.retired.Store(true)
	s.closeIfDone()
}
