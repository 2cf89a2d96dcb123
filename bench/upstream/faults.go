package upstream

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Faults is what goes wrong. The zero value is a server without faults. Shares
// are probabilities per query, 0 to 1, drawn in the order of the fields.
type Faults struct {
	// Blackhole takes queries and connections and never answers.
	Blackhole bool
	// Loss is the share of queries that are never answered.
	Loss float64
	// DropEvery leaves exactly each n-th query unanswered; 0 means none.
	DropEvery uint64
	// ServFail, Refused and NXDomain are the shares answered with that code
	// instead of the truth.
	ServFail, Refused, NXDomain float64
	// Truncate is the share of UDP replies that are empty and say TC.
	Truncate float64
	// Garbage is the share of replies that are to another question, under the
	// query's ID.
	Garbage float64
	// Delay is added to every reply, 0 to 1 minute.
	Delay time.Duration
	// Jitter adds an evenly drawn time below it, 0 to 1 minute.
	Jitter time.Duration
	// Rate is the server's capacity in queries per second: it handles one
	// after the other. 0 means no limit.
	Rate float64
	// Queue is how many queries may wait when Rate is set; more are dropped.
	// Default 1000.
	Queue int
}

func (f Faults) withDefaults() Faults {
	if f.Queue == 0 {
		f.Queue = 1000
	}
	return f
}

func (f Faults) validate() error {
	var errs []error
	for what, share := range map[string]float64{
		"Loss": f.Loss, "ServFail": f.ServFail, "Refused": f.Refused, "NXDomain": f.NXDomain, "Truncate": f.Truncate,
		"Garbage": f.Garbage,
	} {
		if share < 0 || share > 1 {
			errs = append(errs, fmt.Errorf("upstream: %s is %v, want 0 to 1", what, share))
		}
	}
	for what, d := range map[string]time.Duration{"Delay": f.Delay, "Jitter": f.Jitter} {
		if d < 0 || d > time.Minute {
			errs = append(errs, fmt.Errorf("upstream: %s is %v, want 0 to 1m", what, d))
		}
	}
	if f.Rate < 0 || f.Queue < 0 {
		errs = append(errs, fmt.Errorf("upstream: Rate is %v and Queue %d, want neither below 0", f.Rate, f.Queue))
	}
	return errors.Join(errs...)
}

// spoil says what becomes of one reply.
type spoil uint8

const (
	asItIs spoil = iota
	drop
	servFail
	refused
	nxDomain
	truncated
	garbage
)

// draw decides about query number n.
func (f *Faults) draw(rng *rand.Rand, n uint64) spoil {
	if f.Blackhole || f.DropEvery > 0 && n%f.DropEvery == 0 {
		return drop
	}
	for _, c := range [...]struct {
		share float64
		what  spoil
	}{{f.Loss, drop}, {f.ServFail, servFail}, {f.Refused, refused}, {f.NXDomain, nxDomain}, {f.Truncate, truncated}, {f.Garbage, garbage}} {
		if c.share > 0 && rng.Float64() < c.share {
			return c.what
		}
	}
	return asItIs
}

// wait draws how long a reply is held back, service time apart.
func (f *Faults) wait(rng *rand.Rand) time.Duration {
	if f.Jitter == 0 {
		return f.Delay
	}
	return f.Delay + time.Duration(rng.Int64N(int64(f.Jitter)))
}
