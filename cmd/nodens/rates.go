package main

import (
	"sync"
	"time"

	"github.com/nodens-dns/nodens/forwarder"
)

// totals are the replies since the start, by where they came from.
type totals struct {
	at       time.Time
	bySource [forwarder.Sources]uint64
}

func totalsOf(at time.Time, s forwarder.Stats) totals {
	t := totals{at: at}
	for i := range s.Zones {
		for source := range s.Zones[i].Responses {
			t.bySource[source] += sumOf(s.Zones[i].Responses[source][:])
		}
	}
	return t
}

func (t totals) queries() uint64 { return sumOf(t.bySource[:]) }

// hitRatio is the part of the queries that memory answered, 0 to 1.
func (t totals) hitRatio() float64 {
	if t.queries() == 0 {
		return 0
	}
	return float64(t.bySource[forwarder.FromCache]+t.bySource[forwarder.FromStale]) / float64(t.queries())
}

// since is what was added after before.
func (t totals) since(before totals) totals {
	for i := range t.bySource {
		t.bySource[i] -= before.bySource[i]
	}
	return t
}

// rates keeps samples of the last minute.
type rates struct {
	mu      sync.Mutex
	samples []totals
}

const rateWindow = time.Minute

// add takes a sample. Totals that fell belong to a new forwarder: what was
// before cannot be compared with them.
func (r *rates) add(t totals) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.samples); n > 0 && t.queries() < r.samples[n-1].queries() {
		r.samples = nil
	}
	for len(r.samples) > 0 && t.at.Sub(r.samples[0].at) > rateWindow {
		r.samples = r.samples[1:]
	}
	r.samples = append(r.samples, t)
}

// oldest is the first sample of the last minute, or the zero totals of when
// counting began if there is none to compare with.
func (r *rates) oldest(now totals, start time.Time) totals {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.samples {
		if now.at.Sub(s.at) <= rateWindow+sampleEvery && s.queries() <= now.queries() {
			return s
		}
	}
	return totals{at: start}
}
