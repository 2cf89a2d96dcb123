package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// A change of the state comes to guard and serve at different moments, and serve may
// refuse it. So the host first has the addresses of both states, and loses the former
// ones when every serve has left them.

// leaveAfter is how long nobody has had a socket at the former addresses when they go:
// what was asked there is answered by then.
const leaveAfter = 6 * time.Second

// changing is what is known of a change of the state.
type changing struct {
	to *hostnet.State // nil: there is none
	// left is when no serve was seen any more at the former addresses; 0 = one is.
	left time.Duration
}

// Change makes s what the host should look like, in the place of Config.State. Link, port
// and probe mark have to be the same, and the users that are exempt; the servers of
// the fallback stay those that are known. Addresses that s does not have stay until every
// connected serve has left them, and while none is connected. On an error nothing has
// changed. It is for the time that Run runs, and returns when Run ends at the latest,
// if ctx ends then.
func (g *Guard) Change(ctx context.Context, s hostnet.State) error {
	if s.Port == 0 {
		s.Port = hostnet.DefaultPort
	}
	if err := g.refuses(s); err != nil {
		return err
	}
	select {
	case g.changes <- s:
	case <-ctx.Done():
	}
	return nil
}

func (g *Guard) refuses(s hostnet.State) error {
	was := g.cfg.State
	switch {
	case s.Mode == hostnet.None:
		return errors.New("guard: mode none ends what a guard keeps: end it, and clean up")
	case cmp.Or(s.Link, hostnet.DefaultLink) != cmp.Or(was.Link, hostnet.DefaultLink), s.Port != was.Port,
		s.ProbeMark != was.ProbeMark, !reflect.DeepEqual(s.Exempt, was.Exempt):
		return errors.New("guard: link, port, probe mark and exempt users cannot change while it runs: start another one")
	}
	if err := s.Validate(); err != nil {
		return fmt.Errorf("guard: %w", err)
	}
	return nil
}

// change begins a change, also in the middle of another.
func (l *loop) change(s hostnet.State) {
	l.changing = changing{to: &s}
	l.log.Info("the host shall look otherwise; addresses that are asked for no longer stay until serve has left them",
		zap.Stringer("mode", s.Mode), zap.Stringers("addresses", addrsOf(&s)), zap.Stringers("former", l.former()))
	l.look(both(&l.state, &s))
}

// both is the second of two states with all that the first one has beside it.
func both(was, s *hostnet.State) hostnet.State {
	out := *s
	out.Mode = max(was.Mode, s.Mode)
	out.Service = slices.Clone(s.Service)
	for _, a := range was.Service {
		if !slices.Contains(addrsOf(s), a) {
			out.Service = append(out.Service, a)
		}
	}
	out.Own = slices.Clone(s.Own)
	for _, a := range was.Own {
		if !slices.Contains(addrsOf(s), a) {
			out.Own = append(out.Own, a)
		}
	}
	return out
}

// former are the addresses that the host still has and that are asked for no longer.
func (l *loop) former() []netip.Addr {
	var list []netip.Addr
	for _, a := range addrsOf(&l.state) {
		if l.changing.to != nil && !slices.Contains(addrsOf(l.changing.to), a) {
			list = append(list, a)
		}
	}
	return list
}

// leaveFormer ends a change when serve has.
func (l *loop) leaveFormer(now time.Duration) {
	switch {
	case l.changing.to == nil:
		return
	case len(l.former()) == 0: // nothing is in the way
	case !l.hasLeft():
		l.changing.left = 0
		return
	case l.changing.left == 0:
		l.changing.left = max(now, 1)
		return
	case now-l.changing.left < leaveAfter:
		return
	}
	to := *l.changing.to
	l.changing = changing{}
	l.look(to)
	l.log.Info("the host has the addresses that are asked for", zap.Stringer("mode", l.state.Mode), zap.Stringers("addresses", l.addrs()))
}

// hasLeft tells whether serve is connected, and none at a former address.
func (l *loop) hasLeft() bool {
	former, serves := l.former(), false
	for _, s := range l.sessions {
		serves = serves || s.sockets != nil && !s.leaving
		for _, socket := range slices.Concat(s.sockets, s.tcp) {
			if slices.Contains(former, socket.Address.Addr()) {
				return false
			}
		}
	}
	return serves
}

// look makes s what the host should look like.
func (l *loop) look(s hostnet.State) {
	s.Fallback = l.state.Fallback
	l.state = s
	l.place()
	if table, ok := l.store.table(); ok {
		l.target(table) // other addresses may be ours now
	}
	l.repair()
}

// place has a place for each address, and none for any other.
func (l *loop) place() {
	var places []*place
	for _, a := range addrsOf(&l.state) {
		at := slices.IndexFunc(l.places, func(p *place) bool { return p.addr == a })
		if at < 0 {
			places = append(places, &place{addr: a, heard: map[string]time.Duration{}})
			continue
		}
		places = append(places, l.places[at])
	}
	for _, p := range l.places {
		if !slices.Contains(places, p) {
			l.unset(hostnet.Alive, p)
			l.unset(hostnet.Bypass, p)
		}
	}
	l.places = places
}

func addrsOf(s *hostnet.State) []netip.Addr { return slices.Concat(s.Own, s.Service) }
