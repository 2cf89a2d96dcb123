package forwarder

import (
	"bytes"
	"net/netip"
	"time"

	"github.com/nodens-dns/nodens/forwarder/cache"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// Explanation is what would become of a question.
type Explanation struct {
	// Zone is the zone of the name, with a final dot; "" when it is in none.
	Zone string
	// Route is the index of the route that is asked, -1 for none.
	Route int
	// RCode, unless it is NoError, and EDE are the error that the question gets
	// whatever its name.
	RCode wire.RCode
	EDE   wire.EDE
	// Local is what the answer is that is made here, "" for none.
	Local string
	// Ruled is the reply that a rule of the route gives; nil without one.
	Ruled []byte
	// Renamed is the name, in wire form, that servers are asked for in place of
	// this one; nil when they are asked for the name itself.
	Renamed []byte
	// Asking reports whether the question is being asked now.
	Asking bool
	// Kept is what is in memory, for each kind of client that gets something
	// else.
	Kept []Kept
}

// Kept is what is in memory for a question.
type Kept struct {
	DO, CD  bool // of the clients that get it
	AnyType bool // it is kept of the name, whatever the type
	Kind    cache.Kind
	RCode   wire.RCode
	Age     time.Duration
	Left    time.Duration // negative once it has ended
	StandBy time.Duration // for which it may stand in from now on; 0 or less: not
	Resting bool          // asking failed a moment ago and waits to be tried again
	Why     wire.EDE      // it failed, or is a failure
	Hits    uint32
	Via     uint8  // wire.Reply.Via of the server's reply
	Reply   []byte // as a client would get it; nil of a failure
}

// Explain says what would become of a question of class IN, and leaves no trace.
// name is folded and in wire form.
func (f *Forwarder) Explain(name []byte, t wire.Type) Explanation {
	q := new(question)
	f.read(q, wire.AppendKeyQuery(nil, wire.AppendKeyFor(nil, name, t, false, false)))
	z := f.table.find(q.folded(), t)
	e := Explanation{Asking: f.flights.has(q.hash, q.key())}
	e.RCode, e.EDE = refusal(&q.Query)
	if z != f.table.none {
		e.Zone = z.name
	}
	e.Route, e.Local = f.table.routeIndex(z), z.local.String()
	if z.route != nil && z.route.Rules != nil {
		e.Ruled, _, _ = z.route.Rules.Local(nil, &q.Query, q.folded(), z.size, 0)
		e.Renamed, _ = z.route.Rules.Renamed(q.folded())
	}
	e.Kept = f.kept(q, z)
	return e
}

// kept looks up all that may answer a question.
func (f *Forwarder) kept(q *question, z *zone) []Kept {
	var found []Kept
	now := f.now()
	for variant := range 4 {
		for _, t := range [...]wire.Type{q.Type, 0} {
			k := Kept{DO: variant&1 != 0, CD: variant&2 != 0, AnyType: t == 0}
			key := wire.AppendKeyFor(nil, q.folded(), t, k.DO, k.CD)
			hash := f.cache.Hash(key)
			if e := f.cache.Peek(hash, key); e != nil {
				k.Hits = f.cache.Hits(hash, e)
				k.describe(q, e, z, now)
				found = append(found, k)
			}
		}
	}
	return found
}

func (k *Kept) describe(q *question, e *cache.Entry, z *zone, now time.Duration) {
	k.Kind, k.RCode, k.Why = e.Kind(), e.RCode(), e.EDE()
	k.Age, k.Left, k.Via = e.Age(now), e.Left(now), e.Via()
	if why, resting := e.Resting(now); resting {
		k.Resting, k.Why = true, why
	}
	if e.Kind() == cache.Failure {
		return
	}
	k.Reply = e.Append(nil, &q.Query, now, false)
	if z.route != nil {
		k.StandBy = k.Left + z.route.Policy.MaxStale
	}
}

// Denies reports whether a client may not ask at all.
func (f *Forwarder) Denies(client netip.Addr) bool { return f.gate != nil && f.gate.Denies(client) }

// Flush forgets what is in memory of a folded name in wire form, with all that
// lies below it if that is asked for, and tells how many answers that were. What
// is being asked for meanwhile may stay.
func (f *Forwarder) Flush(name []byte, andBelow bool) int {
	return f.cache.Flush(func(key []byte) bool {
		known := wire.KeyName(key)
		return bytes.Equal(known, name) || andBelow && below(known, name)
	})
}
