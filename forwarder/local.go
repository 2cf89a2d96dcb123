package forwarder

import "github.com/nodens-dns/nodens/forwarder/wire"

// localKind is how a zone is answered without asking anybody.
type localKind uint8

const (
	localNone     localKind = iota // not locally
	localLoopback                  // localhost: loopback addresses (RFC 6761 section 6.3)
	localNXDomain                  // names that must not be asked for
)

type localZone struct {
	name string
	kind localKind
}

// localZones are the names that never leave the node: localhost (RFC 6761
// section 6.3), invalid (RFC 6761 section 6.4) and onion (RFC 7686 section 2).
// A route for one of them replaces it.
func localZones() []localZone {
	return []localZone{
		{"localhost.", localLoopback},
		{"invalid.", localNXDomain},
		{"onion.", localNXDomain},
	}
}

// localTTL is the TTL of local answers in seconds.
const localTTL = 3600

// appendLocal appends the answer to a question about a local zone, which we
// are the authority for.
func appendLocal(dst []byte, q *wire.Query, z *zone, udpSize uint16) []byte {
	start, rcode := len(dst), wire.NoError
	if z.local == localNXDomain {
		rcode = wire.NXDomain
	}
	dst = wire.AppendAnswerHead(dst, q, rcode)
	switch {
	case z.local == localLoopback && q.Type == wire.TypeA:
		dst = wire.AppendAnswer(dst, start, q.Type, localTTL, []byte{127, 0, 0, 1})
	case z.local == localLoopback && q.Type == wire.TypeAAAA:
		dst = wire.AppendAnswer(dst, start, q.Type, localTTL, []byte{15: 1})
	default:
		dst = wire.AppendSOA(dst, start, q, z.size, localTTL)
	}
	return wire.AppendOPT(dst, start, q, udpSize, wire.NoEDE)
}

// refused reports whether refusal gives an error.
func refused(q *wire.Query) bool {
	rcode, _ := refusal(q)
	return rcode != wire.NoError
}

// refusal gives the error for questions that are not answered, by their type or
// class alone, whoever asks and whatever the name; NoError for all others.
func refusal(q *wire.Query) (wire.RCode, wire.EDE) {
	switch {
	case q.Class != wire.ClassIN:
		return wire.Refused, wire.EDENotSupported
	case q.Type == 0, q.Type == wire.TypeOPT, q.Type == wire.TypeTKEY, q.Type == wire.TypeTSIG:
		return wire.FormErr, wire.NoEDE // no questions (RFC 6895 section 3.1)
	case q.Type == wire.TypeAXFR, q.Type == wire.TypeIXFR:
		return wire.Refused, wire.EDEProhibited
	case q.Type == wire.TypeMAILA, q.Type == wire.TypeMAILB:
		return wire.NotImp, wire.EDENotSupported
	}
	return wire.NoError, wire.NoEDE
}
