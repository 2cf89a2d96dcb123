package listener

import (
	"net/netip"
	"sync"
)

// slots is a counting semaphore: its capacity is the number of slots, its
// length the number in use.
type slots chan struct{}

func newSlots(n int) slots { return make(slots, n) }

// tryTake takes a slot if one is free.
func (s slots) tryTake() bool {
	select {
	case s <- struct{}{}:
		return true
	default:
		return false
	}
}

// take waits for a slot, or until gone is closed: then it reports false.
func (s slots) take(gone <-chan struct{}) bool {
	select {
	case s <- struct{}{}:
		return true
	case <-gone:
		return false
	}
}

// give returns a slot.
func (s slots) give() { <-s }

func (s slots) inUse() int { return len(s) }

// admission bounds the open connections: all of them, and those of one client.
type admission struct {
	total, perClient int

	mu      sync.Mutex
	open    int
	clients map[netip.Addr]int // only clients with a connection
}

func newAdmission(total, perClient int) *admission {
	return &admission{total: total, perClient: perClient, clients: make(map[netip.Addr]int)}
}

// enter counts one connection of client in, unless that would pass a bound.
func (a *admission) enter(client netip.Addr) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open >= a.total || a.clients[client] >= a.perClient {
		return false
	}
	a.open++
	a.clients[client]++
	return true
}

// leave counts one connection of client out.
func (a *admission) leave(client netip.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open--
	if a.clients[client]--; a.clients[client] == 0 {
		delete(a.clients, client)
	}
}

// inUse returns the number of open connections.
func (a *admission) inUse() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.open
}

// free returns the share of connections that may still be opened, in percent.
func (a *admission) free() int {
	return 100 - 100*a.inUse()/a.total
}
