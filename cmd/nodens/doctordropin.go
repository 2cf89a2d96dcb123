package main

import (
	"flag"
	"net/netip"
	"slices"
	"strings"
)

// dropInFlags are those of node-cache, where one of them is among the arguments: an
// operator gives the doctor the command line of the pod, whatever it is. What neither
// knows is then left out of the arguments, with a warning. nil: there is none.
func dropInFlags(flags *flag.FlagSet, args []string) (*nodeCacheFlags, []string) {
	f := &nodeCacheFlags{}
	known := nodeCacheSet(f)
	isOne := func(arg string) bool {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		return strings.HasPrefix(arg, "-") && known.Lookup(name) != nil
	}
	if !slices.ContainsFunc(args, isOne) {
		return nil, args
	}
	f.declare(flags)
	return f, f.known(flags, args)
}

// readDropIn is the configuration that node-cache's flags and the Corefile come to. With
// an error it is the default one, around the link that the flags name.
func (v *visit) readDropIn(f *nodeCacheFlags, environ []string) (Config, error) {
	err := f.translate()
	var n *nodeCache
	if err == nil {
		n, err = newNodeCache(f, environ)
	}
	for _, w := range f.warnings {
		v.find(warning, "command line", w, "")
	}
	if err != nil {
		return defaultConfig(), err
	}
	c, err := n.load()
	if err != nil {
		c = defaultConfig()
		c.Host = n.host()
	}
	if n.guards() {
		c = n.guarded(c)
	}
	return c, err
}

// lives tells whether the daemon that runs answers at an address of a link that the
// configuration does not name, and that has it alone.
func (v *visit) lives(link string) bool {
	if v.report == nil || link == v.config.Host.Link {
		return false
	}
	ours := interfaceAddresses(v.config.Host.Link)
	return slices.ContainsFunc(without(interfaceAddresses(link), ours), v.report.serves)
}

// serves tells whether the daemon serves an address.
func (r *report) serves(a netip.Addr) bool {
	return slices.ContainsFunc(r.Listens, func(l listenReport) bool {
		at, err := netip.ParseAddrPort(l.Address)
		every := at.Addr().IsUnspecified() && at.Addr().Is4() == a.Is4()
		return err == nil && l.Waiting == "" && (at.Addr() == a || every)
	})
}
