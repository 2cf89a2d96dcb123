package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/nodens-dns/nodens/deploy/guard"
	"github.com/nodens-dns/nodens/topology"
)

// What the daemon has to do with its guard: it tells the sockets and the servers, hears
// what was kept, and says when it leaves. Without one it works all the same.

// newInstance names this run of the daemon.
func newInstance() string { return fmt.Sprintf("%d-%08x", os.Getpid(), rand.Uint32()) }

// connectGuard begins the connection. The guard takes its end for our death, so it ends
// last, when the function that is returned is called.
func (d *daemon) connectGuard(c Config) (disconnect func()) {
	if !c.Host.guarded() {
		return func() {}
	}
	d.guard = guard.NewClient(guard.ClientConfig{
		Socket: c.Host.Socket, Instance: d.instance, Version: d.build.Version, Log: d.log,
	})
	connection := start(task{"guard", d.guard.Run}, nil)
	return func() { _ = connection.end(context.Background()) } // it returns nil
}

// How long the guard has to put the addresses on the host, at a start of ours and when it
// follows the same change of the configuration, and how often that is looked at.
const (
	startPatience  = 15 * time.Second
	changePatience = 2 * time.Second
	addressLook    = 5 * time.Millisecond
)

// awaitAddresses waits until the guard has put the listen addresses on the host, at a
// start. That they are not there is for listening to tell.
func (d *daemon) awaitAddresses(ctx context.Context, c *Config) {
	missing := d.missesAddresses(ctx, c, time.Second)
	if len(missing) == 0 || ctx.Err() != nil {
		return
	}
	d.log.Warn("the guard has not put the listen addresses on this host yet; see what it logs, in this process or as 'nodens guard'", zap.Stringers("missing", missing))
	defer d.serveSetup()()
	d.missesAddresses(ctx, c, startPatience)
}

// missesAddresses waits for the listen addresses that a guard puts on the host, and
// returns those that do not come.
func (d *daemon) missesAddresses(ctx context.Context, c *Config, patience time.Duration) []netip.Addr {
	if !c.Host.guarded() {
		return nil
	}
	for limit := time.Now().Add(patience); ; time.Sleep(addressLook) {
		missing := absent(c.Listen, d.own())
		if len(missing) == 0 || ctx.Err() != nil || time.Now().After(limit) {
			return missing
		}
	}
}

// absent are the listen addresses that this machine does not have.
func absent(listen []netip.AddrPort, own []netip.Addr) []netip.Addr {
	var missing []netip.Addr
	for _, l := range listen {
		if !l.Addr().IsUnspecified() && !l.Addr().IsLoopback() && !slices.Contains(own, l.Addr()) {
			missing = append(missing, l.Addr())
		}
	}
	return missing
}

// tellSockets tells the guard which sockets should answer its probes. Those that
// wait for their port are told when they have it.
func (d *daemon) tellSockets() {
	if d.guard == nil {
		return
	}
	var udp, tcp []guard.Socket
	for _, l := range d.current.Load().listens {
		first, sockets := int(l.spec.stripe()), l.spec.limits.UDPSockets
		for i := range sockets {
			if l.udp.Load() != nil {
				udp = append(udp, guard.Socket{Address: l.address(), Number: first + i})
			}
		}
		if l.tcp.Load() != nil {
			tcp = append(tcp, guard.Socket{Address: l.address(), Number: first + sockets})
		}
	}
	d.guard.Sockets(udp, tcp)
}

// leavePatience is how long a guard has to take us out of its plans.
const leavePatience = 300 * time.Millisecond

// leave returns when packets born on this node go elsewhere.
func (d *daemon) leave() {
	if d.guard == nil {
		return
	}
	limit, cancel := context.WithTimeout(context.Background(), leavePatience)
	defer cancel()
	d.guard.Leave(limit)
}

// publisher hands a table of endpoints to the group, and to the guard if this route is
// the one that knows the cluster's names.
func (r *route) publisher(b base) func(topology.Table) {
	if !r.spec.guarded {
		return func(t topology.Table) { r.group.Update(tableOf(t)) }
	}
	return func(t topology.Table) {
		r.group.Update(tableOf(t))
		b.guard.Publish(fallbackOf(t, &r.spec.config))
	}
}

// fallbackOf is who takes the queries while we are away: the endpoints. The address of
// a Service does not do, since the kernel translates a packet once.
func fallbackOf(t topology.Table, r *RouteConfig) guard.Table {
	out := guard.Table{Probe: r.Probe, Tiers: make([][]guard.Server, len(t.Tiers)), Provisional: t.Provisional}
	for i, tier := range t.Tiers {
		for _, m := range tier {
			for _, s := range []guard.Server{{UDP: m.UDP, TCP: m.TCP}, {UDP: m.AltUDP, TCP: m.AltTCP}} {
				if known := s.UDP.IsValid() || s.TCP.IsValid(); known && !slices.Contains(r.Topology.ClusterIP, s.UDP) {
					out.Tiers[i] = append(out.Tiers[i], s)
				}
			}
		}
	}
	return out
}

// keptPatience is how long a start waits for what the guard kept: it tells at once,
// if it is there.
const keptPatience = 150 * time.Millisecond

// guardStore keeps a snapshot of endpoints with the guard, which may write on the host.
type guardStore struct {
	guard *guard.Client
	key   string
}

var _ topology.Store = guardStore{}

// Name implements [topology.Store].
func (s guardStore) Name() string { return s.key + ", kept by the guard" }

// Load implements [topology.Store].
func (s guardStore) Load(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, keptPatience)
	defer cancel()
	return s.guard.Kept(ctx, s.key), nil
}

// Save implements [topology.Store].
func (s guardStore) Save(data []byte) error {
	if !s.guard.Status().Connected {
		return errors.New("there is no connection to the guard")
	}
	s.guard.Keep(s.key, data)
	return nil
}

// notify tells systemd, or whoever else started us and waits at NOTIFY_SOCKET. That
// nobody hears it changes nothing.
func notify(getenv func(string) string, state string) {
	path := getenv("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	conn, err := net.Dial("unixgram", path) // "@" begins an abstract name for both
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = conn.Write([]byte(state))
}
