package upstream

import (
	"net/netip"
	"time"
)

// path is the sockets to one address over one transport.
type path interface {
	// send puts a's question without waiting. With an error, the attempt was
	// not taken.
	send(a *attempt, now time.Duration) error
	// end lets nothing more be sent.
	end(cause error)
	// signal tells everything in flight that its chances are bad.
	signal(cause error)
	// close ends everything in flight and closes the sockets.
	close(cause error)
}

// Paths of a target. Those of the other family are two further.
const (
	udpPath   = 0
	tcpPath   = 1
	altFamily = 2
	pathCount = 4
)

// target is a member as it stands in one snapshot; immutable. What it points to
// is carried from one snapshot to the next while its address stays.
type target struct {
	member Member
	addr   netip.AddrPort // its name: the first valid address
	tier   uint8
	step   Step // 0 in a tier
	score  *score
	paths  [pathCount]path // nil: no such address
}

func (m *Member) addrs() [pathCount]netip.AddrPort {
	if m.TLSName != "" { // there must be no way around it
		return [pathCount]netip.AddrPort{tcpPath: m.TCP, tcpPath + altFamily: m.AltTCP}
	}
	return [pathCount]netip.AddrPort{m.UDP, m.TCP, m.AltUDP, m.AltTCP}
}

// newTarget makes the target of a member, with what was there of old, which may
// be nil.
func newTarget(g *Group, m Member, tier int, old *target) *target {
	t := &target{member: m, addr: m.addr(), tier: uint8(tier)}
	if tier == LastTier {
		t.step = m.Step
	}
	if old != nil {
		t.score = old.score
	} else {
		t.score = newScore(g.cfg.Random)
		if counted := g.tallies[t.addr]; counted != nil {
			t.score.tally = counted
		}
	}
	t.score.near.Store(tier == NodeTier)
	for i, addr := range m.addrs() {
		switch {
		case old != nil && old.member.addrs()[i] == addr && old.member.TLSName == m.TLSName:
			t.paths[i] = old.paths[i]
		case !addr.IsValid():
		case i%altFamily == udpPath:
			t.paths[i] = newUDPPool(g, t.score, addr)
		default:
			t.paths[i] = newTCPPool(g, t.score, addr, m.TLSName)
		}
	}
	return t
}

// speaksUDP reports whether the target has a UDP address.
func (t *target) speaksUDP() bool {
	return t.paths[udpPath] != nil || t.paths[udpPath+altFamily] != nil
}

// place is how far the target stands, over tiers and steps.
func (t *target) place() uint8 { return t.tier + uint8(t.step) }

// path is the way to the target over a transport, at the family asked for if
// there is one.
func (t *target) path(byTCP, alt bool) path {
	i := udpPath
	if byTCP {
		i = tcpPath
	}
	j := i + altFamily
	if alt {
		i, j = j, i
	}
	if t.paths[i] != nil {
		return t.paths[i]
	}
	return t.paths[j]
}

// hasBoth reports whether the target can be asked at two families.
func (t *target) hasBoth(byTCP bool) bool {
	i := udpPath
	if byTCP {
		i = tcpPath
	}
	return t.paths[i] != nil && t.paths[i+altFamily] != nil
}

// candidate is what the choice has to know of t.
func (t *target) candidate(cfg *Config, now time.Duration, of class) candidate {
	s := t.score
	h, barred := s.state(), s.barred(now) > 0
	leaving, rate := s.losses.roll(now)
	return candidate{
		tier: t.tier, step: t.step, state: t.member.State,
		out: h.out || barred, answered: barred, fresh: h.fresh, failedAt: h.failedAt,
		suspect: h.suspected(), avoided: h.suspected() || h.ejected(),
		inFlight: s.inFlight[fast].Load(), bears: s.bears(cfg), leaving: leaving, lossRate: rate,
		load: float64(s.peakAt(now)) * float64(s.inFlight[of].Load()+1),
	}
}

// status reads t's counters.
func (t *target) status(cfg *Config, now time.Duration) TargetStatus {
	h := t.score.state()
	leaving, _ := t.score.losses.roll(now)
	speaking := fast
	if cfg.External {
		speaking = slow
	}
	s := TargetStatus{
		Pod: t.member.Pod, Addr: t.addr, Tier: int(t.tier), State: t.member.State,
		Out: h.out, Fresh: h.fresh, Suspect: h.suspected(), OutUntil: h.until, Misses: int(h.misses),
		Share: h.share(now), Leaving: leaving,
		InFlight: int(t.score.inFlight[fast].Load() + t.score.inFlight[slow].Load()),
		Bears:    int(t.score.bears(cfg)),
		Peak:     peak(t.score.peak.Load()).value(),
		SRTT:     t.score.estimate(speaking).srtt,
		Plain:    int64(now) < t.score.plainUntil.Load(),
		Alt:      int64(now) < t.score.altUntil.Load(),
		Looped:   t.score.barred(now) > 0,
		SameCase: int64(now) < t.score.sameCaseUntil.Load(),
		Misfit:   t.score.notices.certificate.misfit(),

		Sent:       t.score.sent.Load(),
		Timeouts:   t.score.timeouts.Load(),
		HardErrors: t.score.hardErrors.Load(),
		Misfits:    t.score.misfits.Load(),
		Ejections:  t.score.ejections.Load(),
		Forced:     t.score.forced.Load(),

		ProbeFailures: t.score.probeFailures.Load(),
		ReusedUDP:     t.score.reused[udpPath].Load(),
		ReusedTCP:     t.score.reused[tcpPath].Load(),
		OpenedUDP:     t.score.opened[udpPath].Load(),
		OpenedTCP:     t.score.opened[tcpPath].Load(),
	}
	for i := range s.Replies {
		s.Replies[i] = t.score.replies[i].read()
	}
	for i := range s.Ignored {
		s.Ignored[i] = t.score.ignored[i].Load()
	}
	return s
}
