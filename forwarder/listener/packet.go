package listener

import (
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"
)

// packet is one client datagram with its buffers and its return address.
//
// A packet has one owner at any time: the pool, the batch that reads into it,
// or the goroutine that resolves it. Handing it to a miss takes it out of the
// batch, whose slot is refilled in the same statement. It is released to the
// pool exactly once.
type packet struct {
	// client is the return address as the kernel wrote it, replied to as it is
	// (it keeps the scope of a link-local client).
	client    unix.RawSockaddrInet6
	clientLen uint32
	// control tells which local address was asked; only a socket bound to an
	// unspecified address reads and sends it.
	control    [controlSize]byte
	controlLen int

	single    message // to send this packet's reply alone
	singleVec unix.Iovec

	released bool // guarded by the pool's lock
	length   int  // of the query

	query [MaxDatagram]byte
	reply [ReplySize]byte
}

// from returns the client's address and port. It is invalid when the kernel
// gave an address of another family.
func (p *packet) from() netip.AddrPort { return addrPortOf(&p.client) }

// pool keeps released packets for their next use. It keeps at most cap(free);
// the number in use is bounded by whoever takes them.
type pool struct {
	mu   sync.Mutex
	free []*packet
}

func newPool(keep int) *pool { return &pool{free: make([]*packet, 0, keep)} }

// take returns a packet that belongs to the caller. Its content is undefined.
func (o *pool) take() *packet {
	o.mu.Lock()
	defer o.mu.Unlock()
	last := len(o.free) - 1
	if last < 0 {
		return new(packet)
	}
	p := o.free[last]
	o.free[last] = nil
	o.free = o.free[:last]
	p.released = false
	return p
}

// release gives a packet back. The caller keeps no slice of it.
func (o *pool) release(p *packet) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if p.released {
		panic("listener: packet released twice")
	}
	p.released = true
	if poisoning {
		p.poison()
	}
	if len(o.free) < cap(o.free) {
		o.free = append(o.free, p)
	}
}

func (p *packet) poison() {
	for i := range p.query {
		p.query[i] = 0xDB
	}
	for i := range p.reply {
		p.reply[i] = 0xDB
	}
}
