package upstream

import (
	"math"
	"time"
)

// peak is a moving maximum of reply times: a slow reply raises it at once, and
// it sinks with time. The mean of reply times sees overload too late. The value
// and its time stand in one word, in microseconds and milliseconds, so that it
// can be replaced atomically; 0 before the first sample.
type peak uint64

// Reply times that are assumed before the first sample, and how fast one is
// forgotten: a near target has many samples, a far one few.
const (
	nearStart, farStart = time.Millisecond, 2 * time.Millisecond
	nearDecay, farDecay = time.Second, 10 * time.Second
)

func (p peak) value() time.Duration { return time.Duration(p>>32) * time.Microsecond }

// left is which part of the value counts at a later time.
func (p peak) left(now, decay time.Duration) float64 {
	// The clock wraps after 49 days; the difference is right all the same.
	since := time.Duration(int32(uint32(now.Milliseconds())-uint32(p))) * time.Millisecond
	if since <= 0 { // another goroutine was ahead
		return 1
	}
	return math.Exp(-float64(since) / float64(decay))
}

// at is the value at a later time. Without new samples it sinks to least: a
// target must not be avoided for ever because it was slow once.
func (p peak) at(now, decay, least time.Duration) time.Duration {
	if p == 0 {
		return least
	}
	return max(time.Duration(float64(p.value())*p.left(now, decay)), least)
}

// with is the peak after one more sample.
func (p peak) with(sample, now, decay time.Duration) peak {
	sample = min(max(sample, time.Microsecond), time.Minute)
	if over := p.value() - sample; over > 0 {
		sample += time.Duration(float64(over) * p.left(now, decay))
	}
	return peak(uint64(sample.Microseconds())<<32 | uint64(uint32(now.Milliseconds())))
}
