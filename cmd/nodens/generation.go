package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/nodens-dns/nodens/forwarder"
	"github.com/nodens-dns/nodens/forwarder/cache"
	"github.com/nodens-dns/nodens/forwarder/upstream"
)

// generation is the parts made from one configuration. The next one takes over
// those that would be made the same again.
type generation struct {
	config    Config
	cache     *cache.Cache
	routes    []*liveRoute
	forwarder *forwarder.Forwarder
	listens   []*listen
}

// liveRoute is a route whose tasks run.
type liveRoute struct {
	*route
	started []*running
}

// firstServers is how long a new route may take to learn its first servers. A
// file is read in milliseconds; after this the daemon goes on without.
const firstServers = 2 * time.Second

// firstEndpoints is the same for a route with a fallback: enough for an API
// server that answers, and for endpoints kept on disk to prove themselves.
const firstEndpoints = 750 * time.Millisecond

// prepare makes the parts of a configuration that old does not have already:
// cache, routes, forwarder, and bound listeners. What it returns is ready to
// serve but does not yet. On an error, all that was made is gone again, and
// old was not touched. old may be nil.
func (d *daemon) prepare(c Config, old *generation) (*generation, error) {
	if old == nil {
		old = &generation{}
	}
	if fit := fitCache(c.Cache.Size, d.bound); fit < c.Cache.Size {
		d.log.Warn("the cache is smaller than configured: the cgroup does not allow more memory; raise its limit or lower cache.size",
			zap.Int64("cache", fit), zap.Int64("configured", c.Cache.Size), zap.Int64("allowed", d.bound))
		c.Cache.Size = fit
	}
	next := &generation{config: c}
	for _, step := range []func(next, old *generation) error{
		findFiles, findAddresses, prepareCache, d.prepareRoutes, d.prepareForwarder, d.prepareListens,
	} {
		if err := step(next, old); err != nil {
			d.discard(next, old)
			return nil, err
		}
	}
	return next, nil
}

// findFiles looks whether metrics can be served with the certificate that is named.
func findFiles(next, _ *generation) error { return next.config.Admin.MetricsTLS.unreadable() }

// findAddresses looks whether this machine has the new listen addresses: before anything
// is made for them, as the routes are that ask the API server.
func findAddresses(next, old *generation) error {
	var errs []error
	for _, address := range without(next.config.Listen, old.config.Listen) {
		free := net.UDPAddrFromAddrPort(netip.AddrPortFrom(address.Addr(), 0))
		conn, err := net.ListenUDP("udp", free)
		if err != nil {
			errs = append(errs, listenError(address, "UDP", err))
			continue
		}
		_ = conn.Close()
	}
	return errors.Join(errs...)
}

// prepareCache keeps the cache while its answers are good under the new
// configuration.
func prepareCache(next, old *generation) (err error) {
	if old.cache != nil && sameAnswers(&next.config, &old.config) {
		next.cache = old.cache
		return nil
	}
	next.cache, err = cache.New(cache.Config{Bytes: next.config.Cache.Size})
	return err
}

// sameAnswers says that what is in memory under o may be given under n: its size
// is the same, an entry finds its zone, which it knows by number, the servers of
// each zone come from the same source, and no rule makes something else of what
// they say. How those are asked, and how long their answers are kept, changes
// nothing about what they said.
func sameAnswers(n, o *Config) bool {
	return n.Cache.Size == o.Cache.Size && slices.Equal(n.Local.Deny, o.Local.Deny) &&
		slices.EqualFunc(n.Routes, o.Routes, func(a, b RouteConfig) bool {
			return slices.Equal(a.Zones, b.Zones) && a.Rules.sameData(&b.Rules) && reflect.DeepEqual(originOf(n, &a), originOf(o, &b))
		})
}

// origin is where the servers of a route come from.
type origin struct {
	servers    []netip.AddrPort
	names      map[netip.AddrPort]string // in their certificates
	resolvConf string
	topology   TopologyConfig
	api        string // the API server
}

