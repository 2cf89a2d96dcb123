package dnstap

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	format "github.com/dnstap/golang-dnstap"
	"github.com/farsightsec/golang-framestream"
)

// Config is how a Sender is made.
type Config struct {
	// Network is "unix" or "tcp", Address a path or a host with port.
	Network, Address string
	// Identity and Version say who sends. May be empty.
	Identity, Version string
	// Queue is how many queries with their replies may wait, at least 1.
	Queue int
	// Epoch is when the clock of Exchange stood at 0.
	Epoch time.Time
	// Trouble hears why the collector cannot be reached, once until it can.
	Trouble func(error)
}

// Exchange is one query and its reply.
type Exchange struct {
	Query, Reply   []byte // Reply is empty when there was none
	Client, Server netip.AddrPort
	TCP            bool
	Asked, Told    time.Duration
}

// Stats is what a Sender did.
type Stats struct {
	Sent    uint64 // exchanges
	Dropped uint64 // for lack of room
}

// Sender sends to one collector. Its methods are safe for concurrent use.
type Sender struct {
	cfg           Config
	queue         chan Exchange
	sent, dropped atomic.Uint64
}

// Times of the connection to the collector.
const (
	patience  = 2 * time.Second // for connecting, shaking hands, writing
	lastWords = time.Second     // at the end
	firstWait = time.Second     // before connecting again, doubled each time
	lastWait  = 30 * time.Second
)

// New makes a Sender that sends once Run runs.
func New(cfg Config) *Sender {
	return &Sender{cfg: cfg, queue: make(chan Exchange, cfg.Queue)}
}

// Note takes an exchange to be sent. It does not wait, and keeps no slice.
func (s *Sender) Note(e *Exchange) {
	if len(s.queue) == cap(s.queue) {
		s.dropped.Add(1)
		return
	}
	both := make([]byte, 0, len(e.Query)+len(e.Reply))
	both = append(append(both, e.Query...), e.Reply...)
	kept := *e
	kept.Query, kept.Reply = both[:len(e.Query)], both[len(e.Query):]
	select {
	case s.queue <- kept:
	default:
		s.dropped.Add(1)
	}
}

// Stats is what was done so far.
func (s *Sender) Stats() Stats { return Stats{Sent: s.sent.Load(), Dropped: s.dropped.Load()} }

// Run sends until ctx ends.
func (s *Sender) Run(ctx context.Context) error {
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		began := time.Now()
		err := s.connected(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(began) > lastWait {
			wait = firstWait
		}
		if wait == firstWait && s.cfg.Trouble != nil {
			s.cfg.Trouble(err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
	}
}

// connected sends over one connection, until it breaks or ctx ends.
func (s *Sender) connected(ctx context.Context) error {
	dialer := net.Dialer{Timeout: patience}
	conn, err := dialer.DialContext(ctx, s.cfg.Network, s.cfg.Address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // what it could tell was told by writing
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now().Add(lastWords)) })()
	w, err := framestream.NewWriter(conn, &framestream.WriterOptions{
		ContentTypes: [][]byte{format.FSContentType}, Bidirectional: true, Timeout: patience,
	})
	if err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return w.Close()
		case e := <-s.queue:
			if err := s.send(w, &e); err != nil {
				return errors.Join(err, w.Close())
			}
		}
	}
}

// send writes an exchange, and what waits in the writer when no other follows.
func (s *Sender) send(w *framestream.Writer, e *Exchange) error {
	for _, frame := range s.frames(e) {
		if _, err := w.WriteFrame(frame); err != nil {
			return err
		}
	}
	s.sent.Add(1)
	if len(s.queue) == 0 {
		return w.Flush()
	}
	return nil
}
