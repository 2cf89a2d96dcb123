package main

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"
	"go.yaml.in/yaml/v3"

	"github.com/nodens-dns/nodens/topology/kube"
)

func (f *configFile) topology(t *TopologyConfig) fields {
	return fields{
		"file": f.to(&t.File), "namespace": f.to(&t.Namespace), "service": f.to(&t.Service),
		"managedBy": func(path string, n *yaml.Node) {
			f.list(path, n, "controllers", func(path string, n *yaml.Node) {
				var name string
				if f.text(path, n, &name) {
					t.ManagedBy = append(t.ManagedBy, name)
				}
			})
		},
		"ports":     f.section(fields{"udp": f.to(&t.UDPPort), "tcp": f.to(&t.TCPPort)}),
		"hints":     f.word(&t.Hints, "honor", "ignore"),
		"local":     func(path string, n *yaml.Node) { f.serverList(path, n, &t.Local, nil) },
		"domain":    func(path string, n *yaml.Node) { f.name(path, n, &t.Domain) },
		"clusterIP": func(path string, n *yaml.Node) { f.serverList(path, n, &t.ClusterIP, nil) },
		"fallback":  func(path string, n *yaml.Node) { f.serverList(path, n, &t.Fallback, nil) },
	}
}

// serviceName is the Service in words.
func (t *TopologyConfig) serviceName() string {
	return fmt.Sprintf("%s/%s", cmp.Or(t.Namespace, kube.DefaultNamespace), cmp.Or(t.Service, kube.DefaultService))
}

// name reads a domain name.
func (f *configFile) name(path string, n *yaml.Node, to *string) {
	var name string
	if !f.text(path, n, &name) {
		return
	}
	if _, ok := dns.IsDomainName(name); !ok || strings.ContainsAny(name, ` /:*\`) {
		f.add(n.Line, fmt.Sprintf("%s is %q, which is no domain name", path, cut(name)), "write a name such as cluster.local")
		return
	}
	*to = dns.CanonicalName(name)
}

// domains fills in the cluster's domain, and the names of probes that follow
// from it, where nobody wrote them down.
func (f *configFile) domains() {
	domain := "cluster.local."
	for i := len(f.config.Routes) - 1; i >= 0; i-- {
		if r := &f.config.Routes[i]; r.topological() {
			domain = cmp.Or(r.forwardZone(), domain)
		}
	}
	for i := range f.config.Routes {
		if r := &f.config.Routes[i]; r.topological() {
			r.Topology.Domain = cmp.Or(r.Topology.Domain, r.forwardZone(), domain)
			r.Probe = cmp.Or(r.Probe, "kubernetes.default.svc."+r.Topology.Domain)
		}
	}
}

// forwardZone is the first zone of names that are not addresses; empty if there
// is none.
func (r *RouteConfig) forwardZone() string {
	for _, zone := range r.Zones {
		if zone != "." && !dns.IsSubDomain("arpa.", zone) {
			return zone
		}
	}
	return ""
}

// fastZones are those whose names the servers of a topology know themselves.
func (r *RouteConfig) fastZones() []string {
	zones := []string{r.Topology.Domain, "in-addr.arpa.", "ip6.arpa."}
	for _, zone := range r.Zones {
		if zone != "." {
			zones = append(zones, zone)
		}
	}
	return zones
}

// clusterIPs fills in the ClusterIPs that nobody wrote down. The kubelet tells
// those of the Services in the pod's namespace. Where we listen on the Service's
// own address, its copy for that purpose, "…-upstream", is the one to ask.
func (f *configFile) clusterIPs() {
	for i := range f.config.Routes {
		r := &f.config.Routes[i]
		if !r.fromAPI() || r.Topology.ClusterIP != nil {
			continue
		}
		for _, service := range slices.Compact([]string{"kube-dns-upstream", cmp.Or(r.Topology.Service, kube.DefaultService)}) {
			if server, ok := f.clusterIP(service); ok {
				r.Topology.ClusterIP = []netip.AddrPort{server}
				break
			}
		}
	}
}

// clusterIP is the address of a Service in the environment, unless we listen
// there.
func (f *configFile) clusterIP(service string) (netip.AddrPort, bool) {
	name := strings.ToUpper(strings.ReplaceAll(service, "-", "_"))
	ip, err := netip.ParseAddr(f.getenv(name + "_SERVICE_HOST"))
	if err != nil {
		return netip.AddrPort{}, false
	}
	server := netip.AddrPortFrom(ip.Unmap(), 53)
	_, ours := ownListen(f.config.Listen, server, nil)
	return server, !ours
}

// fallsBack says that there is a server to ask without any endpoint.
func (r *RouteConfig) fallsBack() bool {
	return r.fromAPI() && len(r.Topology.ClusterIP)+len(r.Topology.Fallback) > 0
}
