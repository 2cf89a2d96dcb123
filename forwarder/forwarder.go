package forwarder

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/nodens-dns/nodens/forwarder/cache"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// Config is how a Forwarder is made.
type Config struct {
	Routes []Route
	// Cache keeps the answers. Several forwarders may use one after another
	// as long as their zones are the same, in the same order.
	Cache *cache.Cache
	// Listeners is the number of listen addresses, at least 1.
	Listeners int
	// Stripes is the number of loops that read queries, at least 1: counters
	// are kept once for each.
	Stripes int
	// UDPSize is the longest UDP reply in bytes and the size advertised with
	// EDNS, 512 to 4096. The usual 1232 fits an IPv6 packet of 1280 bytes.
	UDPSize uint16
	// Rotate turns the addresses of a cached answer with every query.
	Rotate bool
	// MaxFollowers bounds the queries that wait for one flight.
	MaxFollowers int
	// Now is the time since any monotonic epoch.
	Now func() time.Duration
}

// Forwarder answers queries. Its methods are safe for concurrent use.
type Forwarder struct {
	table    *table
	cache    *cache.Cache
	flights  flights
	counters *counters
	udpSize  uint16
	rotate   bool
	now      func() time.Duration

	shared, surplus, dropped, unkept atomic.Uint64
}

// New makes a Forwarder. Its error names every mistake in the routes.
func New(cfg Config) (*Forwarder, error) {
	t, err := newTable(cfg.Routes, localZones())
	if cfg.Cache == nil || cfg.Now == nil || cfg.Listeners < 1 || cfg.Stripes < 1 {
		err = errors.Join(err, errors.New("forwarder: Cache, Now, Listeners and Stripes must be given"))
	}
	if err != nil {
		return nil, err
	}
	return &Forwarder{
		table:    t,
		cache:    cfg.Cache,
		flights:  flights{maxFollowers: cfg.MaxFollowers},
		counters: newCounters(cfg.Stripes, cfg.Listeners, len(t.zones)),
		udpSize:  max(cfg.UDPSize, wire.MinUDPSize),
		rotate:   cfg.Rotate,
		now:      cfg.Now,
	}, nil
}

// question is one query on its way: what was asked, by whom, and its identity.
type question struct {
	wire.Query
	from   Peer
	size   int // of the query in bytes
	hash   uint64
	keyLen int
	buf    [wire.MaxKey]byte
}

func (q *question) key() []byte { return q.buf[:q.keyLen] }

// folded is the question's name in lower case.
func (q *question) folded() []byte { return q.buf[:len(q.Name())] }

// read parses a query and gives it its identity.
func (f *Forwarder) read(q *question, query []byte) (fault wire.Fault) {
	q.size = len(query)
	if q.Query, fault = wire.ParseQuery(query); fault != wire.Sound {
		return fault
	}
	q.keyLen = len(q.AppendKey(q.buf[:0]))
	q.hash = f.cache.Hash(q.key())
	return wire.Sound
}

// Lookup answers what is in memory. The reply is made in dst's memory. Lookup
// neither waits, allocates nor keeps a slice.
func (f *Forwarder) Lookup(dst, query []byte, from Peer) ([]byte, Verdict) {
	q := question{from: from}
	if fault := f.read(&q, query); fault != wire.Sound {
		return f.reject(dst, &q, fault)
	}
	if e := f.cache.Get(q.hash, q.key()); e != nil && e.Live(from.Received) {
		a := answer{e, FromCache}
		reply := f.write(dst, &q, a, nil, from.Received)
		f.countMemory(&q, e.Route(), a, len(reply))
		return reply, Answered
	}
	if z := f.table.find(q.folded(), q.Type); z.route == nil || refused(&q.Query) {
		return f.answerLocally(dst, &q, z), Answered
	}
	return nil, Miss
}

// Done times the queries that Lookup answered since the last call for the same
// loop. took is from reading the first to having sent the last answer.
func (f *Forwarder) Done(from Peer, took time.Duration) { f.counters.timeBatch(&from, took) }

