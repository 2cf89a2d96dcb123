package load

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nodens-dns/nodens/bench/names"
)

// Run is one run of a load. It is used once.
type Run struct {
	cfg     Config
	length  time.Duration // of all stages
	ends    bool          // length is known
	made    time.Time
	begun   atomic.Int64 // nanoseconds from made to the begin of Run
	workers []*worker
	book    atomic.Pointer[book]
	marks   sync.Mutex // orders marks
	used    atomic.Bool
	cpu     time.Duration // of this process when the run began

	examplesLeft atomic.Int32
	examplesMu   sync.Mutex
	examples     []string
}

// maxExamples is how many wrong replies a report describes.
const maxExamples = 8

// New checks cfg and opens the sockets. Run must follow; it closes them.
func New(cfg Config) (*Run, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if !cfg.AllowRemote {
		if err := CheckLocal(cfg.Target.Addr()); err != nil {
			return nil, err
		}
	}
	cfg.Target = netip.AddrPortFrom(cfg.Target.Addr().Unmap(), cfg.Target.Port())
	r := &Run{cfg: cfg, made: time.Now()}
	r.length, r.ends = end(cfg.Stages)
	r.book.Store(newBook(cfg.Stages, cfg.Workers))
	r.examplesLeft.Store(maxExamples)
	for i := range cfg.Workers {
		w, err := newWorker(r, i)
		if err != nil {
			for _, w := range r.workers {
				w.close()
			}
			return nil, fmt.Errorf("load: worker %d: %w", i, err)
		}
		r.workers = append(r.workers, w)
	}
	return r, nil
}

// now is the time since the run began.
func (r *Run) now() time.Duration {
	return time.Since(r.made) - time.Duration(r.begun.Load())
}

// Run sends until the stages are over or ctx ends, waits for what is in flight
// (at most the timeout), and reports. The end of ctx is no error.
func (r *Run) Run(ctx context.Context) (*Report, error) {
	if r.used.Swap(true) {
		return nil, errors.New("load: this run was run before: make a new one")
	}
	r.begun.Store(int64(time.Since(r.made)))
	r.cpu = processCPU()
	clerk := newClerk(r)
	var working, clerking sync.WaitGroup
	for _, w := range r.workers {
		working.Go(func() { w.work(ctx) })
	}
	stop := make(chan struct{})
	clerking.Go(func() { clerk.work(stop) })
	working.Wait()
	took := r.now()
	close(stop)
	clerking.Wait()
	for _, w := range r.workers {
		w.close()
	}
	return r.report(clerk, took), nil
}

// Mark begins a phase now. Stages with names begin theirs by themselves. It may
// be called from any goroutine while Run runs; after 256 phases it does nothing.
func (r *Run) Mark(name string) {
	r.marks.Lock()
	defer r.marks.Unlock()
	b := r.book.Load()
	if len(b.byID) < maxPhases {
		r.book.Store(b.with(name, r.now(), r.cfg.Workers))
	}
}

// example keeps the description of one of the first wrong replies.
func (r *Run) example(v verdict, msg []byte, s *slot) {
	if r.examplesLeft.Add(-1) < 0 {
		return
	}
	question := "an unreadable question"
	if end := questionEnd(msg); len(msg) > headerSize && end > 0 {
		question = names.Text(msg[headerSize:end-4]) + fmt.Sprintf(" type %d", uint16(msg[end-4])<<8|uint16(msg[end-3]))
	}
	expected := fmt.Sprintf("rcode %d without address", s.want.rcode)
	if s.want.hasAddr {
		expected = fmt.Sprintf("address %v", netip.AddrFrom16(s.want.addr).Unmap())
	}
	text := fmt.Sprintf("wrong %v at %v: want type %d, %s; the reply is for %s: %x", v,
		s.intended.Round(time.Millisecond), s.want.qtype, expected, question, msg[:min(len(msg), 256)])
	r.examplesMu.Lock()
	defer r.examplesMu.Unlock()
	r.examples = append(r.examples, text)
}
