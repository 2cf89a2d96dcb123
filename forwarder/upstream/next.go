package upstream

import "time"

// drainingRetry is how long the silence of a server that is about to go is
// borne.
const drainingRetry = 100 * time.Millisecond

// next does what is due: a hedge if it may be made, or else the next attempt at
// its time.
func (x *exchange) next() {
	if x.hedging {
		x.hedging = false
		if !x.mayHedge() {
			first := &x.slots[0]
			x.nextAt = max(first.sentAt+first.retry, x.now+time.Millisecond)
			return
		}
		x.group.count.hedges[x.slots[0].to.tier].Add(1)
		x.slots[0].borne = x.nextAt - x.slots[0].sentAt
	} else if x.made > 0 && x.class == fast && !x.held {
		// Known by heart, and not told in time: that need not wait for the end.
		x.countSilence(x.made - 1)
	}
	x.attempt()
}

// mayHedge reports whether a copy may be put to a target that was not asked yet.
func (x *exchange) mayHedge() bool {
	return x.group.cfg.PacketRate == 0 && x.untried() && !allOut(x.cands) && x.group.hedges.take()
}

// attempt makes the next attempt, and the one after it if that fails at once.
func (x *exchange) attempt() {
	for x.made < x.group.cfg.Attempts {
		i, spilled := x.chooseIndex()
		if i < 0 {
			break
		}
		if !x.mayAsk() {
			return
		}
		x.release()
		t, forced := x.targets[i], x.cands[i].avoided
		a := &x.slots[x.made]
		x.made++
		x.ask(a, t)
		if a.progress == over && x.failure == ErrRemoved {
			x.made-- // the table changed between choosing and asking
			continue
		}
		if forced {
			t.score.forced.Add(1)
		}
		x.countAttempt(t, spilled)
		if a.progress == waiting || !x.untried() {
			x.plan(a)
			return
		}
	}
	x.nextAt = never
}

// mayAsk reports whether one more packet may go out. Otherwise it is said when to look
// again.
func (x *exchange) mayAsk() bool {
	g := x.group
	switch {
	case allOut(x.cands) && !g.whileOut.take(x.now, outInterval, outBurst):
		x.awaitTarget()
	case g.cfg.PacketRate > 0 && !x.takePacket():
		x.awaitTurn()
	default:
		return true
	}
	g.count.held.Add(1)
	return false
}

// takePacket takes one of the packets that the rate allows, after those who wait.
func (x *exchange) takePacket() bool {
	interval, burst := x.group.cfg.packetLimit()
	return (x.held || x.group.line.empty(x.now)) && x.group.packets.take(x.now, interval, burst)
}

// awaitTurn has the exchange look again when it is its turn. The line may be too long for
// it: then only replies to what it has asked are waited for.
func (x *exchange) awaitTurn() {
	g := x.group
	interval, burst := g.cfg.packetLimit()
	turn, ok := g.line.join(g.packets.next(interval, burst), interval, x.now+(x.endAt-x.now)/2)
	switch {
	case ok:
		x.hold()
		x.nextAt = turn
	case x.made > 0:
		x.nextAt = never
	default:
		x.endAt, x.failure = x.now, ErrRate
	}
}

// awaitTarget has the exchange look again later, while every target is out. Outside the
// cluster it ends when as many wait already as may: they hold memory that others need.
func (x *exchange) awaitTarget() {
	g := x.group
	if !x.held && x.hold() > heldMost && g.cfg.External {
		x.endAt, x.failure = x.now, ErrCrowded
		return
	}
	x.nextAt = x.now + holdMin + time.Duration(g.random().Int64N(int64(holdMax-holdMin)))
}

// hold counts the exchange among those that wait, and returns how many these are.
func (x *exchange) hold() int32 {
	if x.held {
		return x.group.held.Load()
	}
	x.held = true
	return x.group.held.Add(1)
}

// release ends what hold began.
func (x *exchange) release() {
	if x.held {
		x.held = false
		x.group.held.Add(-1)
	}
}

// plan sets the time of the attempt after a. The first silence may be a lost
// packet; more of them ask for patience.
func (x *exchange) plan(a *attempt) {
	switch x.made {
	case x.group.cfg.Attempts:
		x.nextAt = never
	case 1:
		x.nextAt = x.now + a.retry
		if hedge := x.hedgeAfter(a); hedge < a.retry && a.progress == waiting {
			x.hedging, x.nextAt = true, x.now+hedge
		}
	default:
		x.nextAt = x.now + 2*a.retry
	}
}

func (x *exchange) hedgeAfter(a *attempt) time.Duration {
	s := a.to.score
	if x.class == fast {
		return hedgeFast(s.peakAt(x.now), s.samples.Load())
	}
	return hedgeSlow(s.estimate(x.class))
}

// retryAfter is how long a target's silence is borne. One that answers late has
// much to do: a copy of what lies in its queue already would make it more.
func (x *exchange) retryAfter(t *target) time.Duration {
	cfg := &x.group.cfg
	low, high := cfg.retryBounds(x.class)
	retry := t.score.estimate(x.class).retryTime(low, high)
	if x.class == fast {
		retry = max(retry, t.score.patience(x.now, cfg.Budget))
	}
	if t.member.State == Draining {
		retry = min(retry, max(drainingRetry, x.group.cfg.RetryMin))
	}
	return retry
}

func (x *exchange) countAttempt(t *target, spilled bool) {
	c := x.group.count
	c.attempts.Add(1)
	switch {
	case x.made > 1:
		c.retries.Add(1)
	case spilled:
		c.spills[t.tier].Add(1)
	case t.score.state().ejected():
		c.panics[t.tier].Add(1)
	}
}

// untried reports whether the next attempt would go to a target that was not
// asked yet.
func (x *exchange) untried() bool {
	i, _ := x.chooseIndex()
	return i >= 0 && x.cands[i].tried == 0
}

// chooseIndex is the target of the next attempt, -1 when none is left.
func (x *exchange) chooseIndex() (index int, spilled bool) {
	cfg := &x.group.cfg
	x.look()
	w := wish{policy: cfg.Policy, past: -1, retry: x.made > 0, spill: x.class == fast}
	if x.made == 1 {
		w.past = int(x.slots[0].to.place())
	}
	if len(x.cands) > 1 {
		random := x.group.random()
		w.random = [3]float64{random.Float64(), random.Float64(), random.Float64()}
	}
	if !cfg.External && !allOut(x.cands) {
		panicked(x.cands)
	}
	return choose(x.cands, w)
}

// look makes the candidates. Targets are told apart by address: one that was
// removed and came back is still the same server.
func (x *exchange) look() {
	x.targets = x.group.snapshot.Load().targets
	x.cands = x.cands[:0]
	for _, t := range x.targets {
		c := t.candidate(&x.group.cfg, x.now, x.class)
		if share := t.score.state().share(x.now); share < 1 && !c.out && !x.group.cfg.External {
			c.resting = x.group.random().Float64() >= share
		}
		for i := range x.slots[:x.made] {
			if a := &x.slots[i]; a.to.addr == t.addr {
				c.tried++
				c.answered = c.answered || a.progress == answered || a.fallback
			}
		}
		x.cands = append(x.cands, c)
	}
}
