package guard

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"sync"
	"time"
)

// The times of a round. All of it is over before the next one begins.
const (
	roundTime = 200 * time.Millisecond
	waveEvery = roundTime / 4
	// lateAfter is how long a probe has waited when it counts as silence.
	lateAfter = 90 * time.Millisecond
	maxWave   = 32 // probes
)

// What probes are put over.
const (
	overUDP = "udp"
	overTCP = "tcp"
)

// question is what a round asks about one place over one protocol.
type question struct {
	place *place
	over  string
	from  netip.Addr // not valid: any
	at    netip.AddrPort
	// expect is the sockets that should answer. None: nobody is connected, and it is
	// asked who is there.
	expect []Witness
	// bound says that a socket has the address. It counts while none is expected: an
	// instance that was stopped before this guard began cannot connect.
	bound bool
}

// sweep is the round of one question.
type sweep struct {
	question
	ask     Asker
	answers chan Witness
	missing map[Witness]bool

	any bool // somebody answered

	mu   sync.Mutex
	late int // probes that stayed without an answer
}

// run puts probes to a place, in waves, until every expected socket has answered or
// the time is over. heard is called for each answer.
func (s *sweep) run(ctx context.Context, heard func(Witness)) outcome {
	ctx, cancel := context.WithTimeout(ctx, roundTime)
	defer cancel()
	s.answers, s.missing = make(chan Witness), make(map[Witness]bool, len(s.expect))
	for _, w := range s.expect {
		s.missing[w] = true
	}
	var probes sync.WaitGroup
	wave := time.NewTicker(waveEvery)
	defer wave.Stop()
	for again := true; ctx.Err() == nil && again; {
		for range waveSize(len(s.expect)) {
			probes.Go(func() { s.probe(ctx) })
		}
		again = s.listen(ctx, wave.C, heard)
	}
	cancel()
	probes.Wait()
	return s.outcome()
}

func (s *sweep) outcome() outcome {
	expected := len(s.expect) > 0
	switch {
	case expected && len(s.missing) == 0, !expected && s.any:
		return calm
	case !expected && !s.bound:
		return absent
	case s.late > 0:
		return silent
	}
	return unclear
}

// listen takes answers until it is time for the next wave, or there is nothing more to
// learn.
func (s *sweep) listen(ctx context.Context, wave <-chan time.Time, heard func(Witness)) (again bool) {
	for {
		select {
		case w := <-s.answers:
			heard(w)
			s.any = true
			if delete(s.missing, w); len(s.missing) == 0 {
				return false
			}
		case <-wave:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// probe asks once. A refusal says that nobody is there, which the kernel sees as well.
func (s *sweep) probe(ctx context.Context) {
	began := time.Now()
	w, err := s.ask.Witness(ctx, s.over, s.from, s.at)
	switch {
	case err == nil:
		select {
		case s.answers <- w:
		case <-ctx.Done():
		}
	case timedOut(err) && time.Since(began) > lateAfter:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.late++
	}
}

func timedOut(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
}

// waveSize is enough probes for most sockets to be picked.
func waveSize(sockets int) int {
	if sockets <= 1 {
		return 1
	}
	return min(2*sockets, maxWave)
}
