package guard

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// The defaults of a Config.
const (
	DefaultSocket    = "/run/nodens-pod/guard.sock"
	DefaultLock      = "/run/nodens/guard.lock"
	DefaultEndpoints = "/var/lib/nodens/endpoints.json"
	DefaultUID       = 65532
	// DefaultMark has no bit that kube-proxy or a network add-on is known to use.
	DefaultMark = 0x35
)

// Host is the network of a node: *hostnet.Host, or *hostnet.Fake in tests.
type Host interface {
	Apply(s hostnet.State) (hostnet.Report, error)
	Read(s hostnet.State) (hostnet.Found, error)
	Hold(set hostnet.Set, ttl time.Duration, addrs ...netip.Addr) error
	Release(set hostnet.Set, addrs ...netip.Addr) error
	RemoveLeftovers(s hostnet.State) (hostnet.Report, error)
	Cleanup(s hostnet.State, lives func(netip.Addr) bool) (hostnet.Report, error)
	Watch(ctx context.Context, changed func()) error
}

// Asker puts questions to servers.
type Asker interface {
	// Witness asks whoever listens at an address, over "udp" or "tcp", who it is, from
	// an address of this host, or any if that is not valid, and a source port of its
	// own, until ctx ends.
	Witness(ctx context.Context, over string, from netip.Addr, at netip.AddrPort) (Witness, error)
	// Answers tells whether a server answers a question for the address of a name,
	// be it that there is none, before ctx ends.
	Answers(ctx context.Context, server netip.AddrPort, name string) bool
}

// Follow gives publish the servers of the fallback, and each change of them, until ctx
// ends. It may be called again when it has returned.
type Follow func(ctx context.Context, publish func(Table)) error

// Config is how a Guard is made.
type Config struct {
	// State is what the host should look like, in any mode but none, until
	// Guard.Change. The servers of its fallback are only used until serve, or Follow,
	// tells better ones.
	State hostnet.State
	// Host is where. Required.
	Host Host
	// Socket is the path at which serve connects. Default: DefaultSocket.
	Socket string
	// Lock is the path of the lock that makes one guard the owner of the node.
	// Default: DefaultLock.
	Lock string
	// Endpoints is the path of the file that keeps the servers of the fallback, and
	// what serve gives to keep, over a reboot. Default: DefaultEndpoints.
	Endpoints string
	// Follow tells who the servers of the fallback are while no serve does. Default:
	// nobody does; those that were told last stay.
	Follow Follow
	// UID is the user that serve runs as. The guard's own is accepted as well.
	// Default: 0, only its own.
	UID int
	// Teardown removes everything from the host when Run ends, except what a node-cache
	// of another user than UID works with. Default: it stays.
	Teardown bool
	// Failed hears of each failure to make the host what it should be, in the goroutine
	// that works: it returns at once. Default: nobody does.
	Failed func(error)
	// Version is told to serve, for its status. Default: none.
	Version string
	// Asker puts the questions. Default: over the network, with State.ProbeMark.
	Asker Asker
	// Now is the time since an epoch of the caller's choosing. Default: since New.
	Now func() time.Duration
	// Log gets what changes. Default: silent.
	Log *zap.Logger
}

func (c Config) withDefaults() (Config, error) {
	if c.Host == nil {
		return c, errors.New("guard: Config.Host must be set")
	}
	if c.State.Mode == hostnet.None {
		return c, errors.New("guard: in mode none there is nothing to guard: choose link-local or service, or do not start it")
	}
	if err := c.State.Validate(); err != nil {
		return c, fmt.Errorf("guard: %w", err)
	}
	if c.Socket == "" {
		c.Socket = DefaultSocket
	}
	if c.Lock == "" {
		c.Lock = DefaultLock
	}
	if c.Endpoints == "" {
		c.Endpoints = DefaultEndpoints
	}
	if c.State.Port == 0 {
		c.State.Port = hostnet.DefaultPort
	}
	if c.Asker == nil {
		c.Asker = network{c.State.ProbeMark}
	}
	if c.Now == nil {
		began := time.Now()
		c.Now = func() time.Duration { return time.Since(began) }
	}
	if c.Failed == nil {
		c.Failed = func(error) {}
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	return c, nil
}

// accepts tells whether a peer may be serve.
func (c *Config) accepts(uid uint32) bool {
	return uid == uint32(os.Geteuid()) || uid == uint32(c.UID)
}
