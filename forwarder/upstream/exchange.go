package upstream

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

const (
	maxAttempts = 3
	trialSlot   = maxAttempts // a copy for a suspect target, which nobody waits for
	slotCount   = maxAttempts + 1

	never = time.Duration(1<<63 - 1)
	// altFor is how long a target is asked at its other family after the first
	// was unreachable.
	altFor = 10 * time.Second
)

// exchange is the work for one query. It is used again for others: everything
// in it is of one exchange, but what newExchange makes.
type exchange struct {
	group  *Group
	events chan event
	timer  *time.Timer
	cands  []candidate
	slots  [slotCount]attempt

	q       *wire.Query
	dst     []byte
	targets []*target // what cands were made of

	now    time.Duration
	endAt  time.Duration // of the budget
	nextAt time.Duration // the next attempt; never when there is none to come
	made   int           // attempts made: slots[:made]

	// best is the reply to return if no better one comes; its bytes are dst.
	best     wire.Reply
	bestTier uint8
	hasBest  bool
	freed    bool // the free retry of a stale connection was used
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
	x.q, x.dst = q, dst
	x.now = x.group.cfg.Now()
	x.endAt = x.now + x.group.cfg.Budget
	x.group.count.exchanges.Add(1)
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
	return reply, nil
}

// work makes attempts until there is an answer or nothing left to wait for.
func (x *exchange) work(ctx context.Context) error {
	x.attempt()
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
		case <-ctx.Done():
			return fmt.Errorf("the query was given up: %w", context.Cause(ctx))
		}
		if x.now >= x.nextAt && x.now < x.endAt {
			x.attempt()
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

// attempt makes the next attempt, and the one after it if that fails at once.
func (x *exchange) attempt() {
	for x.made < x.group.cfg.Attempts {
		t := x.choose()
		if t == nil {
			break
		}
		if x.made == 0 && !x.slots[trialSlot].trial {
			x.tryAnother(t)
		}
		a := &x.slots[x.made]
		x.made++
		x.ask(a, t)
		if a.progress == over && x.failure == ErrRemoved {
			x.made-- // the table changed between choosing and asking
			continue
		}
		x.countAttempt()
		if a.progress == waiting || !x.untried() {
			x.nextAt = x.afterRetry(a)
			return
		}
	}
	x.nextAt = never
}

// afterRetry is when the attempt after a is due. The first silence may be a
// lost packet; more of them ask for patience.
func (x *exchange) afterRetry(a *attempt) time.Duration {
	switch x.made {
	case x.group.cfg.Attempts:
		return never
	case 1:
		return x.now + a.retry
	}
	return x.now + 2*a.retry
}

func (x *exchange) countAttempt() {
	x.group.count.attempts.Add(1)
	if x.made > 1 {
		x.group.count.retries.Add(1)
	}
}

// tryAnother sends a copy of the query to a suspect target whose time has come,
// to see if it is back, while t answers the query.
func (x *exchange) tryAnother(t *target) {
	for _, other := range x.targets {
		if other == t || !other.score.claimTrial(x.now) {
			continue
		}
		x.group.count.trials.Add(1)
		a := &x.slots[trialSlot]
		a.trial = true
		x.ask(a, other)
		return
	}
}

// choose is the target of the next attempt, nil when none is left.
func (x *exchange) choose() *target {
	i := x.chooseIndex()
	if i < 0 {
		return nil
	}
	return x.targets[i]
}

// untried reports whether the next attempt would go to a target that was not
// asked yet.
func (x *exchange) untried() bool {
	i := x.chooseIndex()
	return i >= 0 && x.cands[i].tried == 0
}

func (x *exchange) chooseIndex() int {
	// Targets are told apart by address: one that was removed and came back is
	// still the same server.
	x.targets = x.group.snapshot.Load().targets
	x.cands = x.cands[:0]
	for _, t := range x.targets {
		c := t.candidate()
		for i := range x.slots[:x.made] {
			if a := &x.slots[i]; a.to.addr == t.addr {
				c.tried++
				c.answered = c.answered || a.progress == answered || a.fallback
			}
		}
		x.cands = append(x.cands, c)
	}
	w := wish{policy: x.group.cfg.Policy, past: -1, retry: x.made > 0}
	if x.made == 1 {
		w.past = int(x.slots[0].to.tier)
	}
	if w.policy != Sequential && len(x.cands) > 1 {
		w.random = [2]float64{rand.Float64(), rand.Float64()}
	}
	return choose(x.cands, w)
}

// keep makes a's reply the one to return. A truncated reply is better than a
// failure, and the last failure than an earlier one.
func (x *exchange) keep(a *attempt, v verdict) {
	if x.hasBest && x.best.TC && v == askOther {
		return
	}
	x.dst = append(x.dst[:0], a.reply.Msg...)
	x.best = a.reply
	x.best.Msg = x.dst
	x.bestTier, x.hasBest = a.to.tier, true
}

// finish ends all attempts. A silence that was longer than is borne counts
// against its target, once for each target.
func (x *exchange) finish() {
	x.timer.Stop()
	for i := range x.slots {
		x.slots[i].withdraw()
	}
	x.credit()
	for i := range x.slots {
		a := &x.slots[i]
		silent := a.progress == waiting && !a.trial
		a.leave(a.progress)
		if silent && x.now-a.sentAt >= a.retry {
			x.countSilence(i)
		}
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

func (x *exchange) countSilence(i int) {
	a := &x.slots[i]
	a.missed = true
	for _, b := range x.slots[:i] {
		if b.missed && b.to.score == a.to.score {
			return
		}
	}
	if !a.fallback {
		a.to.score.missed(a.sentAt, x.now)
	}
}

func (x *exchange) exhausted() error {
	x.group.count.exhausted.Add(1)
	e := &ExchangeError{Reason: ErrFailed, Attempts: x.made, Server: x.failedAt, Cause: x.failure}
	switch snap := x.group.snapshot.Load(); {
	case snap.closed:
		e.Reason = ErrClosed
	case x.made == 0:
		e.Reason = ErrNoTargets
	case x.now >= x.endAt:
		e.Reason = ErrBudget
	}
	return e
}

// forget lets go of everything that is of this exchange.
func (x *exchange) forget() {
	for i := range x.slots {
		x.slots[i].reset()
	}
	x.q, x.dst, x.targets = nil, nil, nil
	x.made, x.hasBest, x.freed = 0, false, false
	x.best, x.failure, x.failedAt = wire.Reply{}, nil, netip.AddrPort{}
}
