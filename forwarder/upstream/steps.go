package upstream

import (
	"errors"
	"time"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

// maxServFails is how many servers may say SERVFAIL until it is believed: one
// may not know its names yet. maxHalves is the same for replies that are half an
// answer.
const maxServFails, maxHalves = 2, 2

// ask puts the question to t in slot a, as t's transport, family and EDNS
// memory say.
func (x *exchange) ask(a *attempt, t *target) {
	s := t.score
	a.to = t
	a.byTCP = x.group.cfg.ForceTCP || !t.speaksUDP()
	if x.q.Type == wire.TypeANY && !a.byTCP && t.path(true, false) != nil {
		// The answer is long, and a forged source would have it sent to others.
		a.byTCP, a.fallback = true, true
	}
	a.plain = int64(x.now) < s.plainUntil.Load()
	a.alt = int64(x.now) < s.altUntil.Load()
	cfg := &x.group.cfg
	sameCase := int64(x.now) < s.sameCaseUntil.Load()
	if sameCase {
		x.group.noteLetters(s, t.addr)
	}
	a.mixed = cfg.External && !cfg.KeepCase && !a.byTCP && !sameCase
	x.put(a)
}

// put sends the question of slot a, a new run of it. If that fails at once, the
// slot is over.
func (x *exchange) put(a *attempt) {
	cfg := &x.group.cfg
	a.run++
	a.retry = x.retryAfter(a.to)
	if a.fallback {
		a.retry = 2 * cfg.RetryMax // a handshake, and the server's work for a long reply
	}
	a.borne = a.retry
	a.sentAt, a.endAt = x.now, x.endAt
	a.class, a.speaks, a.probe = x.class, x.speaks, x.probe
	a.write(x.q, cfg)
	a.to.score.inFlight[a.class].Add(1)
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
	if a.progress == waiting && x.nextAt != never {
		x.hedging = false
		x.nextAt = x.now + time.Duration(min(x.made, 2))*a.retry
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
	case gotCase:
		a.leave(unused)
		a.mixed, a.recased = false, true
		x.askTCP(a)
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
		if ev.err == ErrEjected {
			x.hurry()
			return false
		}
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
	if v == askOther && x.believed(a.reply.RCode) {
		v = take
	}
	x.keep(a)
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

// believed reports whether so many servers have said the same that is not good
// enough that it is the answer.
func (x *exchange) believed(code wire.RCode) bool {
	switch code {
	case wire.ServFail:
		x.rejected++
	case wire.NoError:
		x.halves++
	}
	return x.rejected >= maxServFails || x.halves >= maxHalves
}

// noteReply ends a's run and notes what its reply says of the target.
func (x *exchange) noteReply(a *attempt) {
	a.via = nil
	a.leave(answered)
	s, took := a.to.score, x.now-a.sentAt
	if !x.probe {
		s.replies[classOf(a.reply.RCode)].observe(took)
	}
	if a.fallback {
		s.lastReply.Store(int64(x.now))
		return
	}
	s.took(x.now, took, x.class, x.speaks)
	if x.class == fast {
		x.group.noteLate(s, x.now, took)
	}
	x.group.noteReply(s, x.now, x.proves(&a.reply))
}

// proves reports whether a reply shows that its server is fit for use.
func (x *exchange) proves(r *wire.Reply) bool {
	switch {
	case x.probe:
		return x.speaks && x.group.probed(r)
	case x.group.cfg.External:
		return true
	}
	return x.speaks && isAnswer(r.RCode)
}

// isAnswer reports whether a code tells of a server that knows what it is asked:
// also that a DNAME makes a name of it that is too long (RFC 6672 section 2.2).
func isAnswer(code wire.RCode) bool {
	return code == wire.NoError || code == wire.NXDomain || code == wire.YXDomain
}

// askPlain puts a's question again without EDNS.
func (x *exchange) askPlain(a *attempt) {
	x.group.count.ednsFallbacks.Add(1)
	a.leave(unused)
	a.plain, a.wasEDNS = true, true
	x.group.spend(x.now, packetsUDP)
	x.again(a)
	x.turn(a)
}

// askTCP puts a's question again over TCP.
func (x *exchange) askTCP(a *attempt) {
	x.group.count.tcpFallbacks.Add(1)
	a.byTCP, a.fallback = true, true
	x.group.spend(x.now, packetsTCP)
	x.again(a)
	x.turn(a)
}

// failed notes the failure of slot a. The network's word that a server is not
// there may be forged, so that the slot may go on as failing.
func (x *exchange) failed(a *attempt, err error, p progress) {
	x.failure, x.failedAt = err, a.to.addr
	s := a.to.score
	if isUnreachable(err) && !a.alt && a.to.hasBoth(a.byTCP) {
		s.altUntil.Store(int64(x.now + altFor))
		a.alt = true
		x.again(a)
		return
	}
	if a.recased {
		// Nobody can forge over TCP, but if it cannot be had, UDP has to do.
		a.recased, a.byTCP, a.fallback = false, false, false
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
		a.broken = true
		s.countHard(err)
		if s.failed(a.sentAt, x.now) {
			x.group.ejected(a.to, err)
		}
	case errors.Is(err, ErrSilent):
		x.noteSilence(a)
	}
}

// noteSilence notes that a's target did not answer in time. What is asked of
// others says nothing of it.
func (x *exchange) noteSilence(a *attempt) {
	s := a.to.score
	if !x.speaks {
		s.timeouts.Add(1)
		return
	}
	s.raise(x.now, x.now-a.sentAt)
	switch s.missed(a.sentAt, x.now) {
	case nowSuspected:
		x.group.suspected(a.to)
	case nowOut:
		x.group.ejected(a.to, nil)
	}
}

// hurry makes the next attempt due if it would go to a target that was not asked
// yet.
func (x *exchange) hurry() {
	if x.nextAt != never && x.untried() {
		x.hedging, x.nextAt = false, x.now
	}
}

// turn looks for another target after slot a failed or gave a reply that is not
// good enough.
func (x *exchange) turn(a *attempt) {
	if a.progress == waiting || x.nextAt == never {
		return
	}
	i, _ := x.chooseIndex()
	switch {
	case i >= 0 && x.cands[i].tried == 0:
		x.hedging, x.nextAt = false, x.now
	case i < 0 || x.hasBest:
		x.hedging, x.nextAt = false, never
	}
}
