package upstream

import "time"

// estimate is a smoothed round-trip time and its mean deviation, as RFC 6298
// keeps them; zero before the first sample.
type estimate struct{ srtt, dev time.Duration }

// with is the estimate after one more sample.
func (e estimate) with(sample time.Duration) estimate {
	sample = max(sample, time.Microsecond)
	if e.srtt == 0 {
		return estimate{srtt: sample, dev: sample / 2}
	}
	return estimate{
		srtt: e.srtt + (sample-e.srtt)/8,
		dev:  e.dev + ((sample-e.srtt).Abs()-e.dev)/4,
	}
}

// retryTime is how long the target's silence is borne; high before the first
// sample.
func (e estimate) retryTime(low, high time.Duration) time.Duration {
	if e.srtt == 0 {
		return high
	}
	return min(max(e.srtt+4*e.dev, low), high)
}

// pack puts the estimate into one word, in microseconds, so that it can be
// replaced atomically.
func (e estimate) pack() uint64 {
	return uint64(e.srtt.Microseconds())<<32 | uint64(uint32(e.dev.Microseconds()))
}

func unpackEstimate(word uint64) estimate {
	return estimate{
		srtt: time.Duration(word>>32) * time.Microsecond,
		dev:  time.Duration(uint32(word)) * time.Microsecond,
	}
}
