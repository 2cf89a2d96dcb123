package upstream

import "time"

// A server that has too much to do answers all the same, only later and later:
// each reply waits behind what was asked before. Two things follow from how it
// answers while it is busy, and both follow it down and up again by themselves.
//
// One is how much it bears. The time between two replies while others are in
// flight is the time that each of these has still to wait, so that the number in
// flight is bounded by a time: what is more goes on to the next tier.
//
// The other is how long a silence is borne. A query that is put again lies in two
// queues, and servers that have just too much to do for a moment would never
// come to the end of theirs. So late answers make all that follow wait longer.
const (
	bearTime            = 20 * time.Millisecond // of waiting
	bearLeast, bearMost = 8, 128
	bearUnknown         = 32 // before the server was ever busy
	busyLeast           = 4  // in flight beside a reply; fewer are worked on at the same time
	paceWeight          = 32 // replies that the mean time between them looks back on
	lateShare           = 2  // of the budget is the longest silence borne
	lateGrowth          = 2  // times what was late before: one answer says little
	lateDecay           = time.Second
)

// nextPace is the mean time between replies after one more.
func nextPace(pace, gap time.Duration) time.Duration {
	if pace == 0 {
		pace = bearTime / bearUnknown
	}
	return max(pace+(gap-pace)/paceWeight, 1)
}

// bearsAt is how many queries may be in flight at a pace.
func bearsAt(pace time.Duration) int32 {
	if pace == 0 {
		return bearUnknown
	}
	return int32(min(max(bearTime/pace, bearLeast), bearMost))
}

// paced notes that a reply came. Only the time between replies that both left
// others in flight counts, since there was always something to do in it.
func (s *score) paced(now time.Duration) {
	const idle = -1
	busy := int64(idle)
	if s.inFlight[fast].Load() >= busyLeast {
		busy = int64(now)
	} else if s.busyAt.Load() == idle {
		return
	}
	if was := s.busyAt.Swap(busy); was != idle {
		gap := max(now-time.Duration(was), 0)
		s.pace.Store(int64(nextPace(time.Duration(s.pace.Load()), gap)))
	}
}

// bears is how many queries may be in flight before others go on to the next
// tier.
func (s *score) bears(cfg *Config) int32 {
	if cfg.Spill > 0 {
		return int32(cfg.Spill)
	}
	return bearsAt(time.Duration(s.pace.Load()))
}

// nextLate is the peak of late answers after one more. A silence of usual is
// borne anyway.
func nextLate(late peak, took, now, usual time.Duration) peak {
	most := lateGrowth * max(late.at(now, lateDecay, 0), usual)
	return late.with(min(took, most), now, lateDecay)
}

// late notes an answer that took longer than the usual silence.
func (s *score) late(took, now, usual time.Duration) {
	for {
		old := s.lateness.Load()
		if s.lateness.CompareAndSwap(old, uint64(nextLate(peak(old), took, now, usual))) {
			return
		}
	}
}

// lateAt is the time that late answers took, as it counts now.
func (s *score) lateAt(now time.Duration) time.Duration {
	return peak(s.lateness.Load()).at(now, lateDecay, 0)
}

// patience is how long an answer is waited for that comes as late as others did,
// and a bit later.
func (s *score) patience(now, budget time.Duration) time.Duration {
	return min(s.lateAt(now)*3/2, budget/lateShare)
}
