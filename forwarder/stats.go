package forwarder

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/nodens-dns/nodens/forwarder/access"
	"github.com/nodens-dns/nodens/forwarder/cache"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// Source is who wrote an answer.
type Source uint8

// Sources.
const (
	FromCache   Source = iota // a live entry
	FromStale                 // an ended entry in place of an answer that could not be had
	FromServers               // a server, for this query or one it joined
	FromLocal                 // a local zone, or an error that needs no server
	FromFailure               // SERVFAIL: nothing was to be had, now or a moment ago
	Sources     = int(FromFailure) + 1
)

// Dimensions of the counters. The buckets are CoreDNS's, so that its dashboards
// go on working.
const (
	// TimeBuckets counts up to 0.25 ms, doubled 15 times, and above.
	TimeBuckets = 17
	// SizeBuckets counts up to the bounds of SizeBounds, and above.
	SizeBuckets = 15
	// TypeOther is the index of every type without its own.
	TypeOther = 19
	// Types counts question types: TypeIndex tells which is where.
	Types = TypeOther + 1
	// RCodes counts the response codes 0 to 15 and BADVERS, the only longer one
	// that is given.
	RCodes = int(wire.BadVers) + 1
	// NoData stands among response codes for an answer without an error that has no record
	// of the type.
	NoData   = RCodes
	Outcomes = NoData + 1
)

// SizeBounds are the upper bounds of the size buckets in bytes.
var SizeBounds = [SizeBuckets - 1]float64{0, 100, 200, 300, 400, 511, 1023, 2047, 4095, 8291, 16e3, 32e3, 48e3, 64e3}

// TypeNames are the labels of the type indexes.
var TypeNames = [Types]string{
	"A", "AAAA", "CNAME", "DNSKEY", "DS", "MX", "NSEC", "NSEC3", "NS", "PTR", "RRSIG",
	"SOA", "SRV", "TXT", "HTTPS", "IXFR", "AXFR", "ANY", "SVCB", "other",
}

// TypeIndex is the place of a type in the counters.
func TypeIndex(t wire.Type) int {
	if t < wire.Type(len(typeIndex)) && typeIndex[t] != 0 {
		return int(typeIndex[t]) - 1
	}
	return TypeOther
}

// typeIndex holds a type's place plus one.
var typeIndex = [256]uint8{
	1: 1, 28: 2, 5: 3, 48: 4, 43: 5, 15: 6, 47: 7, 50: 8, 2: 9, 12: 10, 46: 11,
	6: 12, 33: 13, 16: 14, 65: 15, 251: 16, 252: 17, 255: 18, 64: 19,
}

// Histogram counts values in the N buckets it was made with, and their sum.
type Histogram[N [TimeBuckets]uint64 | [SizeBuckets]uint64] struct {
	Buckets N
	Sum     uint64 // nanoseconds or bytes
}

// Counts is what was counted for one listen address and zone.
type Counts struct {
	Requests     [2][2][Types]uint64 // by protocol (UDP, TCP), family (IPv4, IPv6), type
	RequestSize  [2]Histogram[[SizeBuckets]uint64]
	ResponseSize [2]Histogram[[SizeBuckets]uint64]
	// Duration is from reading the query to answering it. For answers from
	// memory it is taken once per batch of queries that were read together,
	// when the last answer of the batch has left: an upper bound.
	Duration  Histogram[[TimeBuckets]uint64]
	Responses [Sources][Outcomes]uint64 // by response code or NoData
	DO        uint64
	Made      uint64 // answered with what was made of an answer of another type
}

// cell is Counts at work. Each stripe has its own, so that loops on different
// CPUs do not take cache lines from each other.
type cell struct {
	requests     [2][2][Types]atomic.Uint64
	requestSize  [2]sizes
	responseSize [2]sizes
	duration     times
	responses    [Sources][Outcomes]atomic.Uint64
	do, made     atomic.Uint64
	batch        atomic.Uint32 // answered from memory since the last Done
}

type sizes struct {
	buckets [SizeBuckets]atomic.Uint64
	sum     atomic.Uint64
}

type times struct {
	buckets [TimeBuckets]atomic.Uint64
	sum     atomic.Uint64
}

func (c *counters) cell(from *Peer, zone uint8) *cell {
	s := &c.stripes[int(from.Stripe)%len(c.stripes)]
	return &s.cells[int(from.Listener)%c.shape.listeners*c.zones+int(zone)]
}

// count notes one answered query. size is that of the reply.
func (c *cell) count(q *question, size int, a answer, rcode wire.RCode) {
	proto, family := int(q.from.Proto&1), 0
	if q.from.Client.Addr().Is6() {
		family = 1
	}
	c.requests[proto][family][TypeIndex(q.Type)].Add(1)
	c.requestSize[proto].add(q.size)
	c.responseSize[proto].add(size)
	c.responses[a.source][outcome(a.entry, rcode)].Add(1)
	if q.DO {
		c.do.Add(1)
	}
	if a.entry != nil && a.entry.Made() {
		c.made.Add(1)
	}
}

func outcome(e *cache.Entry, rcode wire.RCode) int {
	if e != nil && e.Kind() == cache.NoData && rcode == wire.NoError {
		return NoData
	}
	return min(int(rcode), RCodes-1)
}

// countError counts an error of our own making.
func (f *Forwarder) countError(q *question, rcode wire.RCode, size int) {
	f.countRCode(q, f.table.none.index, answer{source: FromLocal}, rcode, size)
}

// countRCode counts an answer that Lookup gives; Done will time it.
func (f *Forwarder) countRCode(q *question, zone uint8, a answer, rcode wire.RCode, size int) {
	c := f.counters.cell(&q.from, zone)
	c.count(q, size, a, rcode)
	c.batch.Add(1)
	f.watch(q, zone, a, rcode)
}

