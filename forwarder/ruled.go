package forwarder

import (
	"cmp"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

// answerByRule answers a question that the rules of its route answer. They come
// before the cache: what it holds may be older than the rule.
func (f *Forwarder) answerByRule(dst []byte, q *question) (reply []byte, ok bool) {
	z := f.table.find(q.folded(), q.Type)
	if z.route == nil || z.route.Rules == nil || refused(&q.Query) {
		return nil, false
	}
	var turn uint16
	if f.rotate {
		turn = q.ID
	}
	reply, by, ok := z.route.Rules.Local(dst, &q.Query, q.folded(), z.size, turn)
	if !ok {
		return nil, false
	}
	if by.Fixed {
		f.matches.add(int(q.from.Listener)%f.counters.shape.listeners, cmp.Or(by.Zone, z.name), q.Type)
	}
	rcode := wire.HeaderRCode(reply)
	reply = f.fit(reply, q, wire.NoEDE)
	f.countRCode(q, z.index, answer{source: FromLocal}, rcode, len(reply))
	return reply, true
}
