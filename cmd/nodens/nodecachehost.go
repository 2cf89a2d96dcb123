package main

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// The network of the node under node-cache's flags. With -setupiptables a guard runs
// in this very process and keeps interface and rules; without it the interface is all
// there is to keep.

// host is the section of the configuration that the flags come to.
func (n *nodeCache) host() HostConfig {
	h := defaultHost()
	h.Link, h.UID = n.flags.interfaceName, 0 // nobody but us may connect
	if !n.guards() {
		return h
	}
	h.Mode = "link-local"
	if h.Service = n.services(); len(h.Service) > 0 {
		h.Mode = "service"
	}
	return h
}

func (n *nodeCache) guards() bool {
	return n.flags.setupIPTables && n.flags.setupInterface && len(n.options.LocalIPs) > 0
}

// services are those of the local addresses that a Service has: the environment says
// so, or it is another than the first and none that only a node can have.
func (n *nodeCache) services() []netip.Addr {
	unique := netip.MustParsePrefix("fc00::/7")
	var list []netip.Addr
	for i, ip := range n.options.LocalIPs {
		told := slices.ContainsFunc(n.options.Environ, func(line string) bool {
			name, value, _ := strings.Cut(line, "=")
			other, err := netip.ParseAddr(value)
			return strings.HasSuffix(name, serviceHost) && err == nil && other.Unmap() == ip
		})
		if told || i > 0 && !ip.IsLinkLocalUnicast() && !ip.IsLoopback() && !unique.Contains(ip) {
			list = append(list, ip)
		}
	}
	return list
}

// settle sets up the network. The function it returns undoes that, unless the flags
// say otherwise.
func (n *nodeCache) settle(d *daemon, c *Config) (release func() error, err error) {
	switch {
	case n.guards():
		return n.startGuard(d, *c), nil
	case n.flags.setupInterface && len(n.options.LocalIPs) > 0:
		return n.startLink(d)
	}
	return func() error { return nil }, nil
}

// guarded is a configuration as the guard has it: of all local addresses, whatever the
// Corefile binds.
func (n *nodeCache) guarded(c Config) Config {
	c.Listen = nil
	for _, ip := range n.options.LocalIPs {
		c.Listen = append(c.Listen, netip.AddrPortFrom(ip, n.options.Port))
	}
	return c
}

func (n *nodeCache) startGuard(d *daemon, c Config) (release func() error) {
	g := start(task{"guard of the node", func(ctx context.Context) error {
		run := guardRun{
			config: n.guarded(c), teardown: !n.flags.skipTeardown, log: d.log, getenv: func(string) string { return "" },
			inside: &d.inside, failed: d.setup.hear,
		}
		err := run.run(ctx)
		if err != nil {
			d.setup[setupRules].Add(1)
		}
		return err
	}}, nil)
	return func() error {
		limit, cancel := context.WithTimeout(context.Background(), 2*guardStop())
		defer cancel()
		return g.end(limit)
	}
}

// startLink keeps the interface.
func (n *nodeCache) startLink(d *daemon) (release func() error, err error) {
	link := nodeLink{n.flags.interfaceName, n.options.LocalIPs}
	if _, err := link.settle(); err != nil {
		return nil, err
	}
	every := max(n.flags.syncInterval.Duration, time.Second)
	kept := start(task{"interface", func(ctx context.Context) error { link.keep(ctx, d, every); return nil }}, nil)
	return func() error {
		err := kept.end(context.Background())
		if err == nil && !n.flags.skipTeardown {
			err = link.remove()
		}
		return err
	}, nil
}
