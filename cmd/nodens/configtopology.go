package main

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

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
		"local":     func(path string, n *yaml.Node) { f.serverList(path, n, &t.Local) },
		"clusterIP": func(path string, n *yaml.Node) { f.serverList(path, n, &t.ClusterIP) },
		"fallback":  func(path string, n *yaml.Node) { f.serverList(path, n, &t.Fallback) },
	}
}

// serviceName is the Service in words.
func (t *TopologyConfig) serviceName() string {
	return fmt.Sprintf("%s/%s", cmp.Or(t.Namespace, kube.DefaultNamespace), cmp.Or(t.Service, kube.DefaultService))
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
