package load

import "time"

// Retry says which client library's habit of asking again is imitated. All of
// them have one server to ask here.
type Retry uint8

// The habits.
const (
	NoRetry Retry = iota // one datagram
	Glibc                // again after 5 s or SERVFAIL, twice in all
	Musl                 // again after 2.5 s, twice in all; up to twice more on each SERVFAIL
	GoRetry              // again after 5 s or SERVFAIL, twice in all, each from a new port
)

// String is the habit's name as scenarios and flags write it.
func (r Retry) String() string { return [...]string{"none", "glibc", "musl", "go"}[r] }

// habit is what a library does when no good reply comes.
type habit struct {
	wait     time.Duration // for a reply to one datagram
	sends    uint8         // datagrams in all
	servFail bool          // SERVFAIL counts as no reply, so the next datagram leaves at once
	extra    uint8         // datagrams more after SERVFAIL, beside those in all
	port     bool          // each datagram from a port of its own
}

func (r Retry) habit() habit {
	switch r {
	case Glibc:
		return habit{wait: 5 * time.Second, sends: 2, servFail: true}
	case Musl:
		return habit{wait: 2500 * time.Millisecond, sends: 2, extra: 2}
	case GoRetry:
		return habit{wait: 5 * time.Second, sends: 2, servFail: true, port: true}
	case NoRetry:
	}
	return habit{wait: 5 * time.Second, sends: 1}
}

// again sends a query once more if the habit says so, after silence or after
// SERVFAIL. It is false if the query has ended.
func (w *worker) again(l lane, i int32, failed bool) bool {
	p, h := l.flights(), &w.habit
	s := &p.slots[i]
	switch {
	case p.texts == nil:
		return false
	case failed && s.extra < h.extra:
		s.extra++
	case failed && !h.servFail, s.sends >= h.sends:
		return false
	default:
		s.sends++
	}
	if h.port {
		l.ended(i)
	}
	// What the kernel does not take is like a lost packet to the client.
	_ = l.send(w, i, p.text(i))
	s.sent = w.now()
	p.later(i)
	w.score(s, func(c *Counts) { c.Resent++ })
	return true
}
