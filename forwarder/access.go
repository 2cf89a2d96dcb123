package forwarder

import (
	"github.com/nodens-dns/nodens/forwarder/access"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// turnAway is what a client gets who may not ask, or not now. The witness tells
// even him: whoever watches over this process must not take it for dead because
// somebody on its address asks too much.
func (f *Forwarder) turnAway(dst, query []byte, from Peer, why access.Ruling) ([]byte, Verdict) {
	q := question{from: from}
	if fault := f.read(&q, query); fault != wire.Sound {
		f.counters.turned[why].Add(1)
		return nil, Close
	}
	if reply, ok := f.answerWitness(dst, &q); ok {
		return reply, Answered
	}
	return f.sendAway(dst, &q, why)
}

// sendAway is turnAway for a query that was read. Over UDP a client that asks
// too much gets nothing: one that is refused asks again at once, and the address
// may be somebody else's. Over TCP it is told, rather than left to wait.
func (f *Forwarder) sendAway(dst []byte, q *question, why access.Ruling) ([]byte, Verdict) {
	f.counters.turned[why].Add(1)
	q.ruling = why
	switch {
	case why == access.Denied && !f.silent:
		return f.refuse(dst, q, wire.Refused, wire.EDEProhibited), Answered
	case why == access.Limited && q.from.Proto == TCP:
		return f.refuse(dst, q, wire.ServFail, wire.EDEProhibited), Answered
	}
	f.watch(q, f.table.none.index, answer{source: FromLocal}, NoReply)
	if why == access.Denied {
		return nil, Close
	}
	return nil, Drop
}
