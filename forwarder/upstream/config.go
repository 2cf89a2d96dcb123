package upstream

import (
	"context"
	"crypto/x509"
	"math/rand/v2"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

// Policy is how a target is chosen among equals.
type Policy uint8

// Policies.
const (
	// P2C takes two at random and of these the one with less load and delay.
	P2C Policy = iota
	// Random takes any.
	Random
	// Fastest takes the one with the least load and delay of all.
	Fastest
	// Sequential takes the first in the table's order.
	Sequential
)

// Config describes a group. Zero means the default.
type Config struct {
	// Now is the time since an epoch of the caller's choosing, and never goes
	// back. Default: since New was called.
	Now func() time.Duration
	// Random gives 64 random bits that nobody can guess, in any number of
	// goroutines at the same time: IDs, sockets, the letters and labels of names,
	// and all choices by chance come from it. Default: ChaCha8, seeded by the
	// system.
	Random func() uint64
	// Dial opens what goes to servers, network "udp" or "tcp", and gives up when
	// ctx ends; for udp it gives a connected socket of the kernel. Default: as
	// [net.Dialer], without keepalives.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// External says that the servers are outside the cluster: names take long
	// to resolve there and strangers may forge replies. It changes defaults.
	External bool
	// Policy is how a target is chosen inside a tier. Default P2C.
	Policy Policy
	// ForceTCP asks over TCP only.
	ForceTCP bool

	// Node is the name of the node that asks. It spreads the nodes over the
	// servers of a zone and of a cluster. Default: by chance.
	Node string
	// Fast are the zones whose names the servers know themselves, as text. How
	// these are answered says how the servers are; other names say nothing of
	// them. Default: all names. Has no effect with External.
	Fast []string
	// Probe is the name asked to see how a server is, as text: a name that only
	// a server in order has an A record for. Without it, and with External, only
	// servers that failed or fell silent are probed, by default for the NS records
	// of the root.
	Probe string
	// ProbeAddr is the address that this name has as far as is known. A server
	// that gives it another one is another cluster's, and not brought into use,
	// unless no server ever gave it this one. Default: any address will do.
	ProbeAddr netip.Addr

	// KeepCase asks external servers over UDP in the client's letter case. By
	// default it is mixed, because a forger then has to guess it; servers that do
	// not repeat it are found out. Has no effect without External.
	KeepCase bool
	// Notice is told what is amiss with a server and shows in no reply:
	// ErrCertificate, wrapped with the reason, once for each certificate and at
	// most once a minute, and ErrLetters once. The query or connection waits for
	// it. Default: nobody is told.
	Notice func(server netip.AddrPort, what error)
	// Roots are the authorities that members with a TLSName are verified with.
	// Default: the system's.
	Roots *x509.CertPool
	// PacketRate bounds the packets sent in a second, retries, probes and what
	// goes over TCP included: some networks drop what is more. Then there are no
	// hedges, and queries wait for their turn, in order, for at most half of what
	// is left of their budget: the reply takes time, too. Default 0: no bound.
	PacketRate int

	// LoopZone has each server asked now and then for random names below this
	// zone, as text, which is one of the route's: see Looped. Default: no checks.
	LoopZone string

	// Budget is the longest an exchange takes, 100 ms to 30 s. Default 2 s,
	// below the time after which the most impatient clients ask again; external
	// 4 s: clients give up after 5 s.
	Budget time.Duration
	// SlowBudget is the same for names that are not in Fast. Default 4 s, at
	// least Budget.
	SlowBudget time.Duration
	// Attempts is how many times one query is put, at different targets while
	// there are any, 1 to 3. Default 3.
	Attempts int
	// RetryMin and RetryMax bound the time after which a silent target's query
	// is put to another. Default 30 ms and 100 ms, external 100 ms and 400 ms.
	// While a server answers names in Fast later than that, its silence is borne
	// for as long as it took, at most half of Budget.
	RetryMin, RetryMax time.Duration
	// Spill is how many queries for names in Fast a server of the node tier may
	// have in flight before some go on to the next tier, 8 to 1024; one of the
	// zone may have twice as many. Default 0: as many as it answers in 20 ms, 8
	// to 128, and 32 until that is known.
	Spill int

	// UDPSize is the reply size we advertise, in bytes. Default 1232, which
	// needs no fragments. Larger replies are taken all the same.
	UDPSize uint16
	// Sockets is how many UDP sockets one address gets, opened when needed.
	// Each has a random port of its own. Default 4, external 32.
	Sockets int
	// SocketAge is how long a UDP socket is used, within a quarter. Default 30 s.
	SocketAge time.Duration
	// SocketQueries is how many queries a UDP socket carries in its life, at
	// most 32768, so that free IDs are easy to find. Default 10000.
	SocketQueries int

	// TCPConns is how many TCP connections one address gets, opened when needed.
	// Default 32: with TCPDepth it is also how many truncated replies may be asked
	// for again at a time; beyond it the truncated ones are returned.
	TCPConns int
	// TCPDepth is how many queries may be in flight on one connection. Default
	// 4: many servers answer a connection's queries one after the other.
	TCPDepth int
	// TCPIdle is how long a connection may be idle. Default 8 s, below the 10 s
	// after which CoreDNS closes it.
	TCPIdle time.Duration
	// TCPAge is how long a connection is used, within a quarter, so that load
	// finds new servers behind one address. Default 60 s.
	TCPAge time.Duration
	// TCPDial is how long connecting may take. Default 1 s.
	TCPDial time.Duration

	// Before is the group that this one takes over from: they count together, for
	// the route and for each server that is in both, so that no counter falls. It
	// must be open. Default none.
	Before *Group

	// MaxOpen bounds the sockets that the group has open, of all kinds, but for
	// the first one to each address. Default 1024.
	MaxOpen int
	// RemoveLinger is how long the sockets of a removed target stay open for
	// answers on their way. Default 2 s.
	RemoveLinger time.Duration
	// PlainFor is how long a server that does not understand EDNS is asked
	// without, before EDNS is tried again. Default 60 s.
	PlainFor time.Duration
}

const slowBudget = 4 * time.Second

func (c Config) withDefaults() Config {
	start := time.Now()
	sockets, budget := 4, 2*time.Second
	retryMin, retryMax := 30*time.Millisecond, 100*time.Millisecond
	if c.External {
		sockets, budget = 32, slowBudget
		retryMin, retryMax = 100*time.Millisecond, 400*time.Millisecond
	}
	if c.Now == nil {
		c.Now = func() time.Duration { return time.Since(start) }
	}
	if c.Random == nil {
		c.Random = rand.Uint64
	}
	if c.Dial == nil {
		c.Dial = (&net.Dialer{KeepAlive: -1}).DialContext
	}
	if c.Notice == nil {
		c.Notice = func(netip.AddrPort, error) {}
	}
	if c.Node == "" {
		c.Node = strconv.FormatUint(c.Random(), 36)
	}
	setDefault(&c.Budget, budget)
	setDefault(&c.SlowBudget, max(slowBudget, c.Budget))
	setDefault(&c.Attempts, maxAttempts)
	c.Attempts = min(c.Attempts, maxAttempts)
	setDefault(&c.RetryMin, retryMin)
	setDefault(&c.RetryMax, retryMax)
	c.RetryMax = max(c.RetryMax, c.RetryMin)
	setDefault(&c.UDPSize, 1232)
	setDefault(&c.Sockets, sockets)
	setDefault(&c.SocketAge, 30*time.Second)
	setDefault(&c.SocketQueries, 10000)
	c.SocketQueries = min(c.SocketQueries, mostQueries)
	setDefault(&c.TCPConns, 32)
	setDefault(&c.TCPDepth, 4)
	setDefault(&c.TCPIdle, 8*time.Second)
	setDefault(&c.TCPAge, 60*time.Second)
	setDefault(&c.TCPDial, time.Second)
	setDefault(&c.MaxOpen, 1024)
	setDefault(&c.RemoveLinger, 2*time.Second)
	setDefault(&c.PlainFor, 60*time.Second)
	return c
}

// retryBounds bound the time for which a silence is borne.
func (c *Config) retryBounds(of class) (low, high time.Duration) {
	if of == slow && !c.External {
		return max(c.RetryMin, 100*time.Millisecond), max(c.RetryMax, 400*time.Millisecond)
	}
	return c.RetryMin, c.RetryMax
}

// packetLimit is what PacketRate comes to.
func (c *Config) packetLimit() (interval time.Duration, burst int) {
	return time.Second / time.Duration(c.PacketRate), max(c.PacketRate/packetBurst, leastBurst)
}

// probeType is the type that a probe asks for.
func (c *Config) probeType() wire.Type {
	if c.Probe == "" || c.Probe == "." {
		return wire.TypeNS
	}
	return addrType(c.ProbeAddr)
}

func setDefault[T int | uint16 | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}
