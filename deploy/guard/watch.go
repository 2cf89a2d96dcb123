package guard

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// startRound puts the probes of a round. If the one before is not over yet, as on a
// busy machine, this one follows it at once: to wait for the next tick would make the
// rounds twice as long. Their goroutines hand what they hear to the loop.
func (l *loop) startRound(ctx context.Context) {
	if l.overdue = l.probing; l.overdue {
		return
	}
	l.probing = true
	questions := l.questions()
	l.rounds.Go(func() {
		outcomes := make([]outcome, len(questions))
		var sweeps sync.WaitGroup
		for i, q := range questions {
			sweeps.Go(func() {
				s := sweep{question: q, ask: l.cfg.Asker}
				outcomes[i] = s.run(ctx, func(w Witness) { l.ask(ctx, func() { l.heard(&q, w) }) })
			})
		}
		sweeps.Wait()
		l.ask(ctx, func() {
			if l.judge(questions, outcomes); l.overdue {
				l.startRound(ctx)
			}
		})
	})
}

// questions has one for each place over UDP, in their order, and after these one over
// TCP where somebody listens and it can be asked. Sockets of an instance that leaves are
// not expected to answer.
func (l *loop) questions() []question {
	var udp, tcp []question
	for _, p := range l.places {
		at := netip.AddrPortFrom(p.addr, l.state.Port)
		q := question{place: p, over: overUDP, at: at, expect: l.expected(at, func(s *session) []Socket { return s.sockets })}
		q.bound = len(q.expect) > 0 || listenedAt(at)
		udp = append(udp, q)
		if expect := l.expected(at, func(s *session) []Socket { return s.tcp }); len(expect) > 0 && l.asksTCP(p.addr) {
			tcp = append(tcp, question{place: p, over: overTCP, from: l.probeSource(p.addr), at: at, expect: expect, bound: true})
		}
	}
	return append(udp, tcp...)
}

// asksTCP tells whether a probe over TCP reaches an address.
func (l *loop) asksTCP(a netip.Addr) bool {
	return !l.isService(a) || l.probeSource(a).IsValid()
}

// probeSource is where a probe over TCP comes from; not valid: from anywhere.
func (l *loop) probeSource(a netip.Addr) netip.Addr {
	if !l.isService(a) {
		return netip.Addr{}
	}
	return l.state.ProbeSource(a)
}

// expected are the sockets at an address that should answer.
func (l *loop) expected(at netip.AddrPort, of func(s *session) []Socket) []Witness {
	var list []Witness
	for _, s := range l.sessions {
		for _, socket := range of(s) {
			if !s.leaving && socket.Address == at {
				list = append(list, Witness{s.hello.Instance, socket.Number})
			}
		}
	}
	return list
}

// heard takes in an answer: packets born here may come again. That a connection is
// taken says nothing of them, but that it can be.
func (l *loop) heard(q *question, w Witness) {
	p, now := q.place, l.now()
	l.counts.Answers++
	if !slices.Contains(l.places, p) {
		return // it went while it was asked
	}
	if q.over != overUDP {
		p.reached = p.reached || slices.Contains(q.expect, w)
		return
	}
	p.heard[w.Instance] = now
	if l.withoutFuture()[w.Instance] || (p.alive && now-p.renewed < roundEvery/2) {
		return
	}
	l.set(hostnet.Alive, p)
}

// judge takes in the outcomes of a round's questions.
func (l *loop) judge(questions []question, outcomes []outcome) {
	l.probing = false
	l.counts.Rounds++
	shown := make(map[*place]outcome, len(l.places))
	for i, q := range questions {
		switch {
		case q.over == overUDP:
			shown[q.place] = outcomes[i]
		case q.place.reached || !l.isService(q.place.addr):
			shown[q.place] = shown[q.place].and(outcomes[i])
		}
	}
	for _, p := range l.places {
		if o, asked := shown[p]; !asked || !p.round(o) {
			continue // or it came while others were asked
		}
		if p.stuck {
			l.log.Error("a socket of serve does not answer: its queries go to the fallback if that answers", zap.Stringer("address", p.addr))
		} else {
			l.log.Info("serve answers again", zap.Stringer("address", p.addr))
		}
	}
	l.steer()
}

// withdraw takes places out of the set alive that nobody with a future answers at.
func (l *loop) withdraw() {
	gone, now := l.withoutFuture(), l.now()
	for _, p := range l.places {
		if p.alive && !p.answered(gone, now) {
			l.unset(hostnet.Alive, p)
		}
	}
	l.steer()
}

