package main

import (
	"cmp"
	"net/netip"
	"strings"

	"github.com/nodens-dns/nodens/topology/kube"
)

// complete fills in what follows from the rest or from the environment.
func (c *Config) complete(getenv func(string) string) {
	c.clusterIPs(getenv)
	c.domains()
	c.sockets()
	c.burst()
}

// burst fills in how many queries a client may ask at once.
func (c *Config) burst() {
	if w := &c.Clients; w.Burst == 0 {
		w.Burst = min(burstSeconds*w.QueriesPerSecond, maxRate)
	}
}

// sockets fills in the number of UDP sockets: more than can be read at once
// only cost CPU time.
func (c *Config) sockets() {
	if l := &c.Limits; l.UDPSockets == 0 {
		l.UDPSockets = min(l.CPUs, 4)
	}
}

// domains fills in the cluster's domain, and what follows from it, where nobody wrote them down.
func (c *Config) domains() {
	domain := "cluster.local."
	for i := len(c.Routes) - 1; i >= 0; i-- {
		if r := &c.Routes[i]; r.topological() {
			domain = cmp.Or(r.forwardZone(), domain)
		}
	}
	for i := range c.Routes {
		if r := &c.Routes[i]; r.topological() {
			r.Topology.Domain = cmp.Or(r.Topology.Domain, r.forwardZone(), domain)
			r.Probe = cmp.Or(r.Probe, "kubernetes.default.svc."+r.Topology.Domain)
			if r.has(r.Topology.Domain) {
				r.Search.Domain = cmp.Or(r.Search.Domain, r.Topology.Domain)
			}
		}
	}
}

// clusterIPs fills in the ClusterIPs that nobody wrote down. The kubelet tells
// those of the Services in the pod's namespace. Where we listen on the Service's
// own address, its copy for that purpose, kube-dns-upstream, is the one to ask.
func (c *Config) clusterIPs(getenv func(string) string) {
	for i := range c.Routes {
		r := &c.Routes[i]
		if !r.fromAPI() || r.Topology.ClusterIP != nil {
			continue
		}
		for _, service := range r.clusterServices() {
			if server, ok := c.clusterIP(service, getenv); ok {
				r.Topology.ClusterIP = []netip.AddrPort{server}
				break
			}
		}
	}
}

// clusterServices are those whose ClusterIP may be asked, the first that has one.
func (r *RouteConfig) clusterServices() []string {
	service := cmp.Or(r.Topology.Service, kube.DefaultService)
	if service == kube.DefaultService {
		return []string{"kube-dns-upstream", service}
	}
	return []string{service}
}

// hostVariable is what the kubelet tells the ClusterIP of a Service in.
func hostVariable(service string) string {
	return strings.ToUpper(strings.ReplaceAll(service, "-", "_")) + serviceHost
}

// clusterIP is the address of a Service in the environment, unless we listen
// there.
func (c *Config) clusterIP(service string, getenv func(string) string) (netip.AddrPort, bool) {
	ip, err := netip.ParseAddr(getenv(hostVariable(service)))
	if err != nil {
		return netip.AddrPort{}, false
	}
	server := netip.AddrPortFrom(ip.Unmap(), 53)
	_, ours := ownListen(c.Listen, server, nil)
	return server, !ours
}
