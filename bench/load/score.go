package load

import (
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// Latencies are kept from a microsecond to a minute.
const (
	shortest = int64(time.Microsecond)
	longest  = int64(time.Minute)
)

// score is the counts and the latencies of some of the queries.
type score struct {
	Counts
	latency *hdr.Histogram
}

// newScore keeps latencies to so many significant digits: 3 take 150 kB, 2 take
// 20 kB.
func newScore(digits int) *score {
	return &score{latency: hdr.New(shortest, longest, digits)}
}

func (s *score) count(v verdict, took time.Duration, late bool) {
	s.Counts.count(v, late)
	if v == right {
		note(s.latency, took)
	}
}

func (s *score) add(d *score) {
	s.Counts.add(&d.Counts)
	s.latency.Merge(d.latency)
}

func (s *score) reset() {
	s.Counts = Counts{}
	s.latency.Reset()
}

func note(h *hdr.Histogram, d time.Duration) {
	// In range by construction, so there is no error to report.
	_ = h.RecordValue(min(max(int64(d), shortest), longest))
}

// keptSeconds is how many seconds a worker remembers. The clerk closes a second
// when its last query has timed out, so this is far more than the largest
// timeout; a clerk that is later than that loses the row, not the totals.
const keptSeconds = 64

// second is one second's score in a worker's ring.
type second struct {
	index int64
	*score
}

type seconds [keptSeconds]second

func newSeconds() *seconds {
	var s seconds
	for i := range s {
		s[i] = second{-1, newScore(2)}
	}
	return &s
}

// at gives the score of the second that t is in.
func (s *seconds) at(t time.Duration) *score {
	index := int64(t / time.Second)
	sec := &s[index%keptSeconds]
	if sec.index != index {
		sec.reset()
		sec.index = index
	}
	return sec.score
}

// find gives the score of a second by its index, nil if it has none.
func (s *seconds) find(index int64) *score {
	if sec := &s[index%keptSeconds]; sec.index == index {
		return sec.score
	}
	return nil
}
