package forwarder

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/nodens-dns/nodens/forwarder/access"
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
	// Deny are names that do not exist, nor does anything below them: asking
	// for them would be in vain or would tell strangers too much. A route for
	// one of them wins. Default none but those that no resolver asks for.
	Deny []string
	// Chaos are texts, at most 255 bytes each, by the name that asks for them
	// with class CH and type TXT, as "version.bind." (RFC 4892). All other
	// questions of that class are refused. Default none.
	Chaos map[string]string
	// Witness is a name that, asked with class CH and type TXT, is answered with
	// WitnessText of the loop that read the query, which shows that this loop
	// is at work. WitnessText is called by New alone, once for each stripe, and
	// gives at most 255 bytes. Such queries are no client's and not counted.
	// Default none.
	Witness     string
	WitnessText func(stripe int) string
	// RefuseSnooping refuses queries without RD, which ask what others on this
	// node have asked before. Default false: they are answered from the cache,
	// or asked for without RD.
	RefuseSnooping bool
	// Gate rules on who may ask, and how much. Default none: everybody may.
	Gate *access.Gate
	// DropDenied gives clients that the Gate denies no reply, where others get
	// REFUSED.
	DropDenied bool
	// Taps are those who watch. Default none, for ever.
	Taps *Taps
	// Before is the Forwarder that this one takes over from. If both have the
	// same zones and routes in the same order, and the same Listeners and
	// Stripes, they count together, so that no counter falls. Default none.
	Before *Forwarder
	// Now is the time since any monotonic epoch.
	Now func() time.Duration
}

// Forwarder answers queries. Its methods are safe for concurrent use.
type Forwarder struct {
	table      *table
	cache      *cache.Cache
	flights    flights
	names      flights // by name alone
	background background
	counters   *counters
	matches    matches
	chaos      chaos
	witness    witness
	udpSize    uint16
	rotate     bool
	noSnooping bool
	gate       *access.Gate // nil: everybody may ask
	silent     bool         // to clients that are denied
	taps       *Taps
	now        func() time.Duration
}

// New makes a Forwarder. Its error names every mistake in the routes.
func New(cfg Config) (*Forwarder, error) {
	t, err := newTable(cfg.Routes, append(localZones(), denied(cfg.Deny)...))
	texts, badText := newChaos(cfg.Chaos)
	loops, badWitness := newWitness(&cfg)
	err = errors.Join(err, badText, badWitness)
	if cfg.Cache == nil || cfg.Now == nil || cfg.Listeners < 1 || cfg.Stripes < 1 {
		err = errors.Join(err, errors.New("forwarder: Cache, Now, Listeners and Stripes must be given"))
	}
	if err != nil {
		return nil, err
	}
	counters := countersFor(&cfg, t)
	for i, r := range t.routes {
		r.shed = &counters.shed[i]
	}
	return &Forwarder{
		table:      t,
		cache:      cfg.Cache,
		flights:    flights{maxFollowers: cfg.MaxFollowers},
		names:      flights{maxFollowers: cfg.MaxFollowers},
		counters:   counters,
		matches:    newMatches(&cfg, t, counters),
		chaos:      texts,
		witness:    loops,
		udpSize:    max(cfg.UDPSize, wire.MinUDPSize),
		rotate:     cfg.Rotate,
		noSnooping: cfg.RefuseSnooping,
		gate:       cfg.Gate,
		silent:     cfg.DropDenied,
		taps:       cmp.Or(cfg.Taps, &Taps{}),
		now:        cfg.Now,
	}, nil
}

// question is one query on its way: what was asked, by whom, and its identity.
type question struct {
	wire.Query
	from   Peer
	size   int // of the query in bytes
	hash   uint64
	keyLen int
	ruling access.Ruling
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

// Close waits for what was asked in the background, at most the longest budget
// of the groups. It returns nil; from then on answers are not asked for before
// their end, and ended ones stand in at once.
func (f *Forwarder) Close() error {
	f.background.close()
	return nil
}

// Lookup answers what is in memory. The reply is made in dst's memory. Lookup
// neither waits nor keeps a slice, and allocates only when it has an answer
// asked for again in the background, or fails because too many are being asked.
func (f *Forwarder) Lookup(dst, query []byte, from Peer) ([]byte, Verdict) {
	if f.gate != nil {
		if ruling := f.gate.Admit(from.Client.Addr(), from.Received); ruling != access.Allowed {
			return f.turnAway(dst, query, from, ruling)
		}
	}
	q := question{from: from}
	if fault := f.read(&q, query); fault != wire.Sound {
		return f.reject(dst, &q, fault)
	}
	if f.noSnooping && !q.RD() {
		return f.refuse(dst, &q, wire.Refused, wire.EDEProhibited), Answered
	}
	if f.table.ruled {
		if reply, ok := f.answerByRule(dst, &q); ok {
			return reply, Answered
		}
	}
	e := f.cache.Get(q.hash, q.key())
	if e != nil && !e.Due(from.Received) {
		return f.recall(dst, &q, answer{entry: e, source: FromCache}, nil), Answered
	}
	z := f.table.find(q.folded(), q.Type)
	if z.route == nil || refused(&q.Query) {
		return f.answerLocally(dst, &q, z), Answered
	}
	if a, ok := f.secondBest(&q, e, z); ok {
		return f.recall(dst, &q, a, &z.route.Policy), Answered
	}
	return nil, Miss
}

// recall writes an answer that is in memory.
func (f *Forwarder) recall(dst []byte, q *question, a answer, p *cache.Policy) []byte {
	reply := f.write(dst, q, a, p, q.from.Received)
	if a.implied {
		f.counters.implied.Add(1)
	}
	f.countRCode(q, a.entry.Route(), a, a.entry.RCode(), len(reply))
	return reply
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
	if f.gate != nil {
		seat, ok := f.gate.Enter(from.Client.Addr(), from.Received)
		if !ok {
			return f.sendAway(dst, &q, access.Limited)
		}
		defer f.gate.Leave(seat)
	}
	a, ok := f.resolve(ctx, dst, &q, z)
	if !ok {
		f.counters.surplus.Add(1)
		f.watch(&q, z.index, answer{source: FromFailure}, NoReply)
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
	// implied says that entry denies another name, with which this one falls.
	implied bool
}

// answered is the answer that asking gave.
func answered(e *cache.Entry) answer {
	if e != nil && e.Kind() == cache.Failure {
		return answer{entry: e, source: FromFailure}
	}
	return answer{entry: e, source: FromServers}
}

// resolve finds the answer to a question that was not in memory. ok is false
// for one follower too many.
func (f *Forwarder) resolve(ctx context.Context, dst []byte, q *question, z *zone) (a answer, ok bool) {
	now := f.now()
	old := f.cache.Get(q.hash, q.key())
	switch {
	case old == nil:
	case old.Live(now):
		return answer{entry: old, source: FromCache}, true // it came while this query waited for its turn
	case old.Standby(&z.route.Policy, now):
		return f.renew(q, z, old, now), true
	}
	e, ok := f.share(ctx, dst, q, z, now)
	return answered(e), ok
}
