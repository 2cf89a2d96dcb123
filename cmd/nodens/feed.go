package main

import (
	"context"
	"net/netip"

	"github.com/nodens-dns/nodens/topology"
	"github.com/nodens-dns/nodens/topology/file"
)

// feed is the tasks that keep a list of servers, and what they are made of. The
// watcher and its source are there where a topology tells the servers.
type feed struct {
	spec    routeSpec
	publish func(topology.Table)
	watcher *topology.Watcher
	source  *file.Source
	api     *apiParts // nil unless the API server tells the endpoints
	tasks   []task
	ready   <-chan struct{} // closed when the first servers are known
	// lenient says that a file that is not there yet is waited for.
	lenient bool
}

// follow makes what follows the topology.
func (f *feed) follow(b base) error {
	if f.spec.config.fromAPI() {
		return f.followAPI(b)
	}
	return f.followFile(b)
}

func (f *feed) followFile(b base) (err error) {
	f.source, err = file.New(file.Config{Path: f.spec.config.Topology.File, Required: !f.lenient, Log: b.log})
	if err != nil {
		return err
	}
	if err := f.watch(b); err != nil {
		return err
	}
	f.tasks = append(f.tasks, task{"topology file", func(ctx context.Context) error { return f.source.Run(ctx, f.watcher) }})
	return nil
}

// watch makes the watcher between a source of endpoints and whom they are told.
func (f *feed) watch(b base) (err error) {
	c := f.spec.config.Topology
	own := ownPorts(f.spec.listen, b.own())
	f.watcher, err = topology.New(topology.Config{
		Self:     topology.Self{Node: f.spec.node.Name, Zone: f.spec.node.Zone},
		Rules:    c.rules(own),
		Options:  topology.Options{IgnoreHints: c.Hints == "ignore"},
		Local:    without(c.Local, own),
		Fallback: topology.Fallback{Service: without(c.ClusterIP, own), Servers: without(c.Fallback, own)},
		Publish:  f.publish,
		Now:      b.now,
		Log:      b.log,
	})
	if err != nil {
		return err
	}
	f.ready = f.watcher.Ready()
	f.tasks = []task{{"topology", f.watcher.Run}}
	return nil
}

// rules are which slices count. own are our own addresses.
func (t *TopologyConfig) rules(own []netip.AddrPort) topology.Rules {
	return topology.Rules{
		Namespace: t.Namespace, Service: t.Service, ManagedBy: t.ManagedBy,
		UDPPort: t.UDPPort, TCPPort: t.TCPPort, Own: own,
	}
}
