package load

import (
	"math"
	"time"
)

// schedule says when one worker's queries are meant to leave: one each time the
// area under its share of the rate has grown by one.
type schedule struct {
	stages []Stage
	share  float64 // this worker's share of the rate
	stage  int
	begin  time.Duration // of the stage
	offset float64       // of the next query within the stage, in seconds
}

// newSchedule makes the schedule of worker i of n; the workers take turns.
func newSchedule(stages []Stage, i, n int) schedule {
	s := schedule{stages: stages, share: 1 / float64(n)}
	s.step((float64(i) + 0.5) / float64(n))
	return s
}

// due gives the time of the next query. It is false when the stages are over.
func (s *schedule) due() (time.Duration, bool) {
	if s.stage == len(s.stages) {
		return 0, false
	}
	ns := s.offset * 1e9
	if ns > 1e18 { // an endless stage of rate 0
		return math.MaxInt64, true
	}
	return s.begin + time.Duration(ns), true
}

// step moves on by the given number of queries.
func (s *schedule) step(amount float64) {
	for ; s.stage < len(s.stages); s.stage++ {
		stage := &s.stages[s.stage]
		length := stage.For.Seconds()
		slope := 0.0
		if stage.For > 0 {
			slope = (stage.To - stage.From) * s.share / length
		}
		rate := stage.From*s.share + slope*s.offset
		if stage.For == 0 {
			s.offset += amount / rate
			return
		}
		left := length - s.offset
		area := rate*left + slope*left*left/2
		if amount < area {
			s.offset += gap(amount, rate, slope)
			return
		}
		amount -= max(area, 0)
		s.begin += stage.For
		s.offset = 0
	}
}

// gap solves rate*t + slope*t*t/2 = amount for the first t, in a form that does
// not divide by a slope of 0.
func gap(amount, rate, slope float64) float64 {
	return 2 * amount / (rate + math.Sqrt(max(rate*rate+2*slope*amount, 0)))
}

// end is when the last stage is over; false if it has no end.
func end(stages []Stage) (time.Duration, bool) {
	var sum time.Duration
	for _, s := range stages {
		if s.For == 0 {
			return 0, false
		}
		sum += s.For
	}
	return sum, true
}
