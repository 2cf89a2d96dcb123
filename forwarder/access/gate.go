package access

import (
	"errors"
	"net/netip"
	"sync/atomic"
	"time"
)

// Config is how a Gate is made. The zero value lets everybody in.
type Config struct {
	// Allow and Deny are prefixes of client addresses, IPv4 ones as such. The
	// longest that an address lies in decides, of two equal ones Allow; an
	// address in none is allowed unless Allow has any. Default none.
	Allow, Deny []netip.Prefix
	// Unlimited are prefixes that Rate and MaxInFlight do not hold for. Default
	// none.
	Unlimited []netip.Prefix

	// Rate is the queries per second of one client. Default 0: no bound.
	Rate int
	// Burst is how many queries a client may ask at once after a rest. Default
	// twice Rate.
	Burst int
	// MaxInFlight bounds the misses of one client. Default 0: no bound, and
	// nothing is shared.
	MaxInFlight int
	// Places is how many misses all clients may have in flight: what is shared.
	// At least 1 with MaxInFlight.
	Places int

	// IPv4Bits and IPv6Bits are how many bits of an address make a client, 1 to
	// 32 and 1 to 128. Default all.
	IPv4Bits, IPv6Bits int
	// Clients is how many are known at one time, rounded up to a power of two,
	// at least 8. One takes 36 bytes. Default 4096.
	Clients int
}

// Ruling is what becomes of a query.
type Ruling uint8

// Rulings.
const (
	Allowed Ruling = iota
	Denied         // the client is none of ours
	Limited        // it asks more than its share
	Rulings = int(Limited) + 1
)

// Gate rules on queries. Its methods are safe for concurrent use.
type Gate struct {
	rules     rules
	closed    bool // to addresses without a rule
	unlimited rules
	table     *table // nil without limits

	maxInFlight int32
	places      int32
	inFlight    atomic.Int32
}

// New makes a Gate. Its error says which number makes no sense.
func New(cfg Config) (*Gate, error) {
	if cfg.Rate < 0 || cfg.Burst < 0 || cfg.MaxInFlight < 0 {
		return nil, errors.New("access: Rate, Burst and MaxInFlight cannot be negative; 0 is no bound")
	}
	if cfg.MaxInFlight > 0 && cfg.Places < 1 {
		return nil, errors.New("access: MaxInFlight needs Places to share")
	}
	g := &Gate{
		rules:       newRules(cfg.Allow, cfg.Deny),
		closed:      len(cfg.Allow) > 0,
		unlimited:   newRules(cfg.Unlimited, nil),
		maxInFlight: int32(min(cfg.MaxInFlight, 1<<30)),
		places:      int32(min(cfg.Places, 1<<30)),
	}
	if cfg.Rate > 0 || cfg.MaxInFlight > 0 {
		g.table = newTable(&cfg)
	}
	return g, nil
}

// Admit rules on a query that came at now.
func (g *Gate) Admit(client netip.Addr, now time.Duration) Ruling {
	if g.Denies(client) {
		return Denied
	}
	if g.table == nil || g.table.interval == 0 || g.exempt(client) {
		return Allowed
	}
	if !g.table.take(client, now) {
		return Limited
	}
	return Allowed
}

// Denies reports whether a client may not ask at all.
func (g *Gate) Denies(client netip.Addr) bool {
	if len(g.rules) == 0 {
		return false
	}
	allow, found := g.rules.find(client)
	return found && !allow || !found && g.closed
}

// Seat is the place of a miss in flight, which Leave gives back.
type Seat struct {
	client *client // nil when nothing is counted
	set    *set
}

// Enter takes a place for a miss; false when the client has its share. Whoever
// gets one calls Leave.
func (g *Gate) Enter(addr netip.Addr, now time.Duration) (Seat, bool) {
	if g.maxInFlight == 0 || g.exempt(addr) {
		return Seat{}, true
	}
	// Two that come at once may both see the last place: the share is a measure,
	// the bound is the listener's.
	share := min(g.maxInFlight, g.places-g.inFlight.Load())
	seat, ok := g.table.enter(addr, share, now)
	if ok {
		g.inFlight.Add(1)
	}
	return seat, ok
}

// Leave gives a place back.
func (g *Gate) Leave(s Seat) {
	if s.client == nil {
		return
	}
	g.inFlight.Add(-1)
	s.set.mu.Lock()
	defer s.set.mu.Unlock()
	s.client.inFlight--
}

func (g *Gate) exempt(addr netip.Addr) bool {
	if len(g.unlimited) == 0 {
		return false
	}
	_, found := g.unlimited.find(addr)
	return found
}

// Stats is what the Gate knows now.
type Stats struct {
	// Clients are those with something to remember: a bucket that is not full,
	// or a miss in flight.
	Clients int
	// Most is how many can be known.
	Most int
	// InFlight counts the misses that take part in sharing.
	InFlight int
	// Worst are the clients refused most often, at most 5, of those not
	// forgotten since.
	Worst []Refused
}

// Refused says how often a client was over its limits.
type Refused struct {
	Client netip.Prefix
	Times  uint64
}

// Stats looks at the whole table.
func (g *Gate) Stats(now time.Duration) Stats {
	s := Stats{InFlight: int(g.inFlight.Load())}
	if g.table != nil {
		g.table.read(&s, now)
	}
	return s
}