func originOf(c *Config, r *RouteConfig) origin {
	o := origin{servers: r.Servers, names: r.TLSNames, resolvConf: r.ResolvConf, topology: r.Topology}
	o.topology.Hints, o.topology.Domain = "", "" // they say who is asked first
	if r.fromAPI() {
		o.api = c.Kubernetes.Server
	}
	return o
}

func (d *daemon) prepareRoutes(next, old *generation) error {
	first := firstTopology(&next.config)
	b := d.base
	b.sockets = socketBound(descriptorLimit(), len(next.config.Routes))
	for i := range next.config.Routes {
		rc := &next.config.Routes[i]
		spec := specOf(&next.config, rc)
		spec.guarded = i == first && d.guard != nil
		if same := slices.IndexFunc(old.routes, func(r *liveRoute) bool { return reflect.DeepEqual(r.spec, spec) }); same >= 0 {
			next.routes = append(next.routes, old.routes[same])
			continue
		}
		r, err := newRoute(spec, groupOf(old.routes, rc.Zones[0]), b)
		if err != nil {
			return err
		}
		live := &liveRoute{route: r}
		next.routes = append(next.routes, live)
		for _, t := range r.tasks {
			live.started = append(live.started, start(t, nil))
		}
	}
	if err := d.awaitServers(next.routes); err != nil {
		return err
	}
	d.warnPlace(next, old)
	return nil
}

// firstTopology is the route that the fallback of a guard is made of, -1 without one.
func firstTopology(c *Config) int {
	return slices.IndexFunc(c.Routes, func(r RouteConfig) bool { return r.topological() })
}

// specOf is what of a configuration a route is made of.
func specOf(c *Config, r *RouteConfig) routeSpec {
	spec := routeSpec{config: *r}
	spec.config.Cache, spec.config.Search = RouteCacheConfig{}, SearchConfig{}
	spec.config.Rules = RulesConfig{Hosts: r.Rules.Hosts}
	if r.topological() {
		spec.node = c.Node
	}
	if r.fromAPI() {
		spec.kubernetes = c.Kubernetes
	}
	if len(r.Servers) == 0 {
		spec.listen = c.Listen
	}
	return spec
}

// groupOf is the group of the route that is called by a zone, nil without one.
func groupOf(routes []*liveRoute, zone string) *upstream.Group {
	for _, r := range routes {
		if r.spec.config.Zones[0] == zone {
			return r.group
		}
	}
	return nil
}

// awaitServers waits until every route has had its first list of servers, but
// not for ever: names of the other routes can be answered without.
func (d *daemon) awaitServers(routes []*liveRoute) error {
	patience := firstServers
	for _, r := range routes {
		if r.spec.config.fallsBack() {
			patience = firstEndpoints
		}
	}
	limit := time.After(patience)
	for _, r := range routes {
		var ended chan struct{}
		if n := len(r.started); n > 0 {
			ended = r.started[n-1].done
		}
		select {
		case <-r.ready:
		case <-ended:
			return fmt.Errorf("route for %s: %w", r.spec.config.Zones[0], r.started[len(r.started)-1].err)
		case <-limit:
			d.log.Warn(withoutServers(&r.spec.config), zap.Strings("zones", r.spec.config.Zones))
			return nil
		}
	}
	return nil
}

// withoutServers says what happens to the names of a route without servers as yet, and
// what would help it.
func withoutServers(r *RouteConfig) string {
	switch {
	case r.fallsBack():
		return "no endpoint is known yet; the ClusterIP or the fallback is asked"
	case r.fromAPI():
		service := r.clusterServices()[0]
		return fmt.Sprintf("no servers are known yet, and no ClusterIP to ask meanwhile: %s has none; the kubelet sets it where the pod's namespace has a Service %s", hostVariable(service), service)
	}
	return "no servers are known yet"
}

// prepareForwarder keeps the forwarder while all that it is made of is the same.
// Another one goes on with the counters, if listen addresses and zones are still
// those that they count.
func (d *daemon) prepareForwarder(next, old *generation) (err error) {
	n, o := next.config, old.config
	if old.forwarder != nil && next.cache == old.cache && slices.Equal(next.routes, old.routes) &&
		n.Cache == o.Cache && n.Limits == o.Limits && slices.Equal(n.Listen, o.Listen) &&
		reflect.DeepEqual(n.Local, o.Local) && reflect.DeepEqual(n.Clients, o.Clients) && reflect.DeepEqual(n.Routes, o.Routes) {
		next.forwarder = old.forwarder
		return nil
	}
	var before *forwarder.Forwarder
	if slices.Equal(n.Listen, o.Listen) {
		before = old.forwarder
	}
	next.forwarder, err = newForwarder(n, next.routes, next.cache, before, d.base)
	return err
}

