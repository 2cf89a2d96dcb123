package main

import (
	"cmp"
	"fmt"
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

// forwardZone is the first zone of names that are not addresses; empty if there
// is none.
func (r *RouteConfig) forwardZone() string {
	for _, zone := range r.Zones {
		if zone != "." && !dns.IsSubDomain("arpa.", zone) && !slices.Contains(specialNames(), zone) {
			return zone
		}
	}
	return ""
}

// fastZones are those whose names the servers of a topology know themselves.
func (r *RouteConfig) fastZones() []string {
	zones := []string{r.Topology.Domain, "in-addr.arpa.", "ip6.arpa."}
	for _, zone := range r.Zones {
		if zone != "." && !slices.Contains(specialNames(), zone) {
			zones = append(zones, zone)
		}
	}
	return zones
}

// fallsBack says that there is a server to ask without any endpoint.
func (r *RouteConfig) fallsBack() bool {
	return r.fromAPI() && len(r.Topology.ClusterIP)+len(r.Topology.Fallback) > 0
}
