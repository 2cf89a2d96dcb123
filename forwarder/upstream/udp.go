package upstream

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// udpPool is the UDP sockets to one address. They open when needed, and which
// one a query takes is random: an attacker has to guess port and ID.
type udpPool struct {
	group *Group
	score *score
	addr  netip.AddrPort
	slots []atomic.Pointer[udpSocket] // in use; nil when not open

	mu    sync.Mutex
	open  map[*udpSocket]struct{} // in use, or waiting for their last answers
	ended error                   // why no more may be sent
}

func newUDPPool(g *Group, s *score, addr netip.AddrPort) *udpPool {
	if !addr.IsValid() {
		return nil
	}
	return &udpPool{
		group: g, score: s, addr: addr,
		slots: make([]atomic.Pointer[udpSocket], g.cfg.Sockets),
		open:  map[*udpSocket]struct{}{},
	}
}

// send puts a's question. The attempt is the socket's until it tells the end or
// a is abandoned; not if there is an error.
func (p *udpPool) send(a *attempt, now time.Duration) error {
	for {
		s, opened, err := p.socket(now)
		if isShort(err) {
			return p.sendAnyhow(a, now, err)
		}
		if err != nil {
			return err
		}
		// A socket may be retired between the two steps; the next is another.
		if ok, err := s.send(a, now, false); ok || err != nil {
			return p.score.went(a, udpPath, opened, err)
		}
	}
}

// sendAnyhow puts a's question on a socket that only waits for its last answers: no
// other can be had, because of cause.
func (p *udpPool) sendAnyhow(a *attempt, now time.Duration, cause error) error {
	for _, s := range p.sockets() {
		if ok, err := s.send(a, now, true); ok || err != nil {
			return p.score.went(a, udpPath, false, err)
		}
	}
	return cause
}

// socket is a random one of the sockets, opened if it is not.
func (p *udpPool) socket(now time.Duration) (s *udpSocket, opened bool, err error) {
	i := p.group.random().IntN(len(p.slots))
	if s := p.slots[i].Load(); s != nil && s.usable(now) {
		return s, false, nil
	}
	p.mu.Lock()
	old := p.slots[i].Load()
	if old != nil && old.usable(now) {
		p.mu.Unlock()
		return old, false, nil
	}
	s, err = p.dial(now)
	if err == nil {
		p.slots[i].Store(s)
	}
	p.mu.Unlock()
	if old != nil && err == nil {
		old.retire()
	}
	if isShort(err) {
		if other := p.anyOpen(now); other != nil {
			return other, false, nil
		}
	}
	return s, true, err
}

// dial opens a socket and starts its reader. The pool's lock is held: connecting
// a datagram socket does not wait.
func (p *udpPool) dial(now time.Duration) (*udpSocket, error) {
	if p.ended != nil {
		return nil, p.ended
	}
	if !p.group.mayOpen(p.usable(now) == nil) {
		return nil, ErrTooMany
	}
	conn, err := p.group.cfg.Dial(p.group.ctx, "udp", p.addr.String())
	if err != nil {
		p.group.open.Add(-1)
		return nil, err
	}
	s, err := newUDPSocket(p, conn, now)
	if err != nil {
		p.group.open.Add(-1)
		return nil, err
	}
	p.open[s] = struct{}{}
	p.group.routines.Go(s.read)
	return s, nil
}

// anyOpen is a socket that is open already, for when no more can be opened; nil if
// there is none.
func (p *udpPool) anyOpen(now time.Duration) *udpSocket {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.usable(now)
}

// usable is any of the sockets in use. The pool's lock is held.
func (p *udpPool) usable(now time.Duration) *udpSocket {
	for s := range p.open {
		if s.usable(now) {
			return s
		}
	}
	return nil
}

// forget takes a closed socket out.
func (p *udpPool) forget(s *udpSocket) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.open[s]; !ok {
		return
	}
	delete(p.open, s)
	for i := range p.slots {
		p.slots[i].CompareAndSwap(s, nil)
	}
	p.group.open.Add(-1)
}

// end lets nothing more be sent. What is in flight may still be answered.
func (p *udpPool) end(cause error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended == nil {
		p.ended = cause
	}
}

// signal tells everything in flight that its chances are bad.
func (p *udpPool) signal(cause error) {
	for _, s := range p.sockets() {
		s.signal(cause, nil)
	}
}

// close ends everything in flight. The pool must have been ended.
func (p *udpPool) close(cause error) {
	for _, s := range p.sockets() {
		s.close(cause)
	}
}

func (p *udpPool) sockets() []*udpSocket {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]*udpSocket, 0, len(p.open))
	for s := range p.open {
		all = append(all, s)
	}
	return all
}
