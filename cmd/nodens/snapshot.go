package main

import (
	"net/netip"
	"os"
	"time"

	"github.com/nodens-dns/nodens/deploy/guard"
	"github.com/nodens-dns/nodens/forwarder"
	"github.com/nodens-dns/nodens/forwarder/cache"
	"github.com/nodens-dns/nodens/forwarder/dnstap"
	"github.com/nodens-dns/nodens/forwarder/listener"
	"github.com/nodens-dns/nodens/forwarder/upstream"
	"github.com/nodens-dns/nodens/topology"
	"github.com/nodens-dns/nodens/topology/file"
	"github.com/nodens-dns/nodens/topology/kube"
)

// snapshot is all that the parts tell of themselves at one moment: what the
// metrics and the status page are made of.
type snapshot struct {
	Build    build
	At       time.Time
	Now      time.Duration // At on the clock of the parts
	Started  time.Time
	PID      int
	Config   Config
	NotReady string // why; "" when ready
	Reload   reloadResult
	Waits    []string // settings that wait for a restart
	Memory   memoryPolicy

	Forwarder forwarder.Stats
	Cache     cache.Stats
	Shrinks   uint64 // of the cache, for want of memory
	Listens   []listenSnapshot
	Routes    []routeSnapshot

	Guard *guard.ClientStatus // nil without one

	Logged, Unlogged uint64 // queries
	Dnstap           dnstap.Stats

	AdminFailures uint64      // times the admin address could not be had
	Setup         [5]uint64   // see setupErrorNames
	Health        healthCount // our own health checks
}

type listenSnapshot struct {
	Address netip.AddrPort
	UDP     listener.UDPStats
	TCP     listener.TCPStats

	Waiting   bool   // another user's process has the port, over UDP or TCP
	WaitedFor uint64 // times that it could not be had
}

// counted is when the forwarder's counters began.
func (s *snapshot) counted() time.Time { return s.At.Add(s.Forwarder.Since - s.Now) }

// server is the label that node-cache gives a listen address.
func (l *listenSnapshot) server() string { return "dns://" + l.Address.String() }

type routeSnapshot struct {
	Config  RouteConfig
	Servers upstream.Status
	// Topology and File are nil for routes without one.
	Topology *topology.Status
	File     *file.Stats
	// API, Node and Kept are nil unless the route has them.
	API, Node *kube.Status
	Kept      *topology.KeeperStats
	Received  uint64 // bytes from the API server
	// Hosts is how many names have addresses of the route's own, taken over at
	// HostsAt, in seconds since 1970, which is 0 without any.
	Hosts   int
	HostsAt int64
}

// name is the label of the route: its first zone.
func (r *routeSnapshot) name() string { return r.Config.Zones[0] }

// external says that the route's servers have no distance.
func (r *routeSnapshot) external() bool { return r.Topology == nil }

// tierName is the label of a tier of the route.
func (r *routeSnapshot) tierName(tier int) string { return tierName(tier, r.external()) }

// tierName is the label of a tier. The servers of external routes have no distance.
func tierName(tier int, external bool) string {
	switch {
	case external:
		return "external"
	case tier == upstream.NodeTier:
		return "node"
	case tier == upstream.ZoneTier:
		return "zone"
	case tier == upstream.ClusterTier:
		return "cluster"
	default:
		return "last"
	}
}

// targets are the servers of one tier.
func (r *routeSnapshot) targets(tier int) []upstream.TargetStatus {
	var found []upstream.TargetStatus
	for _, t := range r.Servers.Targets {
		if t.Tier == tier {
			found = append(found, t)
		}
	}
	return found
}

// snapshot asks all parts. It is for people and scrapes, not for every query.
func (d *daemon) snapshot() snapshot {
	g := d.current.Load()
	s := snapshot{
		Build:         d.build,
		At:            time.Now(),
		Now:           d.now(),
		Started:       d.started,
		PID:           os.Getpid(),
		Config:        g.config,
		NotReady:      d.ready.Load().(string),
		Reload:        d.reloads.result(),
		Waits:         needsRestart(&g.config, &d.began),
		Memory:        currentMemoryPolicy(),
		Forwarder:     g.forwarder.Stats(),
		Cache:         g.cache.Stats(),
		Shrinks:       d.relief.shrinks.Load(),
		AdminFailures: d.adminFailures.Load(),
		Logged:        d.queryLog.lines.Load(),
		Unlogged:      d.queryLog.dropped.Load(),
		Dnstap:        d.collector.stats(),
		Setup:         d.setup.snapshot().Setup,
		Health:        d.health.read(),
	}
	if d.guard != nil {
		status := d.guard.Status()
		s.Guard = &status
	}
	for _, l := range g.listens {
		s.Listens = append(s.Listens, l.snapshot())
	}
	for _, r := range g.routes {
		one := routeSnapshot{Config: r.spec.config, Servers: r.group.Status()}
		if r.watcher != nil {
			status := r.watcher.Status()
			one.Topology = &status
		}
		if r.source != nil {
			stats := r.source.Stats()
			one.File = &stats
		}
		if r.hosts != nil {
			one.Hosts, one.HostsAt = r.hosts.Len(), r.hostsAt.Load()
		}
		if r.api != nil {
			r.api.read(&one)
		}
		s.Routes = append(s.Routes, one)
	}
	return s
}
