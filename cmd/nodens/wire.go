package main

import (
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/nodens-dns/nodens/deploy/guard"
	"github.com/nodens-dns/nodens/forwarder"
	"github.com/nodens-dns/nodens/forwarder/access"
	"github.com/nodens-dns/nodens/forwarder/cache"
	"github.com/nodens-dns/nodens/forwarder/rules"
	"github.com/nodens-dns/nodens/forwarder/upstream"
	"github.com/nodens-dns/nodens/topology"
)

// base is what every part is made with.
type base struct {
	now func() time.Duration
	log *zap.Logger
	// own are the addresses of this machine now.
	own func() []netip.Addr
	// clients are the connections to API servers, one for each.
	clients *clients
	// instance names this run; guard is nil where there is none.
	instance string
	guard    *guard.Client
	// sockets bounds those that a route has to its servers; 0 = the process has plenty.
	sockets int
	// taps are those who watch queries, whatever the configuration.
	taps *forwarder.Taps
}

// Lifetimes that are no settings: the time for which a failure is remembered
// bounds how fast an upstream in trouble is asked again, and how fast its
// recovery is seen.
const (
	failureTTL = time.Second
	staleTTL   = 30 * time.Second
	recheck    = 5 * time.Second
)

// routeSpec is everything a route is made of: as long as it is the same, a
// reload keeps the route with its sockets and what it knows of its servers.
// What is kept and made of its answers is the forwarder's part and not said here,
// but for the hosts, whose file is followed.
type routeSpec struct {
	config RouteConfig
	node   NodeConfig
	listen []netip.AddrPort

	kubernetes KubernetesConfig
	// guarded says that the guard's fallback is made of these servers.
	guarded bool
}

// route is the servers of some zones. Only the group is there for every kind.
type route struct {
	feed
	group   *upstream.Group
	hosts   *rules.Hosts // nil without any
	hostsAt atomic.Int64 // when they were taken over, in seconds since 1970
}

// newRoute makes a route. Its group goes on with the counters of the one before,
// which may be nil.
func newRoute(spec routeSpec, before *upstream.Group, b base) (*route, error) {
	c, asks := spec.config, groupConfig(spec, b)
	asks.Before = before
	r := &route{feed: feed{spec: spec}, group: upstream.New(asks)}
	b.log = b.log.With(zap.Strings("zones", c.Zones))
	var err error
	switch {
	case c.topological():
		r.publish = r.publisher(b)
		err = r.follow(b)
	case c.ResolvConf != "":
		err = r.followResolvConf(b)
	default:
		r.group.Update(plainTable(c.Servers, c.TLSNames))
		r.ready = closed()
	}
	if err != nil {
		return nil, fmt.Errorf("route for %s: %w", c.Zones[0], err)
	}
	r.followHosts(b)
	return r, nil
}

// groupConfig is how the servers of a route are asked.
func groupConfig(spec routeSpec, b base) upstream.Config {
	c := &spec.config
	config := upstream.Config{
		Now:        b.now,
		External:   !c.topological(),
		Node:       spec.node.Name,
		Probe:      c.Probe,
		LoopZone:   c.Zones[0],
		Policy:     policies()[c.Choose],
		ForceTCP:   c.ForceTCP,
		Budget:     c.Timeout,
		SlowBudget: c.patience(),
		Sockets:    c.SocketsPerServer,
		KeepCase:   !c.MixCase,
		PacketRate: c.PacketsPerSecond,
		MaxOpen:    b.sockets,
		Notice: func(server netip.AddrPort, what error) {
			b.log.Warn(what.Error(), zap.Stringer("server", server), zap.Strings("zones", c.Zones))
		},
	}
	if c.topological() {
		config.Fast = c.fastZones()
		if who := identity(c.Zones); c.Probe == who.name {
			config.ProbeAddr = who.server
		}
	}
	return config
}

func policies() map[string]upstream.Policy {
	return map[string]upstream.Policy{
		"balanced": upstream.P2C, "fastest": upstream.Fastest, "random": upstream.Random, "sequential": upstream.Sequential,
	}
}

// followResolvConf refuses a file without a usable nameserver: later it may
// become empty, but a start without any server is a mistake to be seen.
func (r *route) followResolvConf(b base) error {
	follow := resolvConf{
		path: r.spec.config.ResolvConf, listen: r.spec.listen, own: b.own, log: b.log,
		publish: func(servers []netip.AddrPort) { r.group.Update(plainTable(servers, nil)) },
	}
	servers, left, err := follow.read()
	if warning := follow.warning(left, servers, err); len(servers) == 0 {
		return errors.New(warning)
	}
	r.group.Update(plainTable(servers, nil))
	r.ready = closed()
	r.tasks = []task{{"resolv.conf", follow.run}}
	return nil
}

// plainTable is the table of servers that have no distance. Those with a name
// are asked over TLS.
func plainTable(servers []netip.AddrPort, names map[netip.AddrPort]string) upstream.Table {
	var t upstream.Table
	for _, s := range servers {
		t.Tiers[upstream.ClusterTier] = append(t.Tiers[upstream.ClusterTier], upstream.Member{UDP: s, TCP: s, TLSName: names[s]})
	}
	return t
}

