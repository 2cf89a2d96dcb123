package forwarder

import "github.com/nodens-dns/nodens/forwarder/wire"

// localKind is how a zone is answered without asking anybody.
type localKind uint8

const (
	localNone     localKind = iota // not locally
	localLoopback                  // localhost: loopback addresses (RFC 6761 section 6.3)
	localNXDomain                  // names that must not be asked for
	localNoData                    // names that exist and hold nothing
)

// String says what is answered, "" for nothing.
func (k localKind) String() string {
	switch k {
	case localLoopback:
		return "loopback addresses"
	case localNXDomain:
		return "there is no such name"
	case localNoData:
		return "the name has no records"
	}
	return ""
}

type localZone struct {
	name string
	kind localKind
}

// localZones are the names that never leave the node: localhost (RFC 6761
// section 6.3), invalid (RFC 6761 section 6.4), onion (RFC 7686 section 2), and
// resolver.arpa, by which a client asks this very resolver for its encrypted
// addresses, of which there are none (RFC 9462). A route for one of them
// replaces it.
func localZones() []localZone {
	return []localZone{
		{"localhost.", localLoopback},
		{"invalid.", localNXDomain},
		{"onion.", localNXDomain},
		{"resolver.arpa.", localNoData},
	}
}

// denied are zones without names.
func denied(names []string) []localZone {
	zones := make([]localZone, len(names))
	for i, name := range names {
		zones[i] = localZone{name, localNXDomain}
	}
	return zones
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
		dst = wire.AppendAnswer(dst, start, q, localTTL, []byte{127, 0, 0, 1})
	case z.local == localLoopback && q.Type == wire.TypeAAAA:
		dst = wire.AppendAnswer(dst, start, q, localTTL, []byte{15: 1})
	default:
		dst = wire.AppendSOA(dst, start, q, z.size, localTTL)
	}
	return wire.AppendOPT(dst, start, q, udpSize, wire.NoEDE)
}

// answerLocally answers a question that nobody is asked for: by its zone, or
// with an error for its type or class.
func (f *Forwarder) answerLocally(dst []byte, q *question, z *zone) []byte {
	if reply, ok := f.answerWitness(dst, q); ok {
		return reply
	}
	if reply, ok := f.answerChaos(dst, q); ok {
		f.countRCode(q, f.table.none.index, answer{source: FromLocal}, wire.NoError, len(reply))
		return reply
	}
	rcode, ede := refusal(&q.Query)
	if rcode == wire.NoError && z.local == localNone {
		rcode, ede = wire.ServFail, wire.EDENoRoute
	}
	if rcode != wire.NoError {
		return f.refuse(dst, q, rcode, ede)
	}
	reply := appendLocal(dst[:0], &q.Query, z, f.udpSize)
	f.countRCode(q, z.index, answer{source: FromLocal}, wire.HeaderRCode(reply), len(reply))
	return reply
}

// refuse answers with an error of our own making.
func (f *Forwarder) refuse(dst []byte, q *question, rcode wire.RCode, ede wire.EDE) []byte {
	reply := wire.AppendError(dst[:0], &q.Query, rcode, f.udpSize, ede)
	f.countError(q, rcode, len(reply))
	return reply
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