func (d *daemon) prepareListens(next, old *generation) error {
	shared := sharedListens(next, old)
	var errs []error
	for i, address := range next.config.Listen {
		// The bound for what is in flight leaves the routes time to stop.
		spec := listenSpec{address: address, index: i, limits: next.config.Limits, grace: next.config.StopGrace * 4 / 5}
		if same := slices.IndexFunc(old.listens, func(l *listen) bool { return l.spec == spec }); same >= 0 {
			next.listens = append(next.listens, old.listens[same])
			continue
		}
		var bound func() // nil: it is not waited for
		if old.mayWaitFor(address) {
			bound = d.tellSockets
		}
		l, err := newListen(spec, bound, &d.handler, d.base)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		next.listens = append(next.listens, l)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	d.warnShared(shared)
	return nil
}

// commit lets a prepared generation serve, and ends what it did not take over.
func (d *daemon) commit(next *generation) {
	old := d.current.Load()
	d.handler.current.Store(next.forwarder)
	d.current.Store(next)
	var was *Config
	if old != nil {
		was = &old.config
	}
	d.applyOutlets(&next.config, was)
	for _, l := range next.listens {
		if l.started != nil {
			continue
		}
		for _, t := range l.tasks() {
			l.started = append(l.started, start(t, d.broken))
		}
	}
	d.tellSockets()
	select {
	case d.committed <- struct{}{}:
	default: // it has not looked since
	}
	if old != nil {
		d.retired.Go(func() { d.retire(old, next) })
	}
}

// retire ends the parts of old that next did not take over. The listeners hand
// over and answer what they have. Queries that met the old forwarder still
// need it and its routes; they take at most their budget.
func (d *daemon) retire(old, next *generation) {
	if err := stopListens(without(old.listens, next.listens), context.Background()); err != nil {
		d.log.Warn("a listener that is no longer configured did not end well", zap.Error(err))
	}
	if old.forwarder == next.forwarder {
		return // and so are its routes
	}
	var budget time.Duration
	for _, r := range old.routes {
		budget = max(budget, r.spec.config.patience())
	}
	select {
	case <-time.After(budget):
	case <-d.drained:
	}
	err := stopRoutes(without(old.routes, next.routes), context.Background())
	if err = errors.Join(err, old.forwarder.Close()); err != nil {
		d.log.Warn("a route that is no longer configured did not end well", zap.Error(err))
	}
}

// discard undoes what was made for next.
func (d *daemon) discard(next, old *generation) {
	for _, l := range without(next.listens, old.listens) {
		_ = l.close() // the error that led here is the one to tell
	}
	_ = stopRoutes(without(next.routes, old.routes), context.Background())
}

// stopListens ends the listeners, all at once, and waits for them until the
// deadline.
func stopListens(listens []*listen, deadline context.Context) error {
	var all []*running
	for _, l := range listens {
		all = append(all, l.started...)
	}
	errs := make([]error, len(all))
	var wait sync.WaitGroup
	for i, r := range all {
		wait.Go(func() { errs[i] = r.end(deadline) })
	}
	wait.Wait()
	return errors.Join(errs...)
}

// stopRoutes ends the tasks of the routes, then closes their sockets.
func stopRoutes(routes []*liveRoute, deadline context.Context) error {
	var errs []error
	for _, r := range routes {
		for _, t := range slices.Backward(r.started) {
			errs = append(errs, t.end(deadline))
		}
		errs = append(errs, r.group.Close())
	}
	return errors.Join(errs...)
}

// without is the elements of list that are not in taken.
func without[T comparable](list, taken []T) []T {
	var rest []T
	for _, one := range list {
		if !slices.Contains(taken, one) {
			rest = append(rest, one)
		}
	}
	return rest
}