// countWait counts an answer that Resolve gives.
func (f *Forwarder) countWait(q *question, zone uint8, a answer, size int, now time.Duration) {
	c := f.counters.cell(&q.from, zone)
	c.count(q, size, a, a.entry.RCode())
	c.duration.add(now-q.from.Received, 1)
	f.watch(q, zone, a, a.entry.RCode())
}

// timeBatch gives every query that was answered from memory since the last
// call the duration took.
func (c *counters) timeBatch(from *Peer, took time.Duration) {
	s := &c.stripes[int(from.Stripe)%len(c.stripes)]
	first := int(from.Listener) % c.shape.listeners * c.zones
	for i := range s.cells[first : first+c.zones] {
		cell := &s.cells[first+i]
		if cell.batch.Load() == 0 {
			continue
		}
		cell.duration.add(took, uint64(cell.batch.Swap(0)))
	}
}

func (h *times) add(d time.Duration, n uint64) {
	d = max(d, 1)
	const first = 250 * time.Microsecond
	bucket := bits.Len64(uint64((d - 1) / first)) // up to first: 0, to 2*first: 1
	h.buckets[min(bucket, TimeBuckets-1)].Add(n)
	h.sum.Add(uint64(d) * n)
}

func (h *sizes) add(size int) {
	bucket := 0
	for bucket < len(SizeBounds) && float64(size) > SizeBounds[bucket] {
		bucket++
	}
	h.buckets[bucket].Add(1)
	h.sum.Add(uint64(size))
}

// ZoneCounts are the Counts of one listen address and zone.
type ZoneCounts struct {
	Listener int
	Zone     string // with a final dot, "dropped" for what belongs to none
	Counts
}

// Stats is what a Forwarder did, and those before it that it counts on from.
type Stats struct {
	// Since is when counting began, on Config.Now's clock.
	Since  time.Duration
	Zones  []ZoneCounts
	Routes []RouteStats
	// Matches is what fixed answers were given to, by listen address and zone.
	Matches []Matches
	// Shared is how many queries were answered by another's flight.
	Shared uint64
	// Surplus is how many queries found the flight of their name full.
	Surplus uint64
	// Dropped is how many messages were not answered: no queries at all.
	Dropped uint64
	// Unkept is how many servers' answers were not to be kept.
	Unkept uint64
	// Renewed is how many answers were asked for again in the background, of
	// which Prefetched before their end.
	Renewed, Prefetched uint64
	// Unfetched is how many were not, near their end, because their route was
	// half full.
	Unfetched uint64
	// Denied and Limited are how many queries were turned away: their client is
	// none of ours, or asked more than its share.
	Denied, Limited uint64
	// Access is what is known of clients now.
	Access access.Stats
	// Ahead is how many names of search lists were asked for before the client
	// did, HeldBack how many were not because their route had enough to do or did
	// not answer.
	Ahead, HeldBack uint64
	// Implied is how many names were denied because of another's denial.
	Implied uint64
}

// RouteStats is the state of one route.
type RouteStats struct {
	Zone     string // the first of the route
	InFlight int64
	Max      int
	Shed     uint64 // not asked because Max were in flight
}

// read adds the cell's counters to sum.
func (c *cell) read(sum *Counts) {
	for p := range c.requests {
		for f := range c.requests[p] {
			addAll(sum.Requests[p][f][:], c.requests[p][f][:])
		}
		c.requestSize[p].read(&sum.RequestSize[p])
		c.responseSize[p].read(&sum.ResponseSize[p])
	}
	for s := range c.responses {
		addAll(sum.Responses[s][:], c.responses[s][:])
	}
	addAll(sum.Duration.Buckets[:], c.duration.buckets[:])
	sum.Duration.Sum += c.duration.sum.Load()
	sum.DO += c.do.Load()
	sum.Made += c.made.Load()
}

func (h *sizes) read(sum *Histogram[[SizeBuckets]uint64]) {
	addAll(sum.Buckets[:], h.buckets[:])
	sum.Sum += h.sum.Load()
}

func addAll(sum []uint64, counters []atomic.Uint64) {
	for i := range counters {
		sum[i] += counters[i].Load()
	}
}

// read adds up the stripes.
func (c *counters) read(t *table) []ZoneCounts {
	out := make([]ZoneCounts, c.shape.listeners*c.zones)
	for i := range out {
		out[i].Listener, out[i].Zone = i/c.zones, t.zones[i%c.zones].name
		for s := range c.stripes {
			c.stripes[s].cells[i].read(&out[i].Counts)
		}
	}
	return out
}

// Stats adds up what was counted.
func (f *Forwarder) Stats() Stats {
	c := f.counters
	s := Stats{
		Since:   c.since,
		Zones:   c.read(f.table),
		Matches: f.matches.read(),
		Shared:  c.shared.Load(),
		Surplus: c.surplus.Load(),
		Dropped: c.dropped.Load(),
		Unkept:  c.unkept.Load(),

		Renewed: c.renewed.Load(), Prefetched: c.prefetched.Load(), Unfetched: c.unfetched.Load(),
		Ahead: c.ahead.Load(), HeldBack: c.heldBack.Load(), Implied: c.implied.Load(),
		Denied: c.turned[access.Denied].Load(), Limited: c.turned[access.Limited].Load(),
	}
	if f.gate != nil {
		s.Access = f.gate.Stats(f.now())
	}
	for _, r := range f.table.routes {
		s.Routes = append(s.Routes, RouteStats{
			Zone: r.Zones[0], InFlight: r.inFlight.Load(), Max: r.MaxInFlight, Shed: r.shed.Load(),
		})
	}
	return s
}
