package load

import (
	"encoding/binary"
	"time"
)

// slot is one query in flight. It holds no pointers, so that the garbage
// collector has nothing to look at.
type slot struct {
	want       want
	intended   time.Duration
	sent       time.Duration // the last datagram; the first counts as sent when it was meant to be
	next, prev int32         // in the list of those in flight, or next in the list of the free
	phase      uint16
	id         uint16
	busy       bool
	edns       bool
	sends      uint8 // datagrams so far, apart from extra ones
	extra      uint8 // datagrams sent because of SERVFAIL alone
}

// pending is the queries in flight on one socket. Its slots' numbers are the low
// bits of the DNS IDs, the high bits count how often a slot was used, so that a
// reply to an earlier query of the same slot is told apart. Slots are used in
// turn: a free one rests as long as possible.
type pending struct {
	slots         []slot
	texts         []byte // the queries as sent, maxQuery octets for each slot; nil if none is sent twice
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

// keepTexts makes room for the queries themselves.
func (p *pending) keepTexts() { p.texts = make([]byte, len(p.slots)*maxQuery) }

// keep notes the query of slot i, if queries are kept.
func (p *pending) keep(i int32, msg []byte) {
	if p.texts != nil {
		copy(p.texts[int(i)*maxQuery:], msg)
	}
}

// text is the query of slot i, with its length in front.
func (p *pending) text(i int32) []byte {
	t := p.texts[int(i)*maxQuery:]
	return t[:2+int(binary.BigEndian.Uint16(t))]
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
	s.busy, s.sends, s.extra = true, 1, 0
	s.id += p.mask + 1
	p.link(i)
	return i
}

// link puts slot i at the end of those in flight.
func (p *pending) link(i int32) {
	s := &p.slots[i]
	s.next, s.prev = -1, p.last
	if p.last >= 0 {
		p.slots[p.last].next = i
	} else {
		p.first = i
	}
	p.last = i
}

// unlink takes slot i out of the list of those in flight.
func (p *pending) unlink(i int32) {
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
}

// later makes slot i the youngest in flight.
func (p *pending) later(i int32) {
	p.unlink(i)
	p.link(i)
}

// find gives the slot in flight that has this ID, or -1.
func (p *pending) find(id uint16) int32 {
	i := id & p.mask
	if s := &p.slots[i]; !s.busy || s.id != id {
		return -1
	}
	return int32(i)
}

// waiting keeps those of the queries in msgs, each with its length in front, that
// are in flight.
func (p *pending) waiting(msgs []byte) []byte {
	kept := msgs[:0]
	for len(msgs) > 0 {
		size := 2 + int(binary.BigEndian.Uint16(msgs))
		if p.find(binary.BigEndian.Uint16(msgs[2:])) >= 0 {
			kept = append(kept, msgs[:size]...)
		}
		msgs = msgs[size:]
	}
	return kept
}

// done takes slot i out of flight.
func (p *pending) done(i int32) {
	p.unlink(i)
	s := &p.slots[i]
	s.busy, s.next = false, -1
	if p.freeEnd >= 0 {
		p.slots[p.freeEnd].next = i
	} else {
		p.free = i
	}
	p.freeEnd = i
}
