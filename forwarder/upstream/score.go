package upstream

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

// score is what is known of one target: it outlives tables as long as the
// target's address stays. All of it is atomic; durations are on Config.Now's
// clock.
type score struct {
	health     atomic.Pointer[health] // nil: healthy
	rtt        atomic.Uint64          // an estimate, packed
	inFlight   atomic.Int32
	lastReply  atomic.Int64
	plainUntil atomic.Int64 // asked without EDNS until then
	altUntil   atomic.Int64 // asked at its other family until then

	sent, timeouts, hardErrors atomic.Uint64
	ignored                    [IgnoredKinds]atomic.Uint64
	replies                    [RCodeClasses]histogram
}

func newScore() *score {
	s := &score{}
	s.lastReply.Store(-1)
	return s
}

func (s *score) state() health {
	if h := s.health.Load(); h != nil {
		return *h
	}
	return health{}
}

func (s *score) estimate() estimate { return unpackEstimate(s.rtt.Load()) }

// replied notes a reply: whatever it says, the server lives.
func (s *score) replied(now, took time.Duration) {
	s.lastReply.Store(int64(now))
	if s.health.Load() != nil {
		s.health.Store(nil)
	}
	for {
		old := s.rtt.Load()
		if s.rtt.CompareAndSwap(old, unpackEstimate(old).with(took).pack()) {
			return
		}
	}
}

// missed notes that a query sent at the given time stayed unanswered. It counts
// only if the target answered nothing else since: then it is not the target
// that is slow, but the name.
func (s *score) missed(sentAt, now time.Duration) {
	s.timeouts.Add(1)
	if s.silentSince(sentAt) {
		s.step(health.missed, now)
	}
}

func (s *score) silentSince(at time.Duration) bool { return s.lastReply.Load() < int64(at) }

// failed notes a hard error.
func (s *score) failed(now time.Duration) {
	s.hardErrors.Add(1)
	s.step(health.failed, now)
}

func (s *score) step(next func(health, time.Duration, float64) health, now time.Duration) {
	for {
		old := s.health.Load()
		h := health{}
		if old != nil {
			h = *old
		}
		h = next(h, now, rand.Float64())
		if s.health.CompareAndSwap(old, &h) {
			return
		}
	}
}

// claimTrial reports whether the caller is the one to try a suspect target now.
func (s *score) claimTrial(now time.Duration) bool {
	old := s.health.Load()
	if old == nil || !old.due(now) {
		return false
	}
	h := old.tried(now, rand.Float64())
	return s.health.CompareAndSwap(old, &h)
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
