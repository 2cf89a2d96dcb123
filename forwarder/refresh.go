package forwarder

import (
	"context"
	"time"

	"github.com/nodens-dns/nodens/forwarder/cache"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// secondBest is what memory has when it has no answer with time left: e near its
// end, which is then asked for again; or that the name does not exist, as another
// question has brought to light; or e after its end, while nobody is to be asked;
// or a failure, when too many are being asked. e may be nil.
func (f *Forwarder) secondBest(q *question, e *cache.Entry, z *zone) (a answer, ok bool) {
	now, p := q.from.Received, &z.route.Policy
	if e != nil && e.Live(now) {
		f.prefetch(q, e, z, now)
		return answer{entry: e, source: FromCache}, true
	}
	if a, ok := f.denied(q.key(), len(q.Name()), z, now); ok {
		return a, true
	}
	if e == nil || !e.Standby(p, now) {
		return f.turnedAway(q, z)
	}
	why, resting := e.Resting(now)
	return answer{entry: e, source: FromStale}, resting && p.MayStandIn(why)
}

// renew answers a question whose answer has ended: anew if that can be had in
// the time a client should wait, else with the ended one (RFC 8767 section 5).
// For a while after a failure nobody is asked, and while no server answers
// anything nobody waits: the places of those who do would soon be taken.
func (f *Forwarder) renew(q *question, z *zone, old *cache.Entry, now time.Duration) answer {
	p := &z.route.Policy
	why, resting := old.Resting(now)
	if !resting {
		fl := f.refresh(q, z, now)
		wait := p.Wait()
		if z.route.dark() {
			wait = 0
		}
		e := await(fl, wait)
		switch {
		case e == nil, e.Kind() != cache.Failure && p.Prefers(old, e, now):
			return answer{entry: old, source: FromStale}
		case e.Kind() != cache.Failure:
			return answer{entry: e, source: FromServers}
		}
		why = e.Why()
	}
	if p.MayStandIn(why) {
		return answer{entry: old, source: FromStale}
	}
	return answer{entry: f.failure(q.key(), z, why), source: FromFailure}
}

// await is what comes of a flight within a time; nil when nothing has come yet.
func await(fl *flight, wait time.Duration) *cache.Entry {
	if fl == nil || wait == 0 {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-fl.ended():
		return fl.entry
	case <-timer.C:
		return nil
	}
}

// refresh has a question asked in the background, unless it is being asked
// already. It returns the flight, nil for one follower too many.
func (f *Forwarder) refresh(q *question, z *zone, now time.Duration) *flight {
	fl, role := f.flights.join(q.hash, q.key(), now)
	switch role {
	case follower:
		f.counters.shared.Add(1)
	case leader:
		f.launch(fl, q.hash, z)
	}
	return fl
}

// launch has a flight fly in the background. Where that cannot be, the flight
// has landed, and launch returns false.
func (f *Forwarder) launch(fl *flight, hash uint64, z *zone) bool {
	if z.route.busy(1) || !f.background.start(func() { f.fly(fl, hash, z) }) {
		fl.land(hash, f.shed(fl.key, z))
		return false
	}
	f.counters.renewed.Add(1)
	return true
}

// fly leads a flight for which no client is needed.
func (f *Forwarder) fly(fl *flight, hash uint64, z *zone) {
	q := new(question)
	f.read(q, wire.AppendKeyQuery(nil, fl.key))
	e := f.lead(context.Background(), nil, q, z, false) // the group's own budget ends it
	if now := f.cache.Get(hash, fl.key); now != nil {
		now.Refreshing.Store(false)
	}
	fl.land(hash, e)
}

// prefetch has a popular answer asked for again before it ends, so that nobody
// waits for it. It takes a free half of the route at most, and one question for
// each answer at one time.
func (f *Forwarder) prefetch(q *question, e *cache.Entry, z *zone, now time.Duration) {
	if f.cache.Hits(q.hash, e) < z.route.Policy.Prefetch {
		return
	}
	if _, resting := e.Resting(now); resting || !e.Refreshing.CompareAndSwap(false, true) {
		return
	}
	if z.route.busy(2) {
		f.counters.unfetched.Add(1)
		e.Refreshing.Store(false)
		return
	}
	fl := f.flights.lead(q.hash, q.key(), now)
	if fl == nil || !f.launch(fl, q.hash, z) {
		e.Refreshing.Store(false)
		return
	}
	f.counters.prefetched.Add(1)
}
