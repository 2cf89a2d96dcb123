package main

import (
	"fmt"
	"net/netip"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/nodens-dns/nodens/deploy/guard"
	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// HostConfig is what nodens guard sets up on the node, and where serve finds it.
type HostConfig struct {
	// Mode is how clients reach the listen addresses: "none" (default: the node is
	// left alone), "link-local" (they are put on a link of our own) or "service"
	// (so are the cluster addresses of the DNS Service, see Service). Whether it is
	// none is read at the start only; the guard follows other changes of it, and those
	// of Service, Tracked and the listen addresses.
	Mode string
	// Link names the link, 1 to 15 bytes, default "nodens". Read at the start only.
	Link string
	// Service are those of the listen addresses that the DNS Service has. In mode
	// service only.
	Service []netip.Addr
	// Tracked keeps connection tracking on, for policies that need it. Default false.
	Tracked bool
	// UID is the user that serve runs as, 0 to 2147483647, default 65532. Read at the
	// start only.
	UID int
	// Socket is where serve finds its guard, Lock what makes one guard the owner of
	// the node, Endpoints the file that outlasts a reboot. Defaults below /run/nodens
	// and /var/lib/nodens. Read at the start only.
	Socket, Lock, Endpoints string
	// Metrics is the guard's own address for metrics. Default 127.0.0.1:9254. Read at
	// the start only.
	Metrics netip.AddrPort
}

func defaultHost() HostConfig {
	return HostConfig{
		Mode: "none", Link: hostnet.DefaultLink, UID: guard.DefaultUID,
		Socket: guard.DefaultSocket, Lock: guard.DefaultLock, Endpoints: guard.DefaultEndpoints,
		Metrics: netip.MustParseAddrPort("127.0.0.1:9254"),
	}
}

// guarded says that the node is set up by a guard.
func (h *HostConfig) guarded() bool { return h.Mode != "none" }

func (f *configFile) host() fields {
	h := &f.config.Host
	return fields{
		"mode": f.word(&h.Mode, "none", "link-local", "service"),
		"link": f.to(&h.Link),
		"service": func(path string, n *yaml.Node) {
			f.list(path, n, "addresses", func(path string, n *yaml.Node) { f.addr(path, n, &h.Service) })
		},
		"tracked":   f.flag(&h.Tracked),
		"uid":       f.number(&h.UID, 0, 1<<31-1),
		"socket":    f.to(&h.Socket),
		"lock":      f.to(&h.Lock),
		"endpoints": f.to(&h.Endpoints),
		"metrics": func(path string, n *yaml.Node) {
			if a, ok := f.addrPort(path, n, 0); ok {
				h.Metrics, f.guardLine = a, n.Line
			}
		},
	}
}

// addr reads an address without a port.
func (f *configFile) addr(path string, n *yaml.Node, to *[]netip.Addr) {
	a, err := netip.ParseAddr(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil {
		f.wrongKind(path, n, "an IP address such as 10.96.0.10")
		return
	}
	*to = append(*to, a.Unmap())
}

// hostSection reads the section and remembers where it is, for what is compared later.
func (f *configFile) hostSection(path string, n *yaml.Node) {
	f.hostLine = n.Line
	f.object(path, n, f.host())
}

// compareHost looks whether the listen addresses can be set up.
func (f *configFile) compareHost() {
	h := &f.config.Host
	if !h.guarded() {
		return
	}
	if (h.Mode == "service") != (len(h.Service) > 0) {
		f.add(f.hostLine, fmt.Sprintf("host.mode is %s with %d addresses in host.service", h.Mode, len(h.Service)),
			"name the cluster addresses of the DNS Service for mode service, and only for it")
	}
	for _, a := range h.Service {
		if !slices.ContainsFunc(f.config.Listen, func(l netip.AddrPort) bool { return l.Addr() == a }) {
			f.add(f.hostLine, fmt.Sprintf("host.service has %s, which is no listen address", a), "add it to listen")
		}
	}
	state, wrong := f.config.hostState(), false
	for i, l := range f.config.Listen {
		what := ""
		switch {
		case l.Addr().IsUnspecified():
			what = "stands for every address"
		case !l.Addr().IsLoopback() && l.Port() != state.Port:
			what = fmt.Sprintf("has another port than %d", state.Port)
		}
		if what != "" && i < len(f.listenLines) {
			wrong = true
			f.add(f.listenLines[i], fmt.Sprintf("listen[%d] is %s, which %s: it cannot be set up on the host", i, l, what),
				"name the addresses, with one port, or choose host.mode none")
		}
	}
	if err := state.Validate(); err != nil && !wrong {
		f.add(f.hostLine, fmt.Sprintf("host.mode is %s, but %v", h.Mode, err), "correct listen or host")
	}
}

// hostState is what the node should look like. Loopback addresses are there anyway.
func (c *Config) hostState() hostnet.State {
	h := &c.Host
	s := hostnet.State{
		Mode: hostMode(h.Mode), Link: h.Link, Service: h.Service, Tracked: h.Tracked, ProbeMark: guard.DefaultMark,
	}
	for _, l := range c.Listen {
		if l.Addr().IsLoopback() {
			continue
		}
		if s.Port == 0 {
			s.Port = l.Port()
		}
		if !slices.Contains(h.Service, l.Addr()) {
			s.Own = append(s.Own, l.Addr())
		}
	}
	if h.UID != 0 { // else everything of root would be exempt
		s.Exempt.UIDs = []uint32{uint32(h.UID)}
	}
	return s
}

func hostMode(name string) hostnet.Mode {
	for _, m := range []hostnet.Mode{hostnet.LinkLocal, hostnet.Service} {
		if m.String() == name {
			return m
		}
	}
	return hostnet.None
}
