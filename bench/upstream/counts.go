package upstream

import (
	"sync/atomic"

	"github.com/nodens-dns/nodens/bench/names"
)

// Counts is what a server did since it was made, restarts included.
type Counts struct {
	Class    [names.NumClass]uint64 // queries by class of name, answered or not
	UDP      uint64                 // queries that came over UDP
	TCP      uint64                 // queries that came over TCP
	Conns    uint64                 // TCP connections accepted
	Ignored  uint64                 // messages that are no query
	Dropped  uint64                 // queries left unanswered on purpose
	Overflow uint64                 // queries dropped because too many replies were held
}

// Queries is the number of queries of all classes.
func (c Counts) Queries() uint64 {
	var sum uint64
	for _, n := range c.Class {
		sum += n
	}
	return sum
}

// stripe is one reader's share of the counters, alone on its cache lines.
type stripe struct {
	class             [names.NumClass]atomic.Uint64
	queries           atomic.Uint64
	ignored, dropped  atomic.Uint64
	overflow, accepts atomic.Uint64
	_                 [64]byte
}

// Counts reads the counters.
func (s *Server) Counts() Counts {
	var c Counts
	for i := range s.stripes {
		st := &s.stripes[i]
		for class := range c.Class {
			c.Class[class] += st.class[class].Load()
		}
		if i == len(s.stripes)-1 {
			c.TCP = st.queries.Load()
		} else {
			c.UDP += st.queries.Load()
		}
		c.Conns += st.accepts.Load()
		c.Ignored += st.ignored.Load()
		c.Dropped += st.dropped.Load()
		c.Overflow += st.overflow.Load()
	}
	return c
}
