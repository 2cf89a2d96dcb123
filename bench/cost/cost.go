package cost

import (
	"context"
	"time"
)

// Cost is what a process used between two samples.
type Cost struct {
	Took        time.Duration `json:"took_ns"`
	User        time.Duration `json:"user_ns"`
	System      time.Duration `json:"system_ns"`
	Voluntary   uint64        `json:"voluntary"`
	Involuntary uint64        `json:"involuntary"`
	RSS         uint64        `json:"rss"`      // octets, at the end
	PeakRSS     uint64        `json:"peak_rss"` // octets, since the process's start
}

// Between gives the cost from one sample to a later one of the same process.
func Between(from, to Sample) Cost {
	return Cost{
		Took:        to.At.Sub(from.At),
		User:        max(to.User-from.User, 0),
		System:      max(to.System-from.System, 0),
		Voluntary:   grown(from.Voluntary, to.Voluntary),
		Involuntary: grown(from.Involuntary, to.Involuntary),
		RSS:         to.RSS,
		PeakRSS:     to.PeakRSS,
	}
}

// grown is 0 where a thread that ended took its count along.
func grown(from, to uint64) uint64 {
	if to < from {
		return 0
	}
	return to - from
}

// CPU is user and system time together.
func (c Cost) CPU() time.Duration { return c.User + c.System }

// Per gives the CPU time for each of n queries, 0 if there were none.
func (c Cost) Per(n uint64) time.Duration {
	if n == 0 {
		return 0
	}
	return c.CPU() / time.Duration(n)
}

// Cores is the mean number of cores that were busy.
func (c Cost) Cores() float64 {
	if c.Took <= 0 {
		return 0
	}
	return c.CPU().Seconds() / c.Took.Seconds()
}

// Watch samples a process at once, then once every interval (10 ms or more) and
// when ctx ends, and gives the samples in order. The error is that of a process
// that cannot be read, with the samples so far.
func Watch(ctx context.Context, pid int, every time.Duration) ([]Sample, error) {
	ticker := time.NewTicker(max(every, 10*time.Millisecond))
	defer ticker.Stop()
	var samples []Sample
	for over := false; ; {
		s, err := Read(pid)
		if err != nil {
			return samples, err
		}
		samples = append(samples, s)
		if over {
			return samples, nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			over = true
		}
	}
}
