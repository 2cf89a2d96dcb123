package cache

import "github.com/nodens-dns/nodens/forwarder/wire"

// classify tells what a reply says about its question.
func classify(r *wire.Reply) Kind {
	switch {
	case r.TC:
		return Positive // incomplete, but an answer
	case r.RCode == wire.NXDomain:
		return NXDomain
	case r.RCode == wire.YXDomain:
		return NoData // a DNAME leads to a name that is too long (RFC 6672 section 2.2)
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