// Resolve answers a query that Lookup could not. It waits for servers, at most
// their budget of time. The reply is made in dst's memory where that is large
// enough. ctx must end only with the process: others may be waiting for what
// this query asks.
func (f *Forwarder) Resolve(ctx context.Context, dst, query []byte, from Peer) ([]byte, Verdict) {
	q := question{from: from}
	if fault := f.read(&q, query); fault != wire.Sound {
		return f.reject(dst, &q, fault)
	}
	z := f.table.find(q.folded(), q.Type)
	if z.route == nil || refused(&q.Query) {
		return f.answerLocally(dst, &q, z), Answered
	}
	a, ok := f.resolve(ctx, dst, &q, z)
	if !ok {
		f.surplus.Add(1)
		return nil, Drop // a retry will find the answer in the cache
	}
	now := f.now()
	reply := f.write(dst, &q, a, &z.route.Policy, now)
	f.countWait(&q, z.index, a, len(reply), now)
	return reply, Answered
}

// answer is what a query gets, and who it comes from.
type answer struct {
	entry  *cache.Entry
	source Source
}

// resolve finds the answer to a question that was not in memory. An ended
// answer stands in when no new one can be had, and for a while after that
// without asking again. ok is false for one follower too many.
func (f *Forwarder) resolve(ctx context.Context, dst []byte, q *question, z *zone) (a answer, ok bool) {
	now := f.now()
	old := f.cache.Get(q.hash, q.key())
	if old != nil && old.Live(now) {
		return answer{old, FromCache}, true // it came while this query waited for its turn
	}
	standby := old != nil && old.Standby(&z.route.Policy, now)
	if standby && !old.Rested(now) {
		return answer{old, FromStale}, true
	}
	e, ok := f.share(ctx, dst, q, z)
	if !ok {
		return a, false
	}
	if e.Kind() != cache.Failure {
		return answer{e, FromServers}, true
	}
	if standby && (z.route.Policy.StaleOnError || e.EDE() == wire.EDENoReachable) {
		old.Postpone(f.now() + z.route.Policy.Recheck)
		return answer{old, FromStale}, true
	}
	return answer{e, FromFailure}, true
}

// share asks the servers, or waits for the flight that already asks the same.
// Without RD a server may answer less, so such a question flies alone.
func (f *Forwarder) share(ctx context.Context, dst []byte, q *question, z *zone) (e *cache.Entry, ok bool) {
	if !q.RD() {
		return f.fetch(ctx, dst, q, z), true
	}
	fl, role := f.flights.join(q.hash, q.key())
	switch role {
	case leader:
		e = f.fetch(ctx, dst, q, z)
		f.flights.land(q.hash, fl, e)
		return e, true
	case follower:
		f.shared.Add(1)
		<-fl.done // the leader's own budget bounds the wait
		return fl.entry, true
	}
	return nil, false
}

// fetch asks the route's servers and keeps what they say. Without an answer it
// returns a Failure.
func (f *Forwarder) fetch(ctx context.Context, dst []byte, q *question, z *zone) *cache.Entry {
	r := z.route
	defer r.inFlight.Add(-1)
	if r.inFlight.Add(1) > int64(r.MaxInFlight) {
		r.shed.Add(1)
		return cache.NewFailure(q.key(), wire.ServFail, wire.EDENoReachable, 0, z.index, f.now())
	}
	reply, err := r.Group.Exchange(ctx, dst, &q.Query)
	if err == nil && !reply.Simple() {
		reply, err = rebuild(&reply)
	}
	now := f.now()
	if err != nil {
		return f.fail(q, z, wire.EDENoReachable, r.Policy.FailureTTL, now)
	}
	e, kind, keep := cache.NewEntry(q.key(), &reply, &r.Policy, z.index, now)
	switch {
	case kind == cache.Failure, kind == cache.Lame:
		return f.fail(q, z, wire.EDENetworkError, r.Policy.ServFailTTL, now)
	case keep && q.RD():
		f.cache.Put(q.hash, e, now, 0)
	default:
		f.unkept.Add(1)
	}
	return e
}

// fail remembers for ttl that no answer was to be had (RFC 9520 section 3.2).
// To the client every failure is SERVFAIL: some stub resolvers ignore other
// codes and wait.
func (f *Forwarder) fail(q *question, z *zone, ede wire.EDE, ttl, now time.Duration) *cache.Entry {
	e := cache.NewFailure(q.key(), wire.ServFail, ede, ttl, z.index, now)
	if q.RD() {
		f.cache.Put(q.hash, e, now, z.route.Policy.MaxStale)
	}
	return e
}
