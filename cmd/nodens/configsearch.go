package main

import (
	"fmt"

	"github.com/miekg/dns"
	"go.yaml.in/yaml/v3"
)

// SearchConfig spares questions to a route that has a cluster's names: clients try
// every name with the ends of a search list first (ndots:5). ShareNXDomain of the
// cache helps too.
type SearchConfig struct {
	// Domain of the cluster, in a zone of the route. Default with a topology its
	// domain, otherwise none: nothing is spared.
	Domain string
	// Prefetch asks for the next names of the list while the client waits for the
	// first. Default true with a topology, otherwise false.
	Prefetch bool
	// Cut takes "no such name" for all names below, inside the domain. Default
	// false.
	Cut bool
	// Strict says that nothing but what Kubernetes puts there lies directly below
	// the domain. Default false.
	Strict bool
}

func (f *configFile) search(path string, n *yaml.Node, r *RouteConfig) {
	f.object(path, n, f.searchFields(&r.Search))
	if s := r.Search; !r.topological() && s.Domain == "" && n.Kind == yaml.MappingNode {
		f.add(n.Line, path+" has no domain", "name that of the cluster, such as cluster.local")
	}
	f.searches = append(f.searches, searchLine{route: len(f.config.Routes), path: path, line: n.Line})
}

func (f *configFile) searchFields(s *SearchConfig) fields {
	return fields{
		"domain":   func(path string, n *yaml.Node) { f.name(path, n, &s.Domain) },
		"prefetch": f.flag(&s.Prefetch),
		"cut":      f.flag(&s.Cut),
		"strict":   f.flag(&s.Strict),
	}
}

// searchLine is a route's search.
type searchLine struct {
	route, line int
	path        string
}

// compareSearches looks for domains that the route does not have.
func (f *configFile) compareSearches() {
	for _, s := range f.searches {
		if r := &f.config.Routes[s.route]; r.Search.Domain != "" && !r.has(r.Search.Domain) {
			f.add(s.line, fmt.Sprintf("%s.domain is %q, which is in no zone of the route", s.path, r.Search.Domain), "name the cluster's domain in the route that has its names")
		}
	}
}

// has says that a name is in a zone of the route.
func (r *RouteConfig) has(name string) bool {
	for _, zone := range r.Zones {
		if dns.IsSubDomain(zone, name) {
			return true
		}
	}
	return false
}
