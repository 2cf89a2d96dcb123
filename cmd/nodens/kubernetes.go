package main

import (
	"cmp"
	"context"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/topology"
	"github.com/nodens-dns/nodens/topology/kube"
)

// apiParts are what a route is made of when the API server tells its endpoints.
type apiParts struct {
	client *kube.Client
	source *kube.Source
	keeper *topology.Keeper // nil without a folder for snapshots
	node   *kube.Node       // nil when it is not asked for
}

// read adds what these parts tell of themselves.
func (p *apiParts) read(to *routeSnapshot) {
	status := p.source.Status()
	to.API, to.Received = &status, p.client.Received()
	if p.node != nil {
		node := p.node.Status()
		to.Node = &node
	}
	if p.keeper != nil {
		kept := p.keeper.Stats()
		to.Kept = &kept
	}
}

// clients are the connections to API servers. Routes share them, and keep them
// over a reload.
type clients struct {
	mu     sync.Mutex
	byName map[kube.API]*kube.Client
}

func (c *clients) get(api kube.API) *kube.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byName == nil {
		c.byName = map[kube.API]*kube.Client{}
	}
	if c.byName[api] == nil {
		c.byName[api] = kube.NewClient(api)
	}
	return c.byName[api]
}

// followAPI wires the source, the endpoints kept on disk and the Node object to
// the route's watcher.
func (r *route) followAPI(b base) error {
	if err := r.watch(b); err != nil {
		return err
	}
	k := r.spec.kubernetes
	api := kube.API{Server: k.Server, CAFile: k.CAFile, TokenFile: k.TokenFile}
	r.api = &apiParts{client: b.clients.get(api)}
	if err := r.keep(b, api); err != nil {
		return err
	}
	if err := r.readNode(b); err != nil {
		return err
	}
	c := r.spec.config.Topology
	var err error
	r.api.source, err = kube.New(kube.Config{
		Client: r.api.client, Namespace: c.Namespace, Service: c.Service,
		Warm: r.warm, Now: b.now, Log: b.log,
	})
	if err != nil {
		return err
	}
	// The last task: a route that waits for its servers looks at this one.
	r.tasks = append(r.tasks, task{"endpoints", r.runSource})
	return nil
}

// keep wires the folder of snapshots, or else the guard, which keeps them for us.
func (r *route) keep(b base, api kube.API) (err error) {
	folder := r.spec.kubernetes.Snapshots
	if folder == "" && b.guard == nil {
		return nil
	}
	c := r.spec.config.Topology
	config := topology.KeeperConfig{
		Watcher: r.watcher, Folder: folder, Cluster: api.Cluster,
		Namespace: cmp.Or(c.Namespace, kube.DefaultNamespace), Service: cmp.Or(c.Service, kube.DefaultService),
		Verify: identity(r.spec.config.Zones).verify,
		Log:    b.log,
	}
	if folder == "" {
		config.Store = guardStore{guard: b.guard, key: config.Namespace + "." + config.Service}
	}
	r.api.keeper, err = topology.NewKeeper(config)
	if err != nil {
		return err
	}
	r.tasks = append(r.tasks, task{"snapshot", r.api.keeper.Run})
	return nil
}

// readNode wires the Node object, the last one to ask for the zone.
func (r *route) readNode(b base) (err error) {
	if !r.spec.kubernetes.ReadNode || r.spec.node.Name == "" || r.spec.node.Zone != "" {
		return nil
	}
	r.api.node, err = kube.NewNode(kube.NodeConfig{
		Client: r.api.client, Name: r.spec.node.Name, Publish: r.watcher.NodeZone, Listed: r.watcher.Ready(), Now: b.now, Log: b.log,
	})
	if err != nil {
		return err
	}
	r.tasks = append(r.tasks, task{"node", r.api.node.Run})
	return nil
}

// runSource starts once it is known whether there is a hurry.
func (r *route) runSource(ctx context.Context) error {
	if r.api.keeper != nil {
		select {
		case <-r.api.keeper.Tried():
		case <-ctx.Done():
			return nil
		}
	}
	return r.api.source.Run(ctx, r.watcher)
}

// warm says that endpoints kept on disk are in force.
func (r *route) warm() bool { return r.api.keeper != nil && r.api.keeper.Restored() }

// clusterIdentity is what only a DNS server of this cluster knows: where its API
// server is. The address of an endpoint that was kept on disk may be another
// pod's by now, and even another DNS server's.
type clusterIdentity struct {
	name   string     // of the API server
	server netip.Addr // its ClusterIP; invalid = not known, any address will do
}

// identity is that of the cluster whose names are in the zones of a route.
func identity(zones []string) clusterIdentity {
	domain := "cluster.local."
	isDomain := func(zone string) bool { return zone != "." && !strings.HasSuffix(zone, ".arpa.") }
	if i := slices.IndexFunc(zones, isDomain); i >= 0 {
		domain = zones[i]
	}
	server, _ := netip.ParseAddr(os.Getenv("KUBERNETES_SERVICE_HOST")) // not set outside a pod
	return clusterIdentity{name: "kubernetes.default.svc." + domain, server: server}
}

// verify asks one server. A datagram may be lost, so it asks until its context
// ends.
func (c clusterIdentity) verify(ctx context.Context, server netip.AddrPort) bool {
	query := new(dns.Msg).SetQuestion(c.name, dns.TypeA)
	if c.server.Is6() {
		query.SetQuestion(c.name, dns.TypeAAAA)
	}
	client := dns.Client{Timeout: 200 * time.Millisecond}
	for ctx.Err() == nil {
		began := time.Now()
		reply, _, err := client.ExchangeContext(ctx, query, server.String())
		if err == nil {
			return c.known(reply)
		}
		// A refused connection fails at once.
		select {
		case <-ctx.Done():
		case <-time.After(client.Timeout/4 - time.Since(began)):
		}
	}
	return false
}

// known reports whether the reply names the API server.
func (c clusterIdentity) known(reply *dns.Msg) bool {
	return slices.ContainsFunc(reply.Answer, func(record dns.RR) bool {
		var addr netip.Addr
		switch r := record.(type) {
		case *dns.A:
			addr, _ = netip.AddrFromSlice(r.A.To4())
		case *dns.AAAA:
			addr, _ = netip.AddrFromSlice(r.AAAA.To16())
		}
		return addr.IsValid() && (addr == c.server || !c.server.IsValid())
	})
}
