package upstream

import (
	"slices"
	"time"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

// When targets are probed. One that is out is looked at soon, because most
// failures are restarts, which are over soon; the one on the node often, because
// most queries go there; a few of the others seldom, because many nodes do so.
const (
	probeNode   = time.Second
	probeFar    = 10 * time.Second
	probedZone  = 2 // how many of the zone
	probedOther = 1 // how many of the others

	probeSuspect  = 50 * time.Millisecond
	probeOut      = time.Second     // while out, after the first few,
	probeExternal = 5 * time.Second // doubled up to this for external servers
)

// probeAfter is how long after the probe of that number, from 0, the next one
// of a target that is out is due. 0 is the time from the failure to the first.
func probeAfter(number int, external bool) time.Duration {
	switch {
	case number == 0:
		return 100 * time.Millisecond
	case number == 1:
		return 250 * time.Millisecond
	case !external:
		return probeOut
	}
	return min(probeOut<<min(number-2, 8), probeExternal)
}

// secondProbe is when a target that answered a probe gets the next.
const secondProbe = 100 * time.Millisecond

// probePlan is what the prober knows of one target.
type probePlan struct {
	target  *target
	steady  time.Duration // between probes while nothing is wrong; 0 for none
	outAt   time.Duration // of the failure that number counts from
	number  int           // probes since
	doubtAt time.Duration // of the last suspicion that was seen
	next    time.Duration // when the next is due
	busy    bool          // one is on its way

	loops  int           // checks for a loop so far
	loopAt time.Duration // when the next is due
}

// due moves the plan to what the target's health is now, and reports whether a
// probe is due.
func (p *probePlan) due(h health, now time.Duration, external bool) bool {
	switch {
	case h.out && (p.outAt != h.outAt || p.number == 0):
		p.outAt, p.number = h.outAt, 1
		p.next = h.outAt + probeAfter(0, external)
		if h.fresh {
			p.next = now
		}
	case !h.out && p.number > 0: // it came back
		p.number = 0
		p.next = now + p.steady
	}
	if h.suspected() && p.doubtAt != h.doubtAt {
		p.doubtAt, p.next = h.doubtAt, now
	}
	return !p.busy && p.wanted(h) && now >= p.next
}

// wanted reports whether a target is probed at all.
func (p *probePlan) wanted(h health) bool { return h.out || h.suspected() || p.steady > 0 }

// sent sets the time of the next probe when one goes out.
func (p *probePlan) sent(h health, now time.Duration, external bool, jittered func(time.Duration) time.Duration) {
	p.busy = true
	switch {
	case h.suspected():
		p.next = now + probeSuspect
	case !h.out:
		p.next = now + jittered(p.steady)
	default:
		p.next = now + jittered(probeAfter(p.number, external))
		p.number++
	}
}

// prober looks after the targets in the background. Its goroutine starts with
// the first table and ends with the group; each probe has one of its own.
type prober struct {
	group *Group
	query wire.Query
	kick  chan struct{} // a target went out, or the table changed
	done  chan *score   // a probe ended
	plans map[*score]*probePlan
	// followed is the snapshot that the plans are for.
	followed *snapshot
}

func newProber(g *Group) *prober {
	return &prober{
		group: g, query: probeQuery(g.cfg.Probe, g.cfg.probeType()),
		kick: make(chan struct{}, 1), done: make(chan *score),
		plans: map[*score]*probePlan{},
	}
}

// probeQuery is a query for a name, which must be one.
func probeQuery(name string, t wire.Type) wire.Query {
	key, ok := wire.AppendName(nil, name)
	if !ok {
		key = []byte{0}
	}
	return queryFor(key, t)
}

// queryFor is a query for a name in wire form, with RD.
func queryFor(name []byte, t wire.Type) wire.Query {
	msg := []byte{0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}
	msg = append(append(msg, name...), byte(t>>8), byte(t), 0, byte(wire.ClassIN))
	q, _ := wire.ParseQuery(msg)
	return q
}

// wake has the prober look at the targets now.
func (p *prober) wake() {
	select {
	case p.kick <- struct{}{}:
	default: // it will look already
	}
}

// run is the prober's goroutine.
func (p *prober) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-p.group.ctx.Done():
			return
		case <-p.kick:
		case <-timer.C:
		case s := <-p.done:
			p.ended(s)
		}
		timer.Reset(p.round(p.group.cfg.Now()))
	}
}

// ended takes note of a probe that is over.
func (p *prober) ended(s *score) {
	plan := p.plans[s]
	if plan == nil {
		return
	}
	plan.busy = false
	if h := s.state(); h.out && h.good > 0 {
		plan.next = min(plan.next, max(p.group.cfg.Now()+secondProbe, h.until))
	}
}

