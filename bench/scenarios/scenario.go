package scenarios

import (
	"time"

	"github.com/nodens-dns/nodens/bench/load"
	"github.com/nodens-dns/nodens/bench/names"
	"github.com/nodens-dns/nodens/bench/upstream"
)

// Scenario is one load test.
type Scenario struct {
	Name string // of the file, without .yaml
	Does string // one or two sentences: what it shows
	// Kind is which sequence of names is asked.
	Kind Kind
	// Hits is the share of queries that are warm, 0 to 1, of the kind Blend.
	Hits float64
	// Names are the cluster and its traffic.
	Names names.Config
	// Warm asks every service once before the measurement.
	Warm bool
	// Load holds how queries travel: Transport, Sockets, Workers, FreshPorts,
	// Outstanding, Retry, FollowTC, Timeout and Stages. The rest is for who
	// plays the scenario.
	Load load.Config
	// Servers is the number of servers behind the server under test, 1 to 3: on
	// its node, in its zone, in another zone.
	Servers int
	// Faults are those of all servers from the begin of the load on: the warm-up
	// is without.
	Faults upstream.Faults
	Events []Event
}

// Kind is a sequence of names.
type Kind string

// The kinds.
const (
	Services Kind = "services" // that exist, by full name and popularity
	Pods     Kind = "pods"     // lookups of pods with their search lists
	Unique   Kind = "unique"   // names that were never asked before
	Blend    Kind = "blend"    // services, and unique names for the rest
)

// Event is something that happens during the load.
type Event struct {
	At   time.Duration // since the load began
	Does string        // for the reader of a report
	Do   Action
	// Server is the number of the server it happens to, from 1; 0 means all.
	Server int
	// Faults are those to set, of SetFaults.
	Faults upstream.Faults
	// Gap is how long the server under test stays away, of StopStart and
	// KillStart.
	Gap time.Duration
}

// Action is what an event does.
type Action string

// The actions. Those on servers come with what the API says of them.
const (
	SetFaults Action = "faults"    // other faults from now on
	Terminate Action = "terminate" // the API says terminating; it serves on
	Remove    Action = "remove"    // it stops in order, and the API forgets it
	Kill      Action = "kill"      // it dies, and the API does not know
	Unready   Action = "unready"   // the API says not ready
	Start     Action = "start"     // it serves, and the API says ready

	Surge     Action = "surge"      // a second server under test beside the first, which then ends
	StopStart Action = "stop-start" // the server under test ends in order and comes back
	KillStart Action = "kill-start" // it is killed and comes back
)

// OnTarget tells whether the action is one on the server under test.
func (a Action) OnTarget() bool { return a == Surge || a == StopStart || a == KillStart }

// Length is how long the load lasts.
func (s *Scenario) Length() time.Duration {
	var sum time.Duration
	for _, stage := range s.Load.Stages {
		sum += stage.For
	}
	return sum
}

// Peak is the highest arrival rate in queries per second; 0 for a closed loop.
func (s *Scenario) Peak() float64 {
	peak := 0.0
	for _, stage := range s.Load.Stages {
		peak = max(peak, stage.From, stage.To)
	}
	return peak
}

// Restarts tells whether the server under test is restarted.
func (s *Scenario) Restarts() bool {
	for _, e := range s.Events {
		if e.Do.OnTarget() {
			return true
		}
	}
	return false
}

// Meddles tells whether anything happens to the servers behind the server under
// test.
func (s *Scenario) Meddles() bool {
	for _, e := range s.Events {
		if !e.Do.OnTarget() {
			return true
		}
	}
	return s.Faults != upstream.Faults{}
}

// Stretch makes the load last so long, with every stage and event at the same
// share of it.
func (s *Scenario) Stretch(to time.Duration) {
	factor := float64(to) / float64(s.Length())
	for i := range s.Load.Stages {
		s.Load.Stages[i].For = time.Duration(float64(s.Load.Stages[i].For) * factor)
	}
	for i := range s.Events {
		s.Events[i].At = time.Duration(float64(s.Events[i].At) * factor)
		s.Events[i].Gap = time.Duration(float64(s.Events[i].Gap) * factor)
	}
}

// Pace makes the peak rate so high, in queries per second, and leaves the shape.
func (s *Scenario) Pace(to float64) {
	factor := to / s.Peak()
	for i := range s.Load.Stages {
		s.Load.Stages[i].From *= factor
		s.Load.Stages[i].To *= factor
	}
}
