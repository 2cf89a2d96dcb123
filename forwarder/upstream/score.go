package upstream

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

// score is what is known of one target: it outlives tables as long as the
// target's address stays. All of it is atomic; durations are on Config.Now's
// clock.
type score struct {
	health     atomic.Pointer[health]    // nil: healthy
	rtt        [classCount]atomic.Uint64 // estimates, packed
	peak       atomic.Uint64             // of what speaks for the target
	near       atomic.Bool               // in the node tier
	busyAt     atomic.Int64              // of the last reply, if it left others in flight; -1 otherwise
	pace       atomic.Int64              // mean time between replies while it is busy; 0 before
	lateness   atomic.Uint64             // peak of answers that came late
	samples    atomic.Uint32             // in peak
	inFlight   [classCount]atomic.Int32
	losses     losses
	lastReply  atomic.Int64
	plainUntil atomic.Int64 // asked without EDNS until then
	altUntil   atomic.Int64 // asked at its other family until then

	caseFaults    atomic.Uint32 // replies in a row with other letters
	sameCaseUntil atomic.Int64  // asked in the client's letters until then

	barredUntil atomic.Int64 // it leads back to us: not asked until then

	notices notices

	random func() uint64 // Config.Random

	*tally
}

// tally is what was counted of a target. The next group may count on.
type tally struct {
	sent, timeouts, hardErrors atomic.Uint64
	misfits                    atomic.Uint64
	ejections, forced          atomic.Uint64
	ignored                    [IgnoredKinds]atomic.Uint64
	probeFailures              atomic.Uint64
	reused, opened             [altFamily]atomic.Uint64 // by udpPath and tcpPath
	replies                    [RCodeClasses]histogram
}

func newScore(random func() uint64) *score {
	s := &score{random: random, tally: new(tally)}
	s.lastReply.Store(-1)
	s.busyAt.Store(-1)
	return s
}

func (s *score) state() health {
	if h := s.health.Load(); h != nil {
		return *h
	}
	return health{}
}

// went notes that a's question went out, unless err says that it did not; opened that a
// socket was opened for it.
func (s *score) went(a *attempt, path int, opened bool, err error) error {
	if err != nil {
		return err
	}
	s.sent.Add(1)
	switch {
	case a.probe:
	case opened:
		s.opened[path].Add(1)
	default:
		s.reused[path].Add(1)
	}
	return nil
}

// barred is for how long the target is still not asked.
func (s *score) barred(now time.Duration) time.Duration {
	return max(time.Duration(s.barredUntil.Load())-now, 0)
}

func (s *score) estimate(c class) estimate { return unpackEstimate(s.rtt[c].Load()) }

// took notes how long a reply took. speaks says that it speaks for the target:
// a name that has to be asked of others does not.
func (s *score) took(now, took time.Duration, c class, speaks bool) {
	for {
		old := s.rtt[c].Load()
		if s.rtt[c].CompareAndSwap(old, unpackEstimate(old).with(took).pack()) {
			break
		}
	}
	if speaks {
		s.samples.Add(1)
		s.raise(now, took)
	}
}

// raise puts a time into the peak.
func (s *score) raise(now, took time.Duration) {
	_, decay := s.distance()
	for {
		old := s.peak.Load()
		if s.peak.CompareAndSwap(old, uint64(peak(old).with(took, now, decay))) {
			return
		}
	}
}

// peakAt is the peak as it counts now.
func (s *score) peakAt(now time.Duration) time.Duration {
	least, decay := s.distance()
	return peak(s.peak.Load()).at(now, decay, least)
}

// distance is the time that a reply is expected to take, and how fast a slower
// one is forgotten.
func (s *score) distance() (least, decay time.Duration) {
	if s.near.Load() {
		return nearStart, nearDecay
	}
	return farStart, farDecay
}

// replied notes a reply: whatever it says, the server lives.
func (s *score) replied(now time.Duration, good, lone bool) {
	s.lastReply.Store(int64(now))
	s.paced(now)
	for {
		old := s.health.Load()
		if old == nil {
			return
		}
		next := old.replied(now, good, lone)
		if next == *old {
			return
		}
		kept := next // only what is kept is on the heap
		if s.health.CompareAndSwap(old, &kept) {
			return
		}
	}
}

// change is what a silence or a failure made of a target.
type change uint8

const (
	noChange     change = iota // it is what it was
	nowSuspected               // it was not before
	nowOut                     // ejected just now
)

// missed notes that a query sent at the given time stayed unanswered. It counts
// only if the target answered nothing else since: then it is not the target that
// is slow, but the name.
func (s *score) missed(sentAt, now time.Duration) change {
	s.timeouts.Add(1)
	if !s.silentSince(sentAt) {
		return noChange
	}
	return s.step(health.missed, sentAt, now)
}

func (s *score) silentSince(at time.Duration) bool { return s.lastReply.Load() < int64(at) }

// failed notes a hard error in place of an answer to what was sent at the given
// time, and reports whether the target is out now that was not before.
func (s *score) failed(sentAt, now time.Duration) (ejected bool) {
	return s.step(health.failed, sentAt, now) == nowOut
}

// countHard counts a hard error by its reason.
func (s *score) countHard(err error) {
	if errors.Is(err, ErrCertificate) {
		s.misfits.Add(1)
		return
	}
	s.hardErrors.Add(1)
}

func (s *score) step(next func(h health, asked, now time.Duration, jitter float64) health, asked, now time.Duration) change {
	for {
		old := s.health.Load()
		was := health{}
		if old != nil {
			was = *old
		}
		h := next(was, asked, now, rand.New(bits(s.random)).Float64())
		if !s.health.CompareAndSwap(old, &h) {
			continue
		}
		switch {
		case h.out && !was.out:
			s.ejections.Add(1)
			return nowOut
		case h.suspected() && !was.suspected():
			return nowSuspected
		}
		return noChange
	}
}

// readied notes that the table calls the target ready again.
func (s *score) readied(now time.Duration) {
	h := s.state().readied(now)
	s.health.Store(&h)
}

// histogram is a Histogram being counted.
type histogram struct {
	buckets [DurationBuckets + 1]atomic.Uint64
	sum     atomic.Int64
}

func (h *histogram) observe(d time.Duration) {
	i := 0
	for i < DurationBuckets && d > BucketBound(i) {
		i++
	}
	h.buckets[i].Add(1)
	h.sum.Add(int64(d))
}

func (h *histogram) read() (out Histogram) {
	for i := range h.buckets {
		out.Buckets[i] = h.buckets[i].Load()
	}
	out.Sum = time.Duration(h.sum.Load())
	return out
}

func classOf(code wire.RCode) RCodeClass {
	switch code {
	case wire.NoError:
		return ClassNoError
	case wire.FormErr:
		return ClassFormErr
	case wire.ServFail:
		return ClassServFail
	case wire.NXDomain:
		return ClassNXDomain
	case wire.NotImp:
		return ClassNotImp
	case wire.Refused:
		return ClassRefused
	}
	return ClassOther
}
