package upstream

import (
	"crypto/tls"
	"net/netip"
	"sync"
	"time"
)

// tcpPool is the TCP connections to one address. They open when needed; each
// carries several queries, told apart by ID.
type tcpPool struct {
	group *Group
	score *score
	addr  netip.AddrPort
	tls   *tls.Config // nil: without
	depth int         // queries in flight on one connection

	mu    sync.Mutex
	conns []*tcpConn            // in use
	open  map[*tcpConn]struct{} // these, and those that end with their last query
	loads []connLoad            // kept for its memory
	ended error                 // why no more may be sent
}

func newTCPPool(g *Group, s *score, addr netip.AddrPort, tlsName string) *tcpPool {
	if !addr.IsValid() {
		return nil
	}
	p := &tcpPool{group: g, score: s, addr: addr, depth: g.cfg.TCPDepth, open: map[*tcpConn]struct{}{}}
	if tlsName != "" {
		p.tls, p.depth = tlsConfig(&g.cfg, tlsName), max(tlsDepth, p.depth)
	}
	return p
}

// send puts a's question. The attempt is the connection's until it tells the
// end or a is abandoned; not if there is an error.
func (p *tcpPool) send(a *attempt, now time.Duration) error {
	for {
		c, opened, err := p.conn(a.fresh, now)
		if err != nil {
			return err
		}
		// A connection may end between the two steps; the next is another.
		if c.send(a, now) {
			return p.score.went(a, tcpPath, opened, nil)
		}
	}
}

// conn is the connection to use, opened if none of those that are will do.
func (p *tcpPool) conn(fresh bool, now time.Duration) (c *tcpConn, opened bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended != nil {
		return nil, false, p.ended
	}
	p.loads = p.loads[:0]
	inUse := p.conns[:0]
	for _, c := range p.conns {
		if load, ok := c.load(now); ok {
			p.loads = append(p.loads, load)
			inUse = append(inUse, c)
		}
	}
	clear(p.conns[len(inUse):])
	p.conns = inUse
	cfg := &p.group.cfg
	patience := max(p.score.estimate(fast).srtt, p.score.estimate(slow).srtt, time.Millisecond)
	most := cfg.TCPConns
	if p.group.full() {
		most = max(len(p.loads), 1)
	}
	i := chooseConn(p.loads, p.depth, most, patience, fresh)
	switch {
	case i == openConn:
		c, err = p.dial(now)
		return c, true, err
	case i == noConn:
		return nil, false, ErrFull
	}
	return p.conns[i], false, nil
}

// dial starts a connection. The pool's lock is held; the connection dials in
// its own goroutine.
func (p *tcpPool) dial(now time.Duration) (*tcpConn, error) {
	if !p.group.mayOpen(len(p.conns) == 0) {
		return nil, ErrTooMany
	}
	c := newTCPConn(p, now)
	p.conns = append(p.conns, c)
	p.open[c] = struct{}{}
	p.group.routines.Go(c.run)
	return c, nil
}

// forget takes a closed connection out.
func (p *tcpPool) forget(c *tcpConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.open[c]; ok {
		delete(p.open, c)
		p.group.open.Add(-1)
	}
}

// end lets nothing more be sent. What is in flight may still be answered.
func (p *tcpPool) end(cause error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended == nil {
		p.ended = cause
	}
}

// signal tells everything in flight that its chances are bad.
func (p *tcpPool) signal(cause error) {
	for _, c := range p.all() {
		c.signal(cause)
	}
}

// close ends everything in flight. The pool must have been ended.
func (p *tcpPool) close(cause error) {
	for _, c := range p.all() {
		c.close(cause)
	}
}

func (p *tcpPool) all() []*tcpConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]*tcpConn, 0, len(p.open))
	for c := range p.open {
		all = append(all, c)
	}
	return all
}

// connLoad is what the choice knows of one connection.
type connLoad struct {
	inFlight int
	waited   time.Duration // by the oldest query in flight
}

// Results of chooseConn besides an index.
const (
	openConn = -1 // open another
	noConn   = -2 // all are full
)

// chooseConn chooses the connection for a query: the one with the least in
// flight, but another is opened, up to most, when that one is full or its
// oldest query has waited longer than patience: servers that answer in order
// would let ours wait behind it.
func chooseConn(loads []connLoad, depth, most int, patience time.Duration, fresh bool) int {
	best := -1
	for i, l := range loads {
		if l.inFlight < depth && (best < 0 || l.inFlight < loads[best].inFlight) {
			best = i
		}
	}
	more := len(loads) < most
	switch {
	case fresh && more:
		return openConn
	case best >= 0 && (loads[best].inFlight == 0 || loads[best].waited <= patience || !more):
		return best
	case more:
		return openConn
	}
	return noConn
}
