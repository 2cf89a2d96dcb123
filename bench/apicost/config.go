package apicost

import (
	"errors"
	"fmt"
	"time"
)

// Config describes a cluster.
type Config struct {
	// Nodes that run a daemon, 1 to 100 000. Required.
	Nodes int
	// Replicas of the cluster's DNS, 1 to 100 000. Required.
	Replicas int
	// MaxPerSlice is the controller's limit, 1 to 1000. Default 100.
	MaxPerSlice int
	// EventsPerPod is how often the slice of a replaced pod is written, 1 to 20.
	// Default 4.5.
	EventsPerPod float64
	// Surge is how many pods are replaced at a time. Default: a quarter of the
	// replicas, as a Deployment does.
	Surge int
	// PodSeconds is how long one replacement takes. Default 20.
	PodSeconds float64
	// Protobuf is the encoding of the watches; otherwise JSON.
	Protobuf bool
	// StartWindow is the time within which all daemons start. Default 1 s: the
	// API server comes back, or the node image is rolled everywhere.
	StartWindow time.Duration
	// Jitter is the longest pause before a daemon's first list. Default 30 s; a
	// negative value means none.
	Jitter time.Duration
	// APIServers share the watches. Default 3.
	APIServers int
	// Seed draws the pauses. Default 1.
	Seed uint64
	// ListMicros and EventMicros are CPU time of the API server, in µs, for a
	// list of 1 MB and for sending an event of 1 MB to one watch. Default 4000
	// and 1000: the encoding of an event is shared by its watches.
	ListMicros, EventMicros float64
	// WatchBytes is the API server's memory for one watch. Default 50 000.
	WatchBytes float64
}

func (c Config) withDefaults() Config {
	set := func(v *float64, d float64) {
		if *v == 0 {
			*v = d
		}
	}
	set(&c.EventsPerPod, 4.5)
	set(&c.PodSeconds, 20)
	set(&c.ListMicros, 4000)
	set(&c.EventMicros, 1000)
	set(&c.WatchBytes, 50_000)
	if c.MaxPerSlice == 0 {
		c.MaxPerSlice = 100
	}
	if c.Surge == 0 {
		c.Surge = max(1, c.Replicas/4)
	}
	if c.StartWindow == 0 {
		c.StartWindow = time.Second
	}
	if c.Jitter == 0 {
		c.Jitter = 30 * time.Second
	}
	c.Jitter = max(c.Jitter, 0)
	if c.APIServers == 0 {
		c.APIServers = 3
	}
	if c.Seed == 0 {
		c.Seed = 1
	}
	return c
}

// RangeError is a field whose value cannot be.
type RangeError struct {
	Field            string
	Value, Low, High float64 // durations in seconds
}

func (e *RangeError) Error() string {
	return fmt.Sprintf("apicost: %s is %v, want %v to %v", e.Field, e.Value, e.Low, e.High)
}

func (c Config) validate() error {
	var errs []error
	between := func(field string, v, low, high float64) {
		if !(v >= low && v <= high) {
			errs = append(errs, &RangeError{field, v, low, high})
		}
	}
	between("Nodes", float64(c.Nodes), 1, 100_000)
	between("Replicas", float64(c.Replicas), 1, 100_000)
	between("MaxPerSlice", float64(c.MaxPerSlice), 1, 1000)
	between("EventsPerPod", c.EventsPerPod, 1, 20)
	between("Surge", float64(c.Surge), 1, float64(c.Replicas))
	between("PodSeconds", c.PodSeconds, 0.1, 3600)
	between("StartWindow", c.StartWindow.Seconds(), 0, 86400)
	between("Jitter", c.Jitter.Seconds(), 0, 86400)
	between("APIServers", float64(c.APIServers), 1, 100)
	return errors.Join(errs...)
}
