package load

import (
	"context"
	"time"

	"github.com/nodens-dns/nodens/bench/names"
)

// burst is how many queries are sent before replies are looked at again.
const burst = 16

// sendDue sends what is due and gives the time of the next query. It is false
// when there will be none.
func (w *worker) sendDue(ctx context.Context) (next time.Duration, sending bool) {
	now := w.now()
	next = now + tick
	if ctx.Err() != nil {
		return next, false
	}
	if w.run.cfg.runsTrains() {
		n, ok := w.room(now)
		if n == 0 {
			return next, ok
		}
		w.sendTrain(min(n, burst), now)
		return now, true
	}
	for range burst {
		due, ok := w.due(now)
		if !ok {
			return next, false
		}
		if due > now {
			return min(due, next), true
		}
		now = w.send(due)
	}
	return now, true // more may be due already
}

// due is when the next query is meant to leave. In a closed loop that is now,
// or not before a reply.
func (w *worker) due(now time.Duration) (time.Duration, bool) {
	if w.run.cfg.Outstanding == 0 {
		return w.schedule.due()
	}
	switch n, ok := w.room(now); {
	case !ok:
		return 0, false
	case n == 0:
		return now + tick, true
	}
	return now, true
}

// room is how many queries of a closed loop may leave now. It is false when
// there will be none any more.
func (w *worker) room(now time.Duration) (n int, sending bool) {
	cfg := &w.run.cfg
	if w.run.ends && now >= w.run.length {
		return 0, false
	}
	n = w.part(cfg.Outstanding) - w.inFlight
	if cfg.Queries > 0 {
		left := w.part(int(cfg.Queries)) - int(w.asked)
		if left <= 0 {
			return 0, false
		}
		n = min(n, left)
	}
	return max(n, 0), true
}

// part is this worker's share of so many.
func (w *worker) part(all int) int {
	return (all + w.run.cfg.Workers - 1 - w.number) / w.run.cfg.Workers
}

// send sends one query and gives the time after.
func (w *worker) send(intended time.Duration) time.Duration {
	if w.run.cfg.Outstanding == 0 {
		w.schedule.step(1)
	}
	q := w.next()
	now := w.now()
	l, slot := w.pick(&q)
	if slot < 0 {
		w.trouble.Unsent++
		return now
	}
	w.out = w.board(w.out[:0], l, slot, &q, intended)
	if l.send(w, slot, w.out) {
		w.left(l, slot, now)
	} else {
		w.stayed(l, slot)
	}
	return now
}

func (w *worker) next() names.Query {
	q := w.source.Next()
	q.Unjudged = q.Unjudged || w.run.cfg.Unjudged
	return q
}

// board notes a query in its slot and appends it to out, with its length in
// front.
func (w *worker) board(out []byte, l lane, slot int32, q *names.Query, intended time.Duration) []byte {
	p := l.flights()
	s := &p.slots[slot]
	s.want, s.intended, s.sent, s.edns = w.judge.expect(q), intended, intended, q.EDNS
	s.phase = w.run.book.Load().at(intended).id
	start := len(out)
	out = appendQuery(out, s.id, q)
	p.keep(slot, out[start:])
	return out
}

// left counts the query of a slot as sent.
func (w *worker) left(l lane, slot int32, now time.Duration) {
	s := &l.flights().slots[slot]
	w.asked++
	w.inFlight++
	w.score(s, func(c *Counts) { c.Sent++ })
	note(w.lag, now-s.intended)
}

// stayed frees the slot of a query that the kernel did not take.
func (w *worker) stayed(l lane, slot int32) {
	l.flights().done(slot)
	l.ended(slot)
	w.trouble.Unsent++
}