// round starts what is due and returns the time to the next.
func (p *prober) round(now time.Duration) time.Duration {
	const idle = time.Minute // nothing to do until the next kick
	wait := idle
	p.follow(now)
	healthy := p.healthy(now)
	for _, plan := range p.plans {
		t := plan.target
		waits := healthy && t.tier == LastTier
		if !waits {
			wait = min(wait, p.checkHealth(plan, now, idle))
		}
		// What is no endpoint may lead back to us, whoever is healthy.
		if p.group.cfg.LoopZone != "" && (!waits || t.step > ClusterStep) {
			wait = min(wait, p.checkLoop(plan, now))
		}
	}
	return max(wait, 0)
}

// healthy reports whether a target of the tiers is: nobody looks after the last
// resort meanwhile.
func (p *prober) healthy(now time.Duration) bool {
	return slices.ContainsFunc(p.followed.targets, func(t *target) bool {
		return t.tier != LastTier && !t.score.state().out && t.score.barred(now) == 0
	})
}

// checkHealth starts a probe if it is due, and returns the time to the next;
// idle if there is none.
func (p *prober) checkHealth(plan *probePlan, now, idle time.Duration) time.Duration {
	external := p.group.cfg.External
	h := plan.target.score.state()
	if plan.due(h, now, external) && plan.target.score.barred(now) == 0 {
		plan.sent(h, now, external, p.group.jittered)
		p.start(plan.target)
	}
	if plan.busy || !plan.wanted(h) {
		return idle
	}
	return plan.next - now
}

// follow brings the plans to the current table.
func (p *prober) follow(now time.Duration) {
	snap := p.group.snapshot.Load()
	if snap == p.followed {
		return
	}
	p.followed = snap
	seen := make(map[*score]bool, len(snap.targets))
	var tiers [tierCount]int
	for _, t := range snap.targets {
		seen[t.score] = true
		plan := p.plans[t.score]
		if plan == nil {
			plan = &probePlan{loopAt: now + loopAfter(0)}
			p.plans[t.score] = plan
		}
		plan.target = t
		steady := p.steady(t, tiers[t.tier])
		if steady != plan.steady {
			plan.steady = steady
			plan.next = now + p.group.jittered(steady)
		}
		if t.member.State == Ready {
			tiers[t.tier]++
		}
	}
	for s := range p.plans {
		if !seen[s] {
			delete(p.plans, s)
		}
	}
}

// steady is how often a target is probed while it is well; nearer is how many
// ready ones stand before it in its tier.
func (p *prober) steady(t *target, nearer int) time.Duration {
	switch {
	case p.group.cfg.Probe == "" || p.group.cfg.External || t.member.State != Ready:
		return 0
	case t.tier == NodeTier:
		return probeNode
	case t.tier == ZoneTier && nearer < probedZone, t.tier == ClusterTier && nearer < probedOther:
		return probeFar
	}
	return 0
}

// checkLoop sees whether a target leads back to us, and returns the time to the
// next check.
func (p *prober) checkLoop(plan *probePlan, now time.Duration) time.Duration {
	t := plan.target
	if barred := t.score.barred(now); barred > 0 {
		plan.loopAt = min(plan.loopAt, now+barred-loopTime)
	}
	if now < plan.loopAt {
		return plan.loopAt - now
	}
	plan.loops++
	next := p.group.jittered(loopAfter(plan.loops))
	plan.loopAt = now + next
	p.group.routines.Go(func() {
		q := p.group.loopQuery(t)
		_ = p.group.askOnly(t, &q, false) // what comes back, if anything, is found elsewhere
	})
	return next
}

// start sends a probe in a goroutine of its own.
func (p *prober) start(t *target) {
	g := p.group
	g.count.probes.Add(1)
	g.routines.Go(func() {
		if g.askOnly(t, &p.query, true) != nil && g.ctx.Err() == nil {
			t.score.probeFailures.Add(1)
		}
		select {
		case p.done <- t.score:
		case <-g.ctx.Done():
		}
	})
}

// askOnly asks one target. What comes of it is in the target's score; speaks says
// that a silence counts against it and a reply for it. The error says that there was
// no reply.
func (g *Group) askOnly(t *target, q *wire.Query, speaks bool) error {
	x := g.exchanges.Get().(*exchange)
	x.begin(nil, q)
	x.probe, x.speaks = true, speaks
	x.endAt = x.now + g.probeTime(x, t)
	x.nextAt, x.made = never, 1
	g.spend(x.now, packetsUDP)
	x.ask(&x.slots[0], t)
	err := x.work(g.ctx)
	x.finish()
	x.forget()
	g.exchanges.Put(x)
	return err
}

// probePatience is how many of the longest retry times a probe is waited for while
// its target is out.
const probePatience = 3

// probeTime is how long x may wait for t. The silence of one that is in use has to
// be known as soon as a query's would be.
func (g *Group) probeTime(x *exchange, t *target) time.Duration {
	if t.score.state().out || !x.speaks {
		return probePatience * g.cfg.RetryMax
	}
	return x.retryAfter(t)
}
