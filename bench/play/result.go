package play

import (
	"time"

	"github.com/nodens-dns/nodens/bench/cost"
	"github.com/nodens-dns/nodens/bench/load"
)

// Result is the outcome of a play. Durations are nanoseconds in JSON.
type Result struct {
	Scenario string       `json:"scenario"`
	Does     string       `json:"does"`
	Server   string       `json:"server"`
	Version  string       `json:"version"`
	Pinned   bool         `json:"pinned"`
	Checked  string       `json:"checked,omitempty"` // what "right" means
	Cut      bool         `json:"cut,omitempty"`     // it ended before its time, as it was told to
	Load     *load.Report `json:"load"`
	// Cost is that of the server's process during the load; nil if it is not
	// known.
	Cost *cost.Cost `json:"cost,omitempty"`
	// Children of that process at the end; they are not in Cost.
	Children int `json:"children,omitempty"`
	// Allocations of the server during the load, as it says; 0 if it does not.
	Allocations uint64 `json:"allocations,omitempty"`
	// Usage is the server's process over time.
	Usage []Usage `json:"usage,omitempty"`
	// Marks are the scenario's events.
	Marks []Mark `json:"marks,omitempty"`
	// Behind counts the queries that reached each server behind the target.
	Behind []uint64 `json:"behind,omitempty"`
}

// Usage is what a process used since the sample before.
type Usage struct {
	At    time.Duration `json:"at_ns"`
	Cores float64       `json:"cores"`
	RSS   uint64        `json:"rss"` // octets
}

// Mark is an event of the scenario and when it came.
type Mark struct {
	At   time.Duration `json:"at_ns"`
	Does string        `json:"does"`
}

// CPU is the server's CPU time for each query sent, 0 if it is not known.
func (r *Result) CPU() time.Duration {
	if r.Cost == nil {
		return 0
	}
	return r.Cost.Per(r.Load.Total.Sent)
}

// Switches is the number of the server's context switches for each query sent.
func (r *Result) Switches() float64 {
	if r.Cost == nil || r.Load.Total.Sent == 0 {
		return 0
	}
	return float64(r.Cost.Voluntary+r.Cost.Involuntary) / float64(r.Load.Total.Sent)
}

// AllocationsEach is the number of objects the server allocated for each query.
func (r *Result) AllocationsEach() float64 {
	if r.Load.Total.Sent == 0 {
		return 0
	}
	return float64(r.Allocations) / float64(r.Load.Total.Sent)
}

func usage(samples []cost.Sample, began time.Time) []Usage {
	var all []Usage
	for i := 1; i < len(samples); i++ {
		c := cost.Between(samples[i-1], samples[i])
		if c.Took < 500*time.Millisecond {
			continue // the last one, too short to say anything
		}
		all = append(all, Usage{At: samples[i].At.Sub(began), Cores: c.Cores(), RSS: c.RSS})
	}
	return all
}
