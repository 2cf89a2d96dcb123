package access

import (
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	// ways is how many clients share a lock: as many as are compared in less
	// time than the lock takes.
	ways           = 8
	defaultClients = 4096
	worst          = 5
)

// id is a client: the bits of an address that make one, IPv4 ones as IPv6.
type id struct{ high, low uint64 }

// client is what is known of one.
type client struct {
	id id
	// full is when its bucket will be full again: each query puts that off by
	// interval. A time that has passed stands for a full bucket.
	full     time.Duration
	inFlight int32
	refused  uint32 // times
}

// idle reports whether forgetting the client changes nothing.
func (c *client) idle(now time.Duration) bool { return c.full <= now && c.inFlight == 0 }

// set is the clients whose addresses meet in the table, and one for all those
// that there is no room for.
type set struct {
	mu      sync.Mutex
	clients [ways]client
	others  client
}

type table struct {
	sets     []set
	seed     maphash.Seed
	mask     [2]id         // of IPv4 and IPv6 addresses
	interval time.Duration // between two queries at the rate; 0 for no rate
	depth    time.Duration // of the bucket: interval times the burst
}

func newTable(cfg *Config) *table {
	clients := cmp.Or(cfg.Clients, defaultClients)
	n := 1 << bits.Len(uint(max(clients-1, ways-1)/ways))
	t := &table{sets: make([]set, n), seed: maphash.MakeSeed()}
	t.mask = [2]id{
		maskOf(128 - 32 + clamp(cfg.IPv4Bits, 32)),
		maskOf(clamp(cfg.IPv6Bits, 128)),
	}
	if cfg.Rate > 0 {
		t.interval = max(time.Second/time.Duration(cfg.Rate), 1)
		t.depth = t.interval * time.Duration(cmp.Or(cfg.Burst, 2*cfg.Rate))
	}
	return t
}

// clamp is n within 1 to most, and most for none.
func clamp(n, most int) int {
	if n < 1 {
		return most
	}
	return min(n, most)
}

// maskOf has the first n of 128 bits set.
func maskOf(n int) id {
	return id{^uint64(0) << max(64-n, 0), ^uint64(0) << (128 - max(n, 64))}
}

func (t *table) idOf(addr netip.Addr) id {
	b, mask := addr.As16(), t.mask[1]
	if addr.Is4() {
		mask = t.mask[0]
	}
	return id{binary.BigEndian.Uint64(b[:8]) & mask.high, binary.BigEndian.Uint64(b[8:]) & mask.low}
}

// set is where a client is to be found. The hash is keyed: nobody can tell which
// addresses meet.
func (t *table) set(c id) *set {
	return &t.sets[maphash.Comparable(t.seed, c)&uint64(len(t.sets)-1)]
}

// take takes a query's part of the client's bucket; false when it is empty.
func (t *table) take(addr netip.Addr, now time.Duration) bool {
	key := t.idOf(addr)
	s := t.set(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.find(key, now)
	full := max(c.full, now) + t.interval
	if full-now > t.depth {
		c.refused++
		return false
	}
	c.full = full
	return true
}

// enter counts one more in flight, below share of them.
func (t *table) enter(addr netip.Addr, share int32, now time.Duration) (Seat, bool) {
	key := t.idOf(addr)
	s := t.set(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.find(key, now)
	if c.inFlight >= share {
		c.refused++
		return Seat{}, false
	}
	c.inFlight++
	return Seat{client: c, set: s}, true
}

// find returns what is known of a client. A new one takes the place of an idle
// one, of these the one that has been so for longest. The caller holds the lock.
func (s *set) find(key id, now time.Duration) *client {
	var free *client
	for i := range s.clients {
		c := &s.clients[i]
		if c.id == key {
			return c
		}
		if c.idle(now) && (free == nil || c.full < free.full) {
			free = c
		}
	}
	if free == nil {
		return &s.others
	}
	*free = client{id: key}
	return free
}

func (t *table) read(sum *Stats, now time.Duration) {
	sum.Most = ways * len(t.sets)
	for i := range t.sets {
		s := &t.sets[i]
		s.mu.Lock()
		for _, c := range s.clients {
			if !c.idle(now) {
				sum.Clients++
			}
			if c.refused > 0 {
				sum.Worst = append(sum.Worst, Refused{t.prefixOf(c.id), uint64(c.refused)})
			}
		}
		s.mu.Unlock()
	}
	slices.SortFunc(sum.Worst, func(a, b Refused) int {
		return cmp.Or(cmp.Compare(b.Times, a.Times), a.Client.Addr().Compare(b.Client.Addr()))
	})
	sum.Worst = sum.Worst[:min(len(sum.Worst), worst)]
}

// prefixOf is a client as people write it.
func (t *table) prefixOf(c id) netip.Prefix {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], c.high)
	binary.BigEndian.PutUint64(b[8:], c.low)
	addr, mask, extra := netip.AddrFrom16(b), t.mask[1], 0
	if addr.Is4In6() {
		addr, mask, extra = addr.Unmap(), t.mask[0], 96
	}
	return netip.PrefixFrom(addr, bits.OnesCount64(mask.high)+bits.OnesCount64(mask.low)-extra)
}
