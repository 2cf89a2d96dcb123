package forwarder

import (
	"time"

	"github.com/nodens-dns/nodens/forwarder/cache"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// write makes the reply to q from its answer in dst's memory. p is needed for
// stale answers only.
func (f *Forwarder) write(dst []byte, q *question, a answer, p *cache.Policy, now time.Duration) []byte {
	dst = dst[:0]
	switch {
	case a.entry.Kind() == cache.Failure:
		ede := a.entry.EDE()
		if a.source == FromCache {
			ede = wire.EDECachedError
		}
		return wire.AppendError(dst, &q.Query, a.entry.RCode(), f.udpSize, ede)
	case a.implied:
		return f.fit(a.entry.AppendDenial(dst, &q.Query, now), q, wire.NoEDE)
	case a.source == FromStale:
		ede := wire.EDEStale
		if a.entry.Kind() == cache.NXDomain {
			ede = wire.EDEStaleNXDomain
		}
		return f.fit(a.entry.AppendStale(dst, &q.Query, p, f.rotate), q, ede)
	}
	ede := wire.NoEDE
	if a.source == FromServers {
		ede = a.entry.EDE()
	}
	return f.fit(a.entry.Append(dst, &q.Query, now, f.rotate), q, ede)
}

// fit cuts a reply to what the client takes and adds the OPT, for which room
// is kept. An extended error is left out before any record is. Over TCP a reply
// is cut only at the format's own limit (RFC 7766 section 8).
func (f *Forwarder) fit(reply []byte, q *question, ede wire.EDE) []byte {
	limit := wire.MaxMessage
	if q.from.Proto == UDP {
		limit = int(min(q.UDPSize, f.udpSize))
	}
	if q.EDNS {
		limit -= wire.OPTLen
	}
	if len(reply)+wire.EDELen > limit {
		ede = wire.NoEDE
	}
	reply = wire.Fit(reply, limit, q.DO)
	return wire.AppendOPT(reply, 0, &q.Query, f.udpSize, ede)
}

// reject answers what is no sound query, or does not.
func (f *Forwarder) reject(dst []byte, q *question, fault wire.Fault) ([]byte, Verdict) {
	var rcode wire.RCode
	switch fault {
	case wire.Malformed:
		rcode = wire.FormErr
	case wire.UnknownOpcode:
		rcode = wire.NotImp
	case wire.UnknownVersion:
		rcode = wire.BadVers
	default:
		f.counters.dropped.Add(1)
		return nil, Close
	}
	return f.refuse(dst, q, rcode, wire.NoEDE), Answered
}
