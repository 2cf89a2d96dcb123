package load

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/nodens-dns/nodens/bench/names"
)

// Source is an endless sequence of queries. It is used by one goroutine, and
// the question's bytes need to last only until the next call.
type Source interface {
	Next() names.Query
}

// Transport says how queries travel.
type Transport uint8

// The transports.
const (
	Mixed   Transport = iota // as each query says
	UDP                      // all over UDP
	TCP                      // all over TCP, pipelined
	TCPEach                  // all over TCP, a connection for each query
	TLS                      // all over TLS, pipelined
)

// byTCP tells whether everything goes over some kind of TCP.
func (t Transport) byTCP() bool { return t >= TCP }

// Stage is a part of a run with its arrival rate.
type Stage struct {
	// Name begins a phase of that name; an empty name goes on with the phase
	// before.
	Name string
	// For is how long it lasts. 0 in the last stage means until the context
	// ends.
	For time.Duration
	// From and To are the arrival rates in queries per second at its begin and
	// end, 0 to 10 000 000; in between the rate changes evenly. Ignored by a
	// closed loop.
	From, To float64
}

// Steady is a stage of one rate.
func Steady(name string, rate float64, d time.Duration) Stage {
	return Stage{Name: name, For: d, From: rate, To: rate}
}

// Config describes a run.
type Config struct {
	// Target is the server. Required. It must be an address of this machine
	// unless AllowRemote is set.
	Target      netip.AddrPort
	AllowRemote bool
	// Source makes the sequence of a worker. Required.
	Source func(worker int) Source
	// Unjudged takes the question, and a code of NOERROR or NXDOMAIN, for a
	// right reply whatever its records: for a reflector, or data that differ
	// from the source's.
	Unjudged bool
	// Stages are run one after the other. At least one is required.
	Stages []Stage
	// Outstanding makes it a closed loop: so many queries are kept in flight,
	// 1 to 65 536. Default 0: an open loop.
	Outstanding int
	// Workers is the number of threads that send and receive, 1 to 64.
	// Default 1.
	Workers int
	// Sockets is the number of UDP sockets, over all workers, 1 to 4096.
	// Default 16.
	Sockets int
	// Conns is the number of TCP or TLS connections, over all workers, 1 to
	// 4096. Default 4. With TCPEach it bounds the queries in flight, and its
	// default is 1024.
	Conns int
	// Transport is Mixed unless set.
	Transport Transport
	// FreshPorts sends every UDP query from a socket, so a source port, of its
	// own. Sockets then bounds the queries in flight, is at most 28 000, which is
	// what Linux has of such ports for one address by default, and its own default
	// is 4096.
	FreshPorts bool
	// TLS says how servers are verified. Default: as the system does, by the
	// target's address.
	TLS *tls.Config
	// FollowTC asks again over TCP what was answered with TC, as clients do. The
	// outcome is then that of the second question. Default false: truncated is
	// an outcome.
	FollowTC bool
	// Retry sends a query again as a client's library would. Default
	// [NoRetry]: one datagram, so that a loss shows.
	Retry Retry
	// Queries ends a closed loop when so many were sent. Default 0: the stages
	// end it.
	Queries uint64
	// Timeout is how long a reply is waited for, 10 ms to 30 s. Default 5 s, or
	// what the library that Retry names waits before it sends again.
	Timeout time.Duration
	// Late is the age from which a right reply counts as late. Default 1 s.
	Late time.Duration
	// Spin is how long before the next query is due a worker stops sleeping
	// and polls, 0 to 1 ms: a sleep ends late by some of this. It trades the
	// machine's CPU for punctuality. Default 0.
	Spin time.Duration
	// Enter, if set, is called on the thread of each worker before it begins, so
	// that the sockets it opens are where those are that New opened: in a network
	// namespace. After an error the worker sends nothing.
	Enter func() error
	// Progress, if set, is called once a second by the clerk.
	Progress func(Progress)
}

func (c Config) withDefaults() Config {
	if c.Workers == 0 {
		c.Workers = 1
	}
	if c.Sockets == 0 && c.FreshPorts {
		c.Sockets = 4096
	}
	if c.Sockets == 0 {
		c.Sockets = max(16, c.Workers)
	}
	if c.Conns == 0 && c.Transport == TCPEach {
		c.Conns = 1024
	}
	if c.Conns == 0 {
		c.Conns = max(4, c.Workers)
	}
	if c.Timeout == 0 {
		c.Timeout = c.Retry.habit().wait
	}
	if c.Late == 0 {
		c.Late = min(time.Second, c.patience())
	}
	return c
}

func (c Config) validate() error {
	var errs []error
	between := func(what string, v, low, high float64) {
		if !(v >= low && v <= high) {
			errs = append(errs, fmt.Errorf("load: %s is %v, want %v to %v", what, v, low, high))
		}
	}
	between("Outstanding", float64(c.Outstanding), 0, 65536)
	between("Workers", float64(c.Workers), 1, 64)
	most := 4096
	if c.FreshPorts {
		most = 28000
	}
	between("Sockets", float64(c.Sockets), float64(c.Workers), float64(most))
	between("Conns", float64(c.Conns), float64(c.Workers), 4096)
	between("Timeout in seconds", c.Timeout.Seconds(), 0.01, 30)
	between("Late in seconds", c.Late.Seconds(), 0, c.patience().Seconds())
	between("Spin in seconds", c.Spin.Seconds(), 0, 0.001)
	between("Retry", float64(c.Retry), 0, float64(GoRetry))
	between("Transport", float64(c.Transport), 0, float64(TLS))
	if c.Queries > 0 && c.Outstanding == 0 {
		errs = append(errs, errors.New("load: Queries needs a closed loop: set Outstanding"))
	}
	for i, s := range c.Stages {
		between(fmt.Sprintf("From of stage %d", i), s.From, 0, 1e7)
		between(fmt.Sprintf("To of stage %d", i), s.To, 0, 1e7)
		if s.For < 0 || s.For == 0 && i < len(c.Stages)-1 {
			errs = append(errs, fmt.Errorf("load: stage %d lasts %v: only the last may have no end", i, s.For))
		}
	}
	if len(c.Stages) == 0 || c.Source == nil || !c.Target.IsValid() {
		errs = append(errs, errors.New("load: a run needs Target, Source and at least one stage"))
	}
	return errors.Join(errs...)
}

// patience is how long a query may be in flight, all its datagrams together.
func (c Config) patience() time.Duration {
	return c.Timeout * time.Duration(c.Retry.habit().sends)
}

// slots is how many queries one of n sockets must be able to hold: all that
// arrive until the first is given up, with a tenth to spare, and at most what
// its IDs can tell apart.
func (c Config) slots(n int) int {
	most := float64(c.Outstanding)
	if c.Outstanding == 0 {
		for _, s := range c.Stages {
			most = max(most, 1.1*max(s.From, s.To)*(c.patience().Seconds()+0.1))
		}
	}
	size := 64
	for float64(size) < most/float64(n)+1 && size < 65536 {
		size *= 2
	}
	return size
}
