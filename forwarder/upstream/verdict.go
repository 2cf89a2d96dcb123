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
	}
	return take
}

// rejectsEDNS reports whether a server that does not know EDNS may say so with
// this code (RFC 6891 section 7).
func rejectsEDNS(code wire.RCode) bool {
	return code == wire.FormErr || code == wire.NotImp || code == wire.BadVers
}
