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
	// FailureTTL is how long it is remembered that no server answered, 1 s to
	// 5 min (RFC 9520 section 3.2).
	FailureTTL time.Duration
	// ServFailTTL is the same for servers that answered with an error.
	ServFailTTL time.Duration
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
)

// judge classifies a reply and gives the time it may be kept in seconds, 0 for
// not at all. It reads the records' own TTLs, before any clamp.
func (p *Policy) judge(r *wire.Reply) (Kind, uint32) {
	kind := classify(r)
	switch {
	case kind == Lame, kind == Failure:
		return kind, 0
	case r.TC, r.Class != wire.ClassIN: // RFC 1035 section 7.4: TC is never kept
		return kind, 0
	}
	life, soa := p.lifetime(r)
	if kind != Positive && !soa {
		return kind, 0 // RFC 2308 section 5: negative without SOA is not kept
	}
	if r.Type == wire.TypeANY {
		life = min(life, maxANY)
	}
	return kind, life
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

// classify tells what a reply says about its question.
func classify(r *wire.Reply) Kind {
	switch {
	case r.TC:
		return Positive // incomplete, but an answer
	case r.RCode == wire.NXDomain:
		return NXDomain
	case r.RCode != wire.NoError:
		return Failure
	case r.Count(wire.Answer)+r.Count(wire.Authority) > maxRecords:
		return Positive
	case answers(r):
		return Positive
	case has(r, wire.Authority, wire.TypeSOA):
		return NoData
	case r.Count(wire.Answer) == 0 && has(r, wire.Authority, wire.TypeNS):
		return Lame
	}
	return NoData
}

// answers follows the chain of CNAME records from the question's name and
// reports whether it ends at a record of the type asked for.
func answers(r *wire.Reply) bool {
	name := r.Name()
	for range maxChain {
		found, next := step(r, name)
		if found || next == 0 {
			return found
		}
		name = next
	}
	return false
}

// step looks at the answers about one name: is one of the type asked for, and
// if not, to which name (its offset, 0 for none) does a CNAME lead?
func step(r *wire.Reply, name int) (found bool, next int) {
	var rr wire.Record
	for c := r.Records(); c.Next(&rr) && rr.Section == wire.Answer; {
		switch {
		case !wire.EqualNames(r.Msg, rr.Owner, name):
		case rr.Type == r.Type, r.Type == wire.TypeANY:
			return true, 0
		case rr.Type == wire.TypeCNAME:
			next = rr.Data
		}
	}
	return false, next
}

func has(r *wire.Reply, s wire.Section, t wire.Type) bool {
	var rr wire.Record
	for c := r.Records(); c.Next(&rr); {
		if rr.Section == s && rr.Type == t {
			return true
		}
	}
	return false
}

func seconds(d time.Duration) uint32 { return uint32(max(0, min(d/time.Second, 1<<31-1))) }
