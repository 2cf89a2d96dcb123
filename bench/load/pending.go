package load

import "time"

// slot is one query in flight. It holds no pointers, so that the garbage
// collector has nothing to look at.
type slot struct {
	want       want
	intended   time.Duration
	next, prev int32 // in the list of those in flight, or next in the list of the free
	phase      uint16
	id         uint16
	busy       bool
}

// pending is the queries in flight on one socket. Its slots' numbers are the low
// bits of the DNS IDs, the high bits count how often a slot was used, so that a
// reply to an earlier query of the same slot is told apart. Slots are used in
// turn: a free one rests as long as possible.
type pending struct {
	slots         []slot
	mask          uint16
	free, freeEnd int32 // first and last free slot, -1: none
	first, last   int32 // in flight, oldest first, -1: none
}

// newPending makes room for size queries, a power of two up to 65 536.
func newPending(size int) *pending {
	p := &pending{slots: make([]slot, size), mask: uint16(size - 1), freeEnd: int32(size - 1), first: -1, last: -1}
	for i := range p.slots {
		p.slots[i].next = int32(i + 1)
		p.slots[i].id = uint16(i)
	}
	p.slots[size-1].next = -1
	return p
}

// open takes a free slot and puts it in flight; -1 if there is none.
func (p *pending) open() int32 {
	i := p.free
	if i < 0 {
		return -1
	}
	s := &p.slots[i]
	if p.free = s.next; p.free < 0 {
		p.freeEnd = -1
	}
	s.busy, s.next, s.prev = true, -1, p.last
	s.id += p.mask + 1
	if p.last >= 0 {
		p.slots[p.last].next = i
	} else {
		p.first = i
	}
	p.last = i
	return i
}

// find gives the slot in flight that has this ID, or -1.
func (p *pending) find(id uint16) int32 {
	i := id & p.mask
	if s := &p.slots[i]; !s.busy || s.id != id {
		return -1
	}
	return int32(i)
}

// done takes slot i out of flight.
func (p *pending) done(i int32) {
	s := &p.slots[i]
	if s.prev >= 0 {
		p.slots[s.prev].next = s.next
	} else {
		p.first = s.next
	}
	if s.next >= 0 {
		p.slots[s.next].prev = s.prev
	} else {
		p.last = s.prev
	}
	s.busy, s.next = false, -1
	if p.freeEnd >= 0 {
		p.slots[p.freeEnd].next = i
	} else {
		p.free = i
	}
	p.freeEnd = i
}
