package forwarder

import (
	"context"
	"time"

	"github.com/nodens-dns/nodens/forwarder/cache"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// share asks the servers, or waits for the flight that already asks the same.
// Without RD a server may answer less, so such a question flies alone. ok is
// false for one follower too many.
func (f *Forwarder) share(ctx context.Context, dst []byte, q *question, z *zone, now time.Duration) (e *cache.Entry, ok bool) {
	if !q.RD() {
		return f.fetch(ctx, dst, q, z), true
	}
	for again := false; ; again = true {
		fl, role := f.flights.join(q.hash, q.key(), now)
		switch {
		case role == leader:
			fl.by, fl.second = q.from.Client, again
			e = f.lead(ctx, dst, q, z, true)
			fl.land(q.hash, e)
			return e, true
		case role == surplus || !f.follow(fl, z.route):
			return nil, false
		}
		ended := f.now()
		if again || fl.entry.Kind() != cache.Failure || !fl.joinedLate(q.from.Client, now, ended) {
			return fl.entry, true
		}
		now = ended
	}
}

// follow waits for a flight, whose leader's budget bounds the wait; false when as
// many of the route wait as may.
func (f *Forwarder) follow(fl *flight, r *route) bool {
	defer r.waiting.Add(-1)
	if r.waiting.Add(1) > r.mayWait() {
		return false
	}
	f.counters.shared.Add(1)
	<-fl.ended()
	return true
}

// fetch asks the route's servers and keeps what they say. Without an answer it
// returns a Failure.
func (f *Forwarder) fetch(ctx context.Context, dst []byte, q *question, z *zone) *cache.Entry {
	r := z.route
	defer r.inFlight.Add(-1)
	if r.inFlight.Add(1) > r.mayFly() {
		return f.shed(q.key(), z)
	}
	asked := q.Query // a copy, since what a Group is given is on the heap
	reply, err := r.Group.Exchange(ctx, dst, &asked)
	r.heard(err == nil)
	if err == nil && !reply.Simple() {
		via, made := reply.Via, reply.Made
		reply, err = rebuild(&reply)
		reply.Via, reply.Made = via, made
	}
	now := f.now()
	if err != nil {
		return f.fail(q, z, wire.EDENoReachable, wire.NoEDE, now)
	}
	e, kind, keep := cache.NewEntry(q.key(), &reply, &r.Policy, z.index, now)
	if kind == cache.Failure || kind == cache.Lame {
		return f.fail(q, z, wire.EDENetworkError, reply.EDE(), now)
	}
	f.table.learn(q.folded(), kind)
	if !keep || !q.RD() {
		f.counters.unkept.Add(1)
	}
	if q.RD() {
		f.keep(q.hash, q.key(), e, z, keep, now)
	}
	return e
}

// keep puts an answer in the place of what was known before. One that may not
// be kept leaves the place empty.
func (f *Forwarder) keep(hash uint64, key []byte, e *cache.Entry, z *zone, keep bool, now time.Duration) {
	p := &z.route.Policy
	switch {
	case keep && f.preferred(hash, key, e, p, now):
		return
	case keep:
		f.cache.Put(hash, e, p, now)
		f.spread(e, z, now)
	case e.Settles():
		f.cache.Drop(hash, key)
	}
}

// preferred reports whether what was known before stands before e, and lets it
// rest if so.
func (f *Forwarder) preferred(hash uint64, key []byte, e *cache.Entry, p *cache.Policy, now time.Duration) bool {
	if p.PreferPositive == 0 || e.Kind() == cache.Positive {
		return false
	}
	old := f.cache.Get(hash, key)
	if old == nil || !p.Prefers(old, e, now) {
		return false
	}
	old.Postpone(now+p.Recheck, wire.NoEDE)
	return true
}

// fail remembers that no answer was to be had (RFC 9520 section 3.2): in place
// of nothing, or with the answer that stands in.
func (f *Forwarder) fail(q *question, z *zone, why, said wire.EDE, now time.Duration) *cache.Entry {
	p := &z.route.Policy
	old := f.cache.Get(q.hash, q.key())
	life := p.FailureLife(old, why, now)
	e := cache.NewFailure(q.key(), why, said, life, z.index, now)
	if !q.RD() {
		return e
	}
	if old != nil && old.Kind() != cache.Failure {
		if p.MayStandIn(why) {
			life = p.Recheck
		}
		old.Postpone(now+life, why)
	}
	f.cache.Put(q.hash, e, p, now)
	return e
}

// turnedAway is the failure of a question whose route has as much in flight as it
// may, unless the same is being asked. It is told where the query was read: a
// goroutine and buffers of its own for each of a crowd would have the collector of
// garbage take the time of all others.
func (f *Forwarder) turnedAway(q *question, z *zone) (a answer, ok bool) {
	if !z.route.busy(1) || f.flights.has(q.hash, q.key()) {
		return a, false
	}
	return answered(f.shed(q.key(), z)), true
}

// shed is the failure of a question that is not asked because too many are.
func (f *Forwarder) shed(key []byte, z *zone) *cache.Entry {
	z.route.shed.Add(1)
	return f.failure(key, z, wire.EDENoReachable)
}

// failure is one that is not remembered.
func (f *Forwarder) failure(key []byte, z *zone, why wire.EDE) *cache.Entry {
	return cache.NewFailure(key, why, wire.NoEDE, 0, z.index, f.now())
}
