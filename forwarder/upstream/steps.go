package upstream

import "errors"

// ask puts the question to t in slot a, as t's transport, family and EDNS
// memory say.
func (x *exchange) ask(a *attempt, t *target) {
	s := t.score
	a.to = t
	a.byTCP = x.group.cfg.ForceTCP || !t.speaksUDP()
	a.plain = int64(x.now) < s.plainUntil.Load()
	a.alt = int64(x.now) < s.altUntil.Load()
	x.put(a)
}

// put sends the question of slot a, a new run of it. If that fails at once, the
// slot is over.
func (x *exchange) put(a *attempt) {
	cfg := &x.group.cfg
	a.run++
	a.retry = a.to.score.estimate().retryTime(cfg.RetryMin, cfg.RetryMax)
	if a.fallback {
		a.retry = 2 * cfg.RetryMax // a handshake, and the server's work for a long reply
	}
	a.sentAt, a.endAt = x.now, x.endAt
	a.write(x.q, cfg.UDPSize)
	a.to.score.inFlight.Add(1)
	a.progress = waiting
	p := a.to.path(a.byTCP, a.alt)
	if p == nil {
		x.failed(a, ErrNoAddress, over)
		return
	}
	if err := p.send(a, x.now); err != nil {
		x.failed(a, err, over)
	}
}

// again puts the question of slot a once more.
func (x *exchange) again(a *attempt) {
	a.leave(unused)
	x.put(a)
	if a.progress == waiting && !a.trial && x.made < x.group.cfg.Attempts {
		x.nextAt = x.afterRetry(a)
	}
}

// handle takes one event; true means that the answer is there.
func (x *exchange) handle(ev event) bool {
	a := &x.slots[ev.slot]
	if ev.run != a.run || a.progress != waiting && a.progress != failing {
		return false
	}
	switch ev.kind {
	case gotReply:
		return x.replied(a)
	case gotHint:
		x.askPlain(a)
	case gotStale:
		if !x.freed {
			x.freed, a.fresh, a.via = true, true, nil
			x.again(a)
			x.turn(a)
			return false
		}
		fallthrough
	case gotEnd:
		a.via = nil
		x.failed(a, ev.err, over)
		x.turn(a)
	case gotSignal:
		x.failed(a, ev.err, failing)
		x.turn(a)
	}
	return false
}

// replied takes a's reply; true means that it is the answer.
func (x *exchange) replied(a *attempt) bool {
	x.noteReply(a)
	if a.wasEDNS && !rejectsEDNS(a.reply.RCode) {
		// It was the OPT: the same question without it was understood.
		a.to.score.plainUntil.Store(int64(x.now + x.group.cfg.PlainFor))
	}
	v := judge(&a.reply, a.plain, a.byTCP)
	if v != take && a.trial {
		return false // it has shown that it lives
	}
	x.keep(a, v)
	switch v {
	case take:
		return true
	case askPlain:
		x.askPlain(a)
	case askTCP:
		x.askTCP(a)
	case askOther:
		x.turn(a)
	}
	return false
}

// noteReply ends a's run and notes what its reply says of the target.
func (x *exchange) noteReply(a *attempt) {
	a.via = nil
	a.leave(answered)
	s, took := a.to.score, x.now-a.sentAt
	s.replies[classOf(a.reply.RCode)].observe(took)
	if a.fallback {
		s.lastReply.Store(int64(x.now))
		return
	}
	s.replied(x.now, took)
}

// askPlain puts a's question again without EDNS.
func (x *exchange) askPlain(a *attempt) {
	x.group.count.ednsFallbacks.Add(1)
	a.leave(unused)
	a.plain, a.wasEDNS = true, true
	x.again(a)
	x.turn(a)
}

// askTCP puts a's question again over TCP.
func (x *exchange) askTCP(a *attempt) {
	x.group.count.tcpFallbacks.Add(1)
	a.byTCP, a.fallback = true, true
	x.again(a)
	x.turn(a)
}

// failed notes the failure of slot a. The network's word that a server is not
// there may be forged, so that the slot may go on as failing.
func (x *exchange) failed(a *attempt, err error, p progress) {
	if !a.trial {
		x.failure, x.failedAt = err, a.to.addr
	}
	s := a.to.score
	if isUnreachable(err) && !a.alt && a.to.hasBoth(a.byTCP) {
		s.altUntil.Store(int64(x.now + altFor))
		a.alt = true
		x.again(a)
		return
	}
	if p == over {
		a.leave(over)
	}
	a.progress = p
	switch {
	case a.fallback: // it answers over UDP
	case isHard(err):
		s.failed(x.now)
	case errors.Is(err, ErrSilent):
		s.missed(a.sentAt, x.now)
	}
}

// turn looks for another target after slot a failed or gave a reply that is not
// good enough.
func (x *exchange) turn(a *attempt) {
	if a.trial || a.progress == waiting || x.nextAt == never {
		return
	}
	i := x.chooseIndex()
	switch {
	case i >= 0 && x.cands[i].tried == 0:
		x.nextAt = x.now
	case i < 0 || x.hasBest:
		x.nextAt = never
	}
}
