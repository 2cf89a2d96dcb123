package upstream

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// writeTimeout closes a connection whose client does not read.
const writeTimeout = 2 * time.Second

// stream is one TCP connection. Its reader and the sender of delayed replies
// both write to it.
type stream struct {
	conn *net.TCPConn
	mu   sync.Mutex // orders writes
}

// write sends whole messages, lengths included. A connection that fails is
// closed, which ends its reader.
func (s *stream) write(msg []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := s.conn.Write(msg); err != nil {
		s.conn.Close()
	}
}

// streams is the set of open connections.
type streams struct {
	mu     sync.Mutex
	open   map[*stream]struct{}
	closed bool
}

// add is false if there are too many or the server is going.
func (s *streams) add(st *stream, limit int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.open) >= limit {
		return false
	}
	s.open[st] = struct{}{}
	return true
}

func (s *streams) remove(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, st)
}

func (s *streams) closeAll(reset bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for st := range s.open {
		if reset {
			_ = st.conn.SetLinger(0)
		}
		st.conn.Close()
	}
}

// accept takes connections until the listener is closed.
func (l *lifetime) accept() {
	st := &l.server.stripes[len(l.server.stripes)-1]
	for n := uint64(0); ; n++ {
		conn, err := l.listener.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(time.Millisecond) // out of file descriptors
			continue
		}
		st.accepts.Add(1)
		str := &stream{conn: conn}
		if !l.streams.add(str, l.server.cfg.MaxConns) {
			conn.Close()
			continue
		}
		rng := rand.New(rand.NewPCG(l.server.cfg.Seed, 1<<32+n))
		l.running.Go(func() { l.readStream(str, rng) })
	}
}

// readStream answers the queries of one connection until it ends.
func (l *lifetime) readStream(str *stream, rng *rand.Rand) {
	defer l.streams.remove(str)
	defer str.conn.Close()
	in := bufio.NewReaderSize(str.conn, 16<<10)
	query, reply := make([]byte, 65535), make([]byte, 0, 4096)
	out := make([]byte, 0, 16<<10)
	for {
		_ = str.conn.SetReadDeadline(time.Now().Add(l.server.cfg.Idle))
		n, err := readMessage(in, query)
		if err != nil {
			return
		}
		out = l.answerStream(str, rng, query[:n], reply, out)
		// Replies leave together when no more queries are at hand.
		if len(out) > 0 && (in.Buffered() == 0 || len(out) > 8<<10) {
			str.write(out)
			out = out[:0]
		}
	}
}

func readMessage(in io.Reader, query []byte) (int, error) {
	if _, err := io.ReadFull(in, query[:2]); err != nil {
		return 0, err
	}
	n := int(binary.BigEndian.Uint16(query))
	_, err := io.ReadFull(in, query[:n])
	return n, err
}

// answerStream appends the reply, with its length, to out, or holds it back.
func (l *lifetime) answerStream(str *stream, rng *rand.Rand, query, scratch, out []byte) []byte {
	st := &l.server.stripes[len(l.server.stripes)-1]
	now := l.server.now()
	what, due := asItIs, now
	if p := l.server.plan.Load(); p != nil {
		what, due = p.fate(rng, now)
	}
	if what == truncated {
		what = asItIs
	}
	msg, class := l.server.answers.reply(scratch, query, what)
	if msg == nil {
		st.ignored.Add(1)
		return out
	}
	st.queries.Add(1)
	st.class[class].Add(1)
	if what == drop {
		st.dropped.Add(1)
		return out
	}
	end := len(out)
	out = append(binary.BigEndian.AppendUint16(out, uint16(len(msg))), msg...)
	if due <= now {
		return out
	}
	if !l.later.add(held{due: due, stream: str}, out[end:]) {
		st.overflow.Add(1)
	}
	return out[:end]
}
