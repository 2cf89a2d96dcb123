package upstream

import "github.com/nodens-dns/nodens/forwarder/wire"

// verdict is what a reply asks for.
type verdict uint8

const (
	take     verdict = iota // it is the answer
	askPlain                // ask again without EDNS
	askTCP                  // ask again over TCP
	askOther                // ask another target; it is the answer if all say so
)

// judge looks at a reply to a question that was put with or without EDNS, over
// UDP or TCP.
func judge(r *wire.Reply, plain, byTCP bool) verdict {
	switch {
	case rejectsEDNS(r.RCode) && !plain:
		return askPlain
	case rejectsEDNS(r.RCode), r.RCode == wire.ServFail, r.RCode == wire.Refused:
		return askOther
	case r.TC && !byTCP:
		return askTCP
	case !r.TC && isHalf(r):
		return askOther
	}
	return take
}

// isHalf reports whether a reply points somewhere and says neither what is there
// nor, by an SOA record, that nothing is: a referral, or aliases without the
// record asked for (RFC 2308 section 2.2). A server that does not know is fast;
// the next may know.
func isHalf(r *wire.Reply) (half bool) {
	var rr wire.Record
	for c := r.Records(); r.RCode == wire.NoError && c.Next(&rr) && rr.Section != wire.Additional; {
		switch {
		case rr.Section == wire.Answer && (rr.Type == r.Type || r.Type == wire.TypeANY), rr.Type == wire.TypeSOA:
			return false
		case rr.Section == wire.Answer, rr.Type == wire.TypeNS:
			half = true
		}
	}
	return half
}

// rejectsEDNS reports whether a server that does not know EDNS may say so with
// this code (RFC 6891 section 7).
func rejectsEDNS(code wire.RCode) bool {
	return code == wire.FormErr || code == wire.NotImp || code == wire.BadVers
}