// steer puts places into the set bypass or takes them out. What is in both is renewed
// before its time is over.
func (l *loop) steer() {
	if !l.owner {
		return
	}
	now := l.now()
	gone := l.withoutFuture()
	alone := l.alone()
	for _, p := range l.places {
		if p.alive && now-p.renewed > holdTime {
			p.alive = false // it ended by itself
		}
		reason := p.bypassReason(&l.deaths, alone && !p.answered(gone, now), now)
		if reason != "" && !l.behind.answers(l.isService(p.addr)) {
			l.behind.want = true
			reason = ""
		}
		switch {
		case reason != "":
			if !p.bypass {
				l.counts.Bypasses++
				l.log.Warn("queries go past serve", zap.Stringer("address", p.addr), zap.String("because", reason))
			}
			l.set(hostnet.Bypass, p)
		case p.bypass:
			l.log.Info("queries go to serve again", zap.Stringer("address", p.addr))
			l.unset(hostnet.Bypass, p)
		}
	}
}

// alone says that an instance leaves and that no other one serves.
func (l *loop) alone() bool {
	serves := func(leaving bool) func(*session) bool {
		return func(s *session) bool { return s.sockets != nil && s.leaving == leaving }
	}
	return slices.ContainsFunc(l.sessions, serves(true)) && !slices.ContainsFunc(l.sessions, serves(false))
}

func (l *loop) isService(a netip.Addr) bool { return slices.Contains(l.state.Service, a) }

func (l *loop) set(set hostnet.Set, p *place) {
	if !l.owner {
		return
	}
	if err := l.cfg.Host.Hold(set, holdTime, p.addr); err != nil {
		l.counts.HoldErrors++
		return // a missing table is what repair is for
	}
	if set == hostnet.Alive {
		p.alive, p.renewed = true, l.now()
	} else {
		l.turn(p, true)
	}
}

// turn takes in whether queries to a place go past serve.
func (l *loop) turn(p *place, bypass bool) {
	if p.bypass != bypass {
		p.bypass, l.turned = bypass, time.Now()
	}
}

func (l *loop) unset(set hostnet.Set, p *place) {
	if set == hostnet.Alive {
		p.alive = false
	} else {
		l.turn(p, false)
	}
	if !l.owner {
		return
	}
	if err := l.cfg.Host.Release(set, p.addr); err != nil {
		l.counts.HoldErrors++ // it ends by itself within holdTime
	}
}

// behind is what is known of the servers of the fallback.
type behind struct {
	asking bool
	want   bool // somebody waits to know
	known  bool
	good   bool
	at     time.Duration
}

const (
	behindEvery   = 30 * time.Second // when nobody waits
	behindHurried = 250 * time.Millisecond
	behindTime    = 300 * time.Millisecond
	behindServers = 3 // asked at once
)

func (b *behind) stale() { b.at = -behindEvery }

// answers tells whether the servers of the fallback take queries. For a Service nobody
// knows, unless they were asked: kube-proxy chooses among servers of its own.
func (b *behind) answers(service bool) bool { return b.known && b.good || !b.known && service }

// askBehind asks the servers of the fallback whether they answer: seldom, and often
// while it matters.
func (l *loop) askBehind(ctx context.Context) {
	b, now := &l.behind, l.now()
	hurry := b.want || slices.ContainsFunc(l.places, func(p *place) bool { return p.silent > 0 || p.bypass })
	age := now - b.at
	if b.asking || (b.known && age < behindEvery && (!hurry || age < behindHurried)) {
		return
	}
	servers := l.state.Fallback.UDP
	if len(servers) == 0 {
		b.known, b.good = false, false
		return
	}
	b.asking, b.want = true, false
	servers, name := servers[:min(len(servers), behindServers)], l.probeName
	l.rounds.Go(func() {
		good := anyAnswers(ctx, l.cfg.Asker, servers, name)
		l.ask(ctx, func() {
			l.behind.asking, l.behind.known, l.behind.good, l.behind.at = false, true, good, l.now()
			l.steer()
		})
	})
}

// anyAnswers asks some servers at once.
func anyAnswers(ctx context.Context, ask Asker, servers []netip.AddrPort, name string) bool {
	ctx, cancel := context.WithTimeout(ctx, behindTime)
	defer cancel()
	good := make(chan bool, len(servers))
	var asked sync.WaitGroup
	for _, s := range servers {
		asked.Go(func() { good <- ask.Answers(ctx, s, name) })
	}
	defer asked.Wait()
	defer cancel()
	for range servers {
		if <-good {
			return true
		}
	}
	return false
}
