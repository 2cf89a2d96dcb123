package listener

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// A full listener makes room: it evicts the connection that is missed least,
// and admits the new one. Refusing instead would let a few clients that only
// hold connections shut out all others.

// youth is how long a connection that has not asked yet is spared: whoever asks
// at once has asked by then, even if both ends had to wait for a processor.
const youth = 100 * time.Millisecond

// class says what an open connection is doing.
type class uint8

const (
	silent  class = iota // it has not sent a whole query yet
	idle                 // all it asked is answered
	busy                 // something it asked is being answered
	classes              // the number of classes
)

// seat is the place of a connection among the open ones. All of it belongs to
// the admission, and is guarded by its lock.
type seat struct {
	conn     *conn
	client   *client
	class    class
	work     int           // its reader while that does not wait, and its misses
	since    time.Duration // when it opened or last sent a query
	left     bool
	all, own node // in the lists of everyone and of its client
}

// lists are seats by class, the oldest first.
type lists [classes]list

// harmless returns the seat whose connection goes first: the one that waits
// longest for a query without having sent any, else the one that waits longest
// after one; nil if there is none.
func (l *lists) harmless(now time.Duration) *seat {
	if s := l[silent].first(); s != nil && now-s.since >= youth {
		return s
	}
	return l[idle].first()
}

// dispensable returns the seat that is taken for a new connection: a harmless
// one, else the oldest.
func (l *lists) dispensable(now time.Duration) *seat {
	if s := l.harmless(now); s != nil {
		return s
	}
	young, working := l[silent].first(), l[busy].first()
	if young == nil || working != nil && working.since <= young.since {
		return working
	}
	return young
}

// client is an address with at least one open connection.
type client struct {
	addr  netip.Addr
	open  int
	seats lists
}

// admission bounds the open connections: all of them, and those of one client.
// Its lock is held for a few assignments only, and no other is taken under it.
type admission struct {
	total, perClient int
	open             atomic.Int64 // changed under the lock

	mu      sync.Mutex
	seats   lists
	clients map[netip.Addr]*client
}

func newAdmission(total, perClient int) *admission {
	return &admission{total: total, perClient: perClient, clients: make(map[netip.Addr]*client)}
}

// enter gives c a seat. If c is one too many, of its client or of all, it takes
// the seat of evicted, which the caller aborts.
func (a *admission) enter(c *conn, now time.Duration) (evicted *conn, was class) {
	a.mu.Lock()
	defer a.mu.Unlock()
	addr := c.from.Client.Addr()
	who := a.clients[addr]
	switch {
	case who != nil && who.open >= a.perClient:
		evicted, was = a.evict(who.seats.dispensable(now))
	case int(a.open.Load()) >= a.total:
		evicted, was = a.evict(a.seats.dispensable(now))
	}
	if who = a.clients[addr]; who == nil {
		who = &client{addr: addr}
		a.clients[addr] = who
	}
	s := &c.seat
	s.conn, s.client, s.since = c, who, now
	s.all.seat, s.own.seat = s, s
	a.open.Add(1)
	who.open++
	a.push(s, silent)
	return evicted, was
}

// relieve takes a seat from a connection that loses no query by that, if there
// is one. The caller aborts it.
func (a *admission) relieve(now time.Duration) (evicted *conn, was class) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.evict(a.seats.harmless(now))
}

// begin tells that a query of the connection is being worked at.
func (a *admission) begin(s *seat, now time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s.work++
	s.since = now
	a.move(s, busy)
}

// finish tells the end of what begin told.
func (a *admission) finish(s *seat) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.work--; s.work == 0 {
		a.move(s, idle)
	}
}

// leave gives the seat back.
func (a *admission) leave(s *seat) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !s.left {
		a.remove(s)
	}
}

// conns returns the connections that have a seat.
func (a *admission) conns() []*conn {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []*conn
	for i := range a.seats {
		for s := range a.seats[i].each {
			all = append(all, s.conn)
		}
	}
	return all
}

// inUse returns the number of open connections.
func (a *admission) inUse() int { return int(a.open.Load()) }

// free returns the share of connections that may still be opened, in percent.
func (a *admission) free() int { return 100 - 100*a.inUse()/a.total }

// The rest is called with the lock held.

// evict takes the seat s away, unless it is nil.
func (a *admission) evict(s *seat) (*conn, class) {
	if s == nil {
		return nil, 0
	}
	a.remove(s)
	return s.conn, s.class
}

func (a *admission) push(s *seat, to class) {
	s.class = to
	a.seats[to].push(&s.all)
	s.client.seats[to].push(&s.own)
}

func (a *admission) move(s *seat, to class) {
	if s.left {
		return
	}
	s.all.unlink()
	s.own.unlink()
	a.push(s, to)
}

func (a *admission) remove(s *seat) {
	s.left = true
	s.all.unlink()
	s.own.unlink()
	a.open.Add(-1)
	if s.client.open--; s.client.open == 0 {
		delete(a.clients, s.client.addr)
	}
}

// list is a ring of nodes through its head. It must not be copied. Its zero
// value is empty.
type list struct{ head node }

// node is the place of a seat in one list.
type node struct {
	prev, next *node
	seat       *seat // nil in the head of a list
}

// push makes n, which is in no list, the last.
func (l *list) push(n *node) {
	if l.head.next == nil {
		l.head.prev, l.head.next = &l.head, &l.head
	}
	n.prev, n.next = l.head.prev, &l.head
	n.prev.next, l.head.prev = n, n
}

// unlink takes n out of its list.
func (n *node) unlink() { n.prev.next, n.next.prev = n.next, n.prev }

// first returns the seat that was pushed before the others, nil if there is none.
func (l *list) first() *seat {
	if l.head.next == nil {
		return nil
	}
	return l.head.next.seat
}

// each yields the seats in their order.
func (l *list) each(yield func(*seat) bool) {
	for n := l.head.next; n != nil && n.seat != nil && yield(n.seat); n = n.next {
	}
}