// tableOf says in the words of upstream what topology found out. Neither
// package knows the other.
func tableOf(t topology.Table) upstream.Table {
	out := upstream.Table{Last: membersOf(t.Last), Draining: t.Draining}
	for i := range t.Tiers {
		out.Tiers[i] = membersOf(t.Tiers[i])
	}
	return out
}

func membersOf(list []topology.Member) []upstream.Member {
	out := make([]upstream.Member, len(list))
	for i, m := range list {
		out[i] = upstream.Member{
			Pod: m.Pod, UDP: m.UDP, TCP: m.TCP, AltUDP: m.AltUDP, AltTCP: m.AltTCP, State: stateOf(m.State), Step: stepOf(m.Step),
		}
	}
	return out
}

func stateOf(s topology.State) upstream.State {
	switch s {
	case topology.Ready:
		return upstream.Ready
	case topology.Draining:
		return upstream.Draining
	default:
		return upstream.NotReady
	}
}

func stepOf(s topology.Step) upstream.Step {
	switch s {
	case topology.StepNode:
		return upstream.NodeStep
	case topology.StepZone:
		return upstream.ZoneStep
	case topology.StepCluster:
		return upstream.ClusterStep
	case topology.StepService:
		return upstream.ServiceStep
	default:
		return upstream.FallbackStep
	}
}

// newForwarder makes the forwarder of a configuration on top of its routes.
// before, whose counters it may go on with, may be nil.
func newForwarder(c Config, routes []*liveRoute, answers *cache.Cache, before *forwarder.Forwarder, b base) (*forwarder.Forwarder, error) {
	config := forwarder.Config{
		Cache:          answers,
		Listeners:      len(c.Listen),
		Stripes:        len(c.Listen) * stripes(c.Limits),
		UDPSize:        uint16(c.Limits.UDPReplySize),
		Rotate:         c.Cache.Rotate,
		MaxFollowers:   c.Limits.FollowersPerMiss,
		Deny:           c.Local.Deny,
		Chaos:          c.Local.Chaos,
		RefuseSnooping: c.Local.RefuseSnooping,
		Witness:        guard.ProbeName,
		WitnessText:    func(stripe int) string { return guard.ProbeText(b.instance, stripe) },
		DropDenied:     c.Clients.Denied == "drop",
		Taps:           b.taps,
		Before:         before,
		Now:            b.now,
	}
	var err error
	if config.Gate, err = newGate(&c); err != nil {
		return nil, err
	}
	for i, r := range routes {
		set, err := rulesOf(&c.Routes[i].Rules, r.hosts, c.Routes[i].RulesOnly)
		if err != nil {
			return nil, fmt.Errorf("route for %s: %w", c.Routes[i].Zones[0], err)
		}
		config.Routes = append(config.Routes, forwarder.Route{
			Zones:       c.Routes[i].Zones,
			Group:       r.group,
			Policy:      policyOf(&c.Routes[i].Cache, c.Cache.MaxStale),
			Rules:       set,
			Search:      forwarder.Search(c.Routes[i].Search),
			MaxInFlight: c.Limits.UpstreamInFlight,
		})
	}
	return forwarder.New(config)
}

// newGate is what the settings about clients come to; nil when they are not
// used. Shared are as many misses as one listen address or one route may have:
// whichever is full first.
func newGate(c *Config) (*access.Gate, error) {
	who := &c.Clients
	if len(who.Allow)+len(who.Deny) == 0 && who.QueriesPerSecond == 0 && who.MissesInFlight == 0 {
		return nil, nil
	}
	return access.New(access.Config{
		Allow: who.Allow, Deny: who.Deny, Unlimited: who.Unlimited,
		Rate: who.QueriesPerSecond, Burst: who.Burst,
		MaxInFlight: who.MissesInFlight, Places: min(c.Limits.MissesInFlight, c.Limits.UpstreamInFlight),
		IPv4Bits: who.IPv4Prefix, IPv6Bits: who.IPv6Prefix,
	})
}

// policyOf is what a route's settings come to.
func policyOf(c *RouteCacheConfig, maxStale time.Duration) cache.Policy {
	p := cache.Policy{
		MaxTTL: c.MaxTTL, MinTTL: c.MinTTL, MaxNegativeTTL: c.MaxNegativeTTL,
		PreferPositive: c.PreferPositive, ShareNXDomain: c.ShareNXDomain,
		FailureTTL: failureTTL, ServFailTTL: c.ServFailTTL, MaxServFailTTL: c.MaxServFailTTL,
		StaleWait: c.StaleWait, Recheck: recheck, MaxStale: maxStale, StaleOnError: c.Stale, StaleTTL: staleTTL,
		Prefetch: uint32(c.Prefetch), KeepAA: c.KeepAA, Minimal: c.Minimal,
	}
	if c.StaleWait == 0 {
		p.StaleWait = -1 // not at all
	}
	return p
}

func closed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}
