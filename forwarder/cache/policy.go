package cache

import (
	"time"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

// Kind is what an answer says.
type Kind uint8

// Kinds of entries.
const (
	// Positive holds the records asked for.
	Positive Kind = iota
	// NoData says that the name has no record of the type (RFC 2308 section 2.2).
	NoData
	// NXDomain says that the name does not exist (RFC 2308 section 2.1).
	NXDomain
	// Failure says that no server gave an answer (RFC 9520).
	Failure
	// Lame is a referral or an empty answer of a server that does not know: an
	// answer to nothing (RFC 2308 section 2.2).
	Lame
)

// Policy says what of a route's replies is kept and for how long. All times
// are counted in whole seconds.
type Policy struct {
	// MaxTTL caps the time to live of every record. More than 0.
	MaxTTL time.Duration
	// MinTTL raises the time to live of positive answers. Default 0; never
	// applied to failures, which it would pin.
	MinTTL time.Duration
	// MaxNegativeTTL caps what an SOA record allows for "no such name" and "no
	// such type" (RFC 2308 section 5).
	MaxNegativeTTL time.Duration
	// PreferPositive is how long after its end a positive answer still stands
	// before a negative one, at most MaxStale. Default 0: it does not.
	PreferPositive time.Duration
	// ShareNXDomain lets "no such name" to one question type answer all types
	// (RFC 2308 section 5). Default false: some servers say it of types alone.
	ShareNXDomain bool

	// FailureTTL is how long it is remembered that no server answered, 1 s to
	// 5 min (RFC 9520 section 3.2).
	FailureTTL time.Duration
	// ServFailTTL is the same for servers that answered with an error.
	ServFailTTL time.Duration
	// MaxServFailTTL is what ServFailTTL grows to, twofold each time, for a
	// question that goes on failing. At most 5 min. Default 0: it does not grow.
	MaxServFailTTL time.Duration

	// StaleWait is how long a client waits for a new answer before the ended
	// one stands in; the asking goes on (the client response timer of RFC 8767
	// section 5). Default 1 s. Negative: not at all, if StaleOnError is set.
	StaleWait time.Duration
	// Recheck is how long a stale answer is given without asking again after
	// asking has failed.
	Recheck time.Duration
	// MaxStale is how long after its end an entry may still stand in for an
	// answer that cannot be had (RFC 8767). 0: never.
	MaxStale time.Duration
	// StaleOnError lets it stand in also for the error of a server; otherwise
	// only while no server answers at all.
	StaleOnError bool
	// StaleTTL is the time to live shown with a stale answer, at most the
	// record's own (RFC 8767 section 4 recommends 30 s).
	StaleTTL time.Duration

	// Prefetch is how many hits an answer needs for being asked for again in
	// the last tenth of its life. Default 0: never.
	Prefetch uint32
	// KeepAA shows the AA bit of the server. Default false: a forwarder is no
	// authority.
	KeepAA bool
	// Minimal leaves out the authority and additional records of positive
	// answers, but for types whose clients use them. Default false.
	Minimal bool
}

const (
	// maxANY caps answers to ANY, which are a random pick of the server's
	// records (RFC 8482).
	maxANY = 10
	// maxRecords bounds the work of judging a reply; one with more records is
	// passed on but not kept.
	maxRecords = 1024
	// maxChain is how many CNAME records are followed.
	maxChain = 32
	// defaultStaleWait fits several names into the 5 s that clients wait.
	defaultStaleWait = time.Second
	// minPrefetch is the shortest life that is renewed before its end.
	minPrefetch = 5 * time.Second
)

// Wait is StaleWait, 0 for not at all.
func (p *Policy) Wait() time.Duration {
	if p.StaleWait == 0 || p.StaleWait < 0 && !p.StaleOnError {
		return defaultStaleWait
	}
	return max(p.StaleWait, 0)
}

// MayStandIn reports whether an ended answer may be given in place of a failure
// for this reason, or, without one, of an answer it was preferred to.
func (p *Policy) MayStandIn(why wire.EDE) bool {
	return p.StaleOnError || why == wire.EDENoReachable || why == wire.NoEDE
}

// Prefers reports whether old stands at now before a new answer that is e.
func (p *Policy) Prefers(old, e *Entry, now time.Duration) bool {
	switch e.kind {
	case NoData, NXDomain:
		bound := min(p.PreferPositive, p.MaxStale)
		return bound > 0 && old.kind == Positive && now < old.until+bound
	case Failure:
		return old.kind != Failure && now < old.until+p.MaxStale
	}
	return false
}

// FailureLife is how long a failure is remembered whose reason is why. old is
// what was there before it, if anything. Only errors of servers last longer and
// longer: they tell of the name, while silence tells of the servers, which may
// be back at any moment.
func (p *Policy) FailureLife(old *Entry, why wire.EDE, now time.Duration) time.Duration {
	if why == wire.EDENoReachable {
		return p.FailureTTL
	}
	life := p.ServFailTTL
	if old != nil && old.kind == Failure && now < old.until+p.MaxServFailTTL {
		life = max(life, min(2*(old.until-old.stored), p.MaxServFailTTL))
	}
	return life
}

// due is when an answer that ends after life may be asked for again: at its end,
// or before if it may be prefetched.
func (p *Policy) due(r *wire.Reply, now, life time.Duration) time.Duration {
	if p.Prefetch == 0 || life < minPrefetch || r.Type == wire.TypeANY {
		return now + life
	}
	return now + life - max(life/10, time.Second)
}

// extras reports whether clients use the additional records of answers of a
// type: they spare a question for each name in the data.
func extras(t wire.Type) bool {
	const naptr, svcb, https = 35, 64, 65
	switch t {
	case wire.TypeSRV, wire.TypeMX, wire.TypeNS, wire.TypeANY, naptr, svcb, https:
		return true
	}
	return false
}

// judge classifies a reply and gives the time it may be kept in seconds, 0 for
// not at all. settled is false for what says nothing for certain: a reply that
// is cut short, and a denial without the SOA record that tells it from a server
// that does not know. It reads the records' own TTLs, before any clamp.
func (p *Policy) judge(r *wire.Reply) (kind Kind, life uint32, settled bool) {
	kind = classify(r)
	switch {
	case kind == Lame, kind == Failure:
		return kind, 0, false
	case r.TC, r.Class != wire.ClassIN: // RFC 1035 section 7.4: TC is never kept
		return kind, 0, false
	}
	life, soa := p.lifetime(r)
	if kind != Positive && !soa {
		return kind, 0, false // RFC 2308 section 5: negative without SOA is not kept
	}
	if r.Type == wire.TypeANY {
		life = min(life, maxANY)
	}
	return kind, life, true
}

// lifetime is the least TTL of all records, clamped, where an SOA record of a
// negative answer counts with the least of TTL, MINIMUM and the cap (RFC 2308
// section 5). soa tells whether there was one.
func (p *Policy) lifetime(r *wire.Reply) (life uint32, soa bool) {
	life = seconds(p.MaxTTL)
	var rr wire.Record
	for c := r.Records(); c.Next(&rr); {
		if rr.Type == wire.TypeOPT {
			continue
		}
		ttl := p.clamp(r, rr)
		if rr.Type == wire.TypeSOA && rr.Section == wire.Authority {
			soa = true
		}
		life = min(life, ttl)
	}
	return life, soa
}

// clamp gives a record the TTL it is kept and shown with. A TTL with the top
// bit set counts as 0 (RFC 2181 section 8).
func (p *Policy) clamp(r *wire.Reply, rr wire.Record) uint32 {
	ttl := rr.TTL
	if ttl > 1<<31-1 {
		ttl = 0
	}
	if rr.Type == wire.TypeSOA && rr.Section == wire.Authority {
		return min(ttl, wire.SOAMinimum(r.Msg, rr), seconds(p.MaxNegativeTTL))
	}
	return min(max(ttl, seconds(p.MinTTL)), seconds(p.MaxTTL))
}

func seconds(d time.Duration) uint32 { return uint32(max(0, min(d/time.Second, 1<<31-1))) }
