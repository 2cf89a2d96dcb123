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
// the watcher.
func (f *feed) followAPI(b base) error {
	if err := f.watch(b); err != nil {
		return err
	}
	k := f.spec.kubernetes
	api := kube.API{Server: k.Server, CAFile: k.CAFile, TokenFile: k.TokenFile}
	f.api = &apiParts{client: b.clients.get(api)}
	if err := f.keep(b, api); err != nil {
		return err
	}
	if err := f.readNode(b); err != nil {
		return err
	}
	c := f.spec.config.Topology
	var err error
	f.api.source, err = kube.New(kube.Config{
		Client: f.api.client, Namespace: c.Namespace, Service: c.Service,
		Warm: f.warm, Now: b.now, Log: b.log,
	})
	if err != nil {
		return err
	}
	// The last task: a route that waits for its servers looks at this one.
	f.tasks = append(f.tasks, task{"endpoints", f.runSource})
	return nil
}

// keep wires the folder of snapshots, or else the guard, which keeps them for us.
func (f *feed) keep(b base, api kube.API) (err error) {
	folder := f.spec.kubernetes.Snapshots
	if folder == "" && b.guard == nil {
		return nil
	}
	c := f.spec.config.Topology
	config := topology.KeeperConfig{
		Watcher: f.watcher, Folder: folder, Cluster: api.Cluster,
		Namespace: cmp.Or(c.Namespace, kube.DefaultNamespace), Service: cmp.Or(c.Service, kube.DefaultService),
		Verify: identity(f.spec.config.Zones).verify,
		Log:    b.log,
	}
	if folder == "" {
		config.Store = guardStore{guard: b.guard, key: config.Namespace + "." + config.Service}
	}
	f.api.keeper, err = topology.NewKeeper(config)
	if err != nil {
		return err
	}
	f.tasks = append(f.tasks, task{"snapshot", f.api.keeper.Run})
	return nil
}

// readNode wires the Node object, the last one to ask for the zone.
func (f *feed) readNode(b base) (err error) {
	if !f.spec.kubernetes.ReadNode || f.spec.node.Name == "" || f.spec.node.Zone != "" {
		return nil
	}
	f.api.node, err = kube.NewNode(kube.NodeConfig{
		Client: f.api.client, Name: f.spec.node.Name, Publish: f.watcher.NodeZone, Listed: f.watcher.Ready(), Now: b.now, Log: b.log,
	})
	if err != nil {
		return err
	}
	f.tasks = append(f.tasks, task{"node", f.api.node.Run})
	return nil
}

// runSource starts once it is known whether there is a hurry.
func (f *feed) runSource(ctx context.Context) error {
	if f.api.keeper != nil {
		select {
		case <-f.api.keeper.Tried():
		case <-ctx.Done():
			return nil
		}
	}
	return f.api.source.Run(ctx, f.watcher)
}

// warm says that endpoints kept on disk are in force.
func (f *feed) warm() bool { return f.api.keeper != nil && f.api.keeper.Restored() }

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
