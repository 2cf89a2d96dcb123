package upstream

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

const (
	maxAttempts = 3

	never = time.Duration(1<<63 - 1)
	// altFor is how long a target is asked at its other family after the first
	// was unreachable.
	altFor = 10 * time.Second
)

// exchange is the work for one query. It is used again for others: everything
// in its course is of one exchange.
type exchange struct {
	group  *Group
	events chan event
	timer  *time.Timer
	cands  []candidate
	slots  [maxAttempts]attempt
	course
}

// course is what an exchange is about and how far it is.
type course struct {
	q       *wire.Query
	dst     []byte
	targets []*target // what cands were made of

	class  class
	speaks bool // silence and time speak for the target, not for the name
	probe  bool // asked to see how a target is; no other is asked

	now     time.Duration
	endAt   time.Duration // of the budget
	nextAt  time.Duration // the next attempt; never when there is none to come
	hedging bool          // the next attempt comes before the retry time
	held    bool          // nextAt is when to look again whether an attempt may be made
	lag     time.Duration // that this goroutine ran later than it asked for
	made    int           // attempts made: slots[:made]

	// best is the reply to return if no better one comes; its bytes are dst.
	best     wire.Reply
	bestTier uint8
	hasBest  bool
	rejected uint8 // SERVFAILs that came
	halves   uint8 // and replies that were half an answer
	freed    bool  // the free retry of a stale connection was used
	failedAt netip.AddrPort
	failure  error
}

func newExchange(g *Group) *exchange {
	x := &exchange{group: g, events: make(chan event, maxEvents), timer: time.NewTimer(0)}
	x.timer.Stop()
	for i := range x.slots {
		x.slots[i].events, x.slots[i].slot = x.events, uint8(i)
	}
	return x
}

func (x *exchange) run(ctx context.Context, dst []byte, q *wire.Query) (wire.Reply, error) {
	x.begin(dst, q)
	x.group.count.exchanges.Add(1)
	x.group.hedges.earn()
	x.attempt()
	err := x.work(ctx)
	x.finish()
	reply, has, tier := x.best, x.hasBest, x.bestTier
	if !has && err == nil {
		err = x.exhausted()
	}
	x.forget()
	if err != nil {
		return wire.Reply{}, err
	}
	x.group.count.served[tier].Add(1)
	reply.Via = tier + 1
	return reply, nil
}

func (x *exchange) begin(dst []byte, q *wire.Query) {
	cfg := &x.group.cfg
	x.q, x.dst = q, dst
	x.now = cfg.Now()
	budget := cfg.Budget
	switch {
	case cfg.External:
		x.class, x.speaks = slow, true
	case x.group.isFast(q.Name()):
		x.class, x.speaks = fast, true
	default:
		x.class, budget = slow, cfg.SlowBudget
	}
	x.endAt = x.now + budget
}

// work makes attempts until there is an answer or nothing left to wait for.
func (x *exchange) work(ctx context.Context) error {
	for {
		wake := x.wake()
		if wake <= x.now {
			return nil
		}
		x.timer.Reset(wake - x.now)
		select {
		case ev := <-x.events:
			x.now = x.group.cfg.Now()
			if x.handle(ev) {
				return nil
			}
		case <-x.timer.C:
			x.now = x.group.cfg.Now()
			x.lag += max(x.now-wake, 0)
		case <-ctx.Done():
			return fmt.Errorf("the query was given up: %w", context.Cause(ctx))
		}
		if x.now >= x.nextAt && x.now < x.endAt {
			x.next()
		}
	}
}

// wake is when something has to be done if nothing comes: the next attempt, or
// the end, which is when the last attempt's time is over.
func (x *exchange) wake() time.Duration {
	if x.nextAt != never {
		return min(x.nextAt, x.endAt)
	}
	end := time.Duration(0)
	for i := range x.slots[:x.made] {
		end = max(end, x.patience(&x.slots[i]))
	}
	return min(end, x.endAt)
}

// patience is until when a is worth waiting for: to the end of the budget,
// unless it was told to fail, or there is something to return.
func (x *exchange) patience(a *attempt) time.Duration {
	switch {
	case a.progress == failing:
		return a.sentAt + a.retry
	case a.progress != waiting:
		return 0
	case !x.hasBest, a.fallback:
		return x.endAt
	}
	return a.sentAt + 2*x.group.cfg.RetryMax
}

// keep makes a's reply the one to return. Part of an answer is better than a
// failure, and the last failure than an earlier one.
func (x *exchange) keep(a *attempt) {
	if x.hasBest && isAnswer(x.best.RCode) && !isAnswer(a.reply.RCode) {
		return
	}
	x.dst = append(x.dst[:0], a.reply.Msg...)
	x.best = a.reply
	x.best.Msg = x.dst
	x.bestTier, x.hasBest = a.to.tier, true
}

// finish ends all attempts. A silence that was longer than is borne counts
// against its target, once for each target. The time in which this process did
// not get a processor is not the target's: its reply may lie here unread.
func (x *exchange) finish() {
	x.timer.Stop()
	x.release()
	for i := range x.slots {
		x.slots[i].withdraw()
	}
	x.credit()
	for i := range x.slots {
		a := &x.slots[i]
		x.countSilence(i)
		a.leave(a.progress)
		x.countLoss(a)
	}
	if x.speaks && !x.probe && x.slots[0].to != nil {
		x.group.hedges.first(x.slots[0].lost())
	}
}

// credit takes note of replies that came together with the answer. No more
// come, and nothing else that came matters any more.
func (x *exchange) credit() {
	for {
		select {
		case ev := <-x.events:
			a := &x.slots[ev.slot]
			if ev.kind == gotReply && ev.run == a.run {
				x.noteReply(a)
			}
		default:
			return
		}
	}
}

// countSilence notes that slot i's target is silent, if it is for longer than is
// borne: once for each target, since a lost packet of two would be none of a
// server's.
func (x *exchange) countSilence(i int) {
	a := &x.slots[i]
	if a.progress != waiting || a.missed || x.now-a.sentAt-x.lag < a.borne {
		return
	}
	a.missed = true
	for j := range x.slots[:i] {
		if b := &x.slots[j]; b.missed && b.to.score == a.to.score {
			return
		}
	}
	if !a.fallback {
		x.noteSilence(a)
	}
}

// countLoss notes for the backstop of spilling how an attempt ended.
func (x *exchange) countLoss(a *attempt) {
	if !x.speaks || x.probe || a.to == nil || a.progress == waiting && !a.missed {
		return
	}
	a.to.score.losses.note(a.lost(), x.now)
}

func (x *exchange) exhausted() error {
	x.group.count.exhausted.Add(1)
	e := &ExchangeError{Reason: ErrFailed, Attempts: x.made, Server: x.failedAt, Cause: x.failure}
	switch snap := x.group.snapshot.Load(); {
	case snap.closed:
		e.Reason = ErrClosed
	case x.now >= x.endAt:
		e.Reason = ErrBudget
	case x.made == 0:
		e.Reason = ErrNoTargets
	}
	return e
}

// forget lets go of everything that is of this exchange.
func (x *exchange) forget() {
	for i := range x.slots {
		x.slots[i].reset()
	}
	x.cands = x.cands[:0]
	x.course = course{}
}
