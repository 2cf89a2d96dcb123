package forwarder

import (
	"context"

	"github.com/nodens-dns/nodens/forwarder/cache"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// lead asks for a flight's question. If its name looks made with a search list,
// the client's next names are asked for at the same time, when ahead is set.
func (f *Forwarder) lead(ctx context.Context, dst []byte, q *question, z *zone, ahead bool) *cache.Entry {
	s := z.route.search
	if s == nil || q.Type != wire.TypeA && q.Type != wire.TypeAAAA {
		return f.fetch(ctx, dst, q, z)
	}
	c, ok := s.read(q.folded())
	if !ok {
		return f.fetch(ctx, dst, q, z)
	}
	if e := f.awaitAbove(q, s, z); e != nil {
		return e
	}
	c.ahead = ahead && s.Prefetch
	if z.route.Policy.ShareNXDomain {
		return f.leadName(ctx, dst, q, z, &c)
	}
	f.askAhead(q, s, &c)
	return f.fetch(ctx, dst, q, z)
}

// leadName asks for a question unless its name is being asked for with another
// type: it then waits for what comes of that, since denials are shared by all.
func (f *Forwarder) leadName(ctx context.Context, dst []byte, q *question, z *zone, c *candidate) *cache.Entry {
	var buf [wire.MaxKey]byte
	key := wire.AppendKeyOfType(buf[:0], q.key(), 0)
	hash := f.cache.Hash(key)
	fl, role := f.names.join(hash, key, f.now())
	switch role {
	case leader:
		e := f.denial(key, f.now()) // it may have landed since memory was looked at
		if e == nil {
			f.askAhead(q, z.route.search, c)
			e = f.fetch(ctx, dst, q, z)
		}
		fl.land(hash, e)
		return e
	case follower:
		f.askOutside(q, z.route.search, c)
		if f.follow(fl, z.route) && fl.entry.Denies() {
			return fl.entry
		}
	}
	return f.fetch(ctx, dst, q, z)
}

// awaitAbove waits for the name above q's that is being asked for in its place, and
// gives the denial that follows from it, if it does.
func (f *Forwarder) awaitAbove(q *question, s *search, z *zone) *cache.Entry {
	p, _ := s.locate(q.folded())
	top := s.top(q.folded(), &p)
	if !s.Cut || !s.Prefetch || top == 0 {
		return nil
	}
	var buf [wire.MaxKey]byte
	for _, t := range []wire.Type{wire.TypeA, wire.TypeAAAA} {
		key := wire.AppendKeyOfType(buf[:0], q.key()[top:], t)
		if fl := f.flights.under(f.cache.Hash(key), key); fl != nil {
			f.follow(fl, z.route)
		}
	}
	now := f.now()
	if e := f.above(q.key(), len(q.Name()), z, s, now); e != nil {
		f.counters.implied.Add(1)
		return e.Below(&q.Query, q.key(), &z.route.Policy, now)
	}
	return nil
}

// askAhead asks for the names that the client will ask for when this one does not
// exist. Where a denial holds for all names below, the shortest name that tells is
// asked for: it serves others too. Not for what may be a Service and its namespace,
// which is likely to be there.
func (f *Forwarder) askAhead(q *question, s *search, c *candidate) {
	if !c.ahead {
		return
	}
	s.labels.add(isEnd, c.last)
	namespace := s.labels.has(isNamespace, c.last)
	short := c.head
	if s.Cut && !namespace && (c.count > 2 || s.labels.has(isOutside, c.last)) {
		short = c.head[len(c.head)-1-len(c.last):]
	}
	if c.level == inNamespace {
		f.askFor(q, short, s.services())
	}
	if namespace {
		return // it will be found there
	}
	switch inSvc := string(c.last) == "svc"; {
	case c.level == inDomain, s.Strict && !inSvc: // known without asking
	case inSvc:
		f.askFor(q, c.head, s.domain)
	default:
		f.askFor(q, short, s.domain)
	}
	f.askOutside(q, s, c)
}

// askOutside asks for the name as it is. One of two labels may be a Service and
// its namespace, which nobody outside is to be told of.
func (f *Forwarder) askOutside(q *question, s *search, c *candidate) {
	switch {
	case !c.ahead, string(c.last) == "svc", s.labels.has(isNamespace, c.last):
	case c.count > 2, s.labels.has(isOutside, c.last):
		f.askFor(q, c.head, []byte{0})
	}
}

// services is the name that all Services lie below.
func (s *search) services() []byte { return append([]byte("\x03svc"), s.domain...) }

// askFor has the name of head and end asked for in the background, with the type
// and flags of q, unless that is known or asked already, or its route has enough
// to do or does not answer. It takes a free half of the route at most.
func (f *Forwarder) askFor(q *question, head, end []byte) {
	n := len(head) + len(end)
	if n > wire.MaxName {
		return
	}
	var buf [wire.MaxKey]byte
	key := append(append(append(buf[:0], head...), end...), q.key()[len(q.Name()):]...)
	z := f.table.find(key[:n], q.Type)
	if z.route == nil || z.route.Rules != nil && z.route.Rules.Knows(key[:n], q.Type) {
		return
	}
	hash, now := f.cache.Hash(key), f.now()
	if e := f.cache.Get(hash, key); e != nil && e.Live(now) {
		return
	}
	if _, known := f.denied(key, n, z, now); known {
		return
	}
	if z.route.busy(2) || z.route.unanswered.Load() > 0 {
		f.counters.heldBack.Add(1)
		return
	}
	fl := f.flights.lead(hash, key, now)
	if fl == nil {
		return
	}
	if !f.background.start(func() { f.fly(fl, hash, z) }) {
		fl.land(hash, f.failure(fl.key, z, wire.EDENoReachable))
		return
	}
	f.counters.ahead.Add(1)
}
