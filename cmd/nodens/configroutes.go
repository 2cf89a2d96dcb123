package main

import (
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"time"

	"github.com/miekg/dns"
	"go.yaml.in/yaml/v3"
)

const maxServers = 64

func (f *configFile) routes(path string, n *yaml.Node) {
	f.list(path, n, "routes", func(path string, n *yaml.Node) {
		f.config.Routes = append(f.config.Routes, f.route(path, n))
	})
}

// defaultRoute is a route before the file is read. In a cluster names change
// often and the servers are near; elsewhere it is the other way round.
func defaultRoute(cluster bool) RouteConfig {
	kept := RouteCacheConfig{ServFailTTL: 5 * time.Second, StaleWait: time.Second, Prefetch: 5}
	hosts := RulesConfig{Hosts: HostsConfig{TTL: time.Hour, Reverse: true}}
	log := RouteQueryLogConfig{Every: asDaemon}
	if cluster {
		kept.MaxTTL, kept.MaxNegativeTTL = 30*time.Second, 5*time.Second
		return RouteConfig{
			Topology: TopologyConfig{UDPPort: "dns", TCPPort: "dns-tcp", Hints: "honor"},
			Search:   SearchConfig{Prefetch: true},
			Choose:   "balanced", Cache: kept, Rules: hosts, QueryLog: log, Timeout: 2 * time.Second, SocketsPerServer: 4,
		}
	}
	kept.MaxTTL, kept.MaxNegativeTTL, kept.Stale = time.Hour, 30*time.Second, true
	return RouteConfig{
		Choose: "balanced", Cache: kept, Rules: hosts, QueryLog: log, Timeout: 4 * time.Second, Probe: ".", MixCase: true, SocketsPerServer: 32,
	}
}

// route reads one route. Where the servers come from decides the defaults, so
// it is looked at before the rest.
func (f *configFile) route(path string, n *yaml.Node) RouteConfig {
	r := defaultRoute(f.serversFrom(path, n) == "topology")
	known := fields{
		"zones":            func(path string, n *yaml.Node) { f.zones(path, n, &r) },
		"topology":         f.section(f.topology(&r.Topology)),
		"servers":          func(path string, n *yaml.Node) { f.serverList(path, n, &r.Servers, &r.TLSNames) },
		"resolvConf":       f.to(&r.ResolvConf),
		"rulesOnly":        f.flag(&r.RulesOnly),
		"cache":            func(path string, n *yaml.Node) { f.routeCache(path, n, &r.Cache) },
		"queryLog":         f.routeQueryLog(&r.QueryLog),
		"search":           func(path string, n *yaml.Node) { f.search(path, n, &r) },
		"choose":           f.word(&r.Choose, "balanced", "fastest", "random", "sequential"),
		"probe":            func(path string, n *yaml.Node) { f.name(path, n, &r.Probe) },
		"forceTCP":         f.flag(&r.ForceTCP),
		"timeout":          f.time(&r.Timeout, 100*time.Millisecond, 10*time.Second),
		"mixCase":          f.flag(&r.MixCase),
		"packetsPerSecond": f.number(&r.PacketsPerSecond, 0, 1000000),
		"socketsPerServer": f.number(&r.SocketsPerServer, 1, 256),
	}
	maps.Copy(known, f.ruleFields(&r.Rules))
	f.object(path, n, known, "zones")
	return r
}

// serversFrom is the one key of the route that says where its servers come
// from.
func (f *configFile) serversFrom(path string, n *yaml.Node) string {
	if n.Kind != yaml.MappingNode {
		return ""
	}
	var found []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch key.Value {
		case "topology", "servers", "resolvConf":
			found = append(found, key)
		case "rulesOnly":
			if n.Content[i+1].Value != "false" {
				found = append(found, key)
			}
		}
	}
	if len(found) == 0 {
		f.add(n.Line, path+" has no servers", "add servers, resolvConf or topology, or rulesOnly: true")
		return ""
	}
	for _, key := range found[1:] {
		if key.Value != found[0].Value {
			f.add(key.Line, fmt.Sprintf("%s has both %s (line %d) and %s", path, found[0].Value, found[0].Line, key.Value), "keep one of them, or make two routes")
		}
	}
	return found[0].Value
}

func (f *configFile) zones(path string, n *yaml.Node, r *RouteConfig) {
	f.list(path, n, `zones such as cluster.local or "."`, func(path string, n *yaml.Node) {
		var zone string
		if !f.text(path, n, &zone) {
			return
		}
		if _, ok := dns.IsDomainName(zone); !ok || strings.ContainsAny(zone, ` /:*\`) {
			f.add(n.Line, fmt.Sprintf("%s is %q, which is not a zone", path, cut(zone)), `write a name such as cluster.local, or "." for every name`)
			return
		}
		zone = dns.CanonicalName(zone)
		if first := f.zoneLines[zone]; first != 0 {
			f.add(n.Line, fmt.Sprintf("the zone %q is in two routes or twice in one", zone), fmt.Sprintf("keep it in one place (the first is on line %d)", first))
			return
		}
		f.zoneLines[zone] = n.Line
		r.Zones = append(r.Zones, zone)
	})
}

// serverList reads addresses, and where names is given the names of servers that
// are asked over TLS.
func (f *configFile) serverList(path string, n *yaml.Node, to *[]netip.AddrPort, names *map[netip.AddrPort]string) {
	f.list(path, n, "server addresses", func(path string, n *yaml.Node) {
		address, name, ok := f.server(path, n, names != nil)
		if !ok {
			return
		}
		for _, other := range *to {
			if other == address {
				f.add(n.Line, fmt.Sprintf("%s repeats %s", path, address), "remove one")
				return
			}
		}
		if why := unusable(address); why != "" {
			f.add(n.Line, fmt.Sprintf("%s is %s, %s", path, address, why), "write the address of a DNS server")
			return
		}
		*to = append(*to, address)
		if name != "" {
			if *names == nil {
				*names = map[netip.AddrPort]string{}
			}
			(*names)[address] = name
		}
		f.servers = append(f.servers, serverLine{address: address, path: path, line: n.Line})
	})
	if len(*to) > maxServers {
		f.add(n.Line, fmt.Sprintf("%s has %d servers", path, len(*to)), fmt.Sprintf("keep at most %d", maxServers))
	}
}

// server reads an address, or tls://ADDRESS#NAME where that is allowed.
func (f *configFile) server(path string, n *yaml.Node, allowTLS bool) (address netip.AddrPort, name string, ok bool) {
	rest, overTLS := strings.CutPrefix(n.Value, "tls://")
	if !overTLS || !allowTLS || n.Kind != yaml.ScalarNode {
		address, ok = f.addrPort(path, n, 53)
		return address, "", ok
	}
	at := strings.LastIndexAny(rest, "#@")
	if at < 0 || at+1 == len(rest) {
		f.add(n.Line, fmt.Sprintf("%s is %q, without the name in the server's certificate", path, n.Value),
			"write it behind the address, as in tls://192.0.2.1#dns.example")
		return netip.AddrPort{}, "", false
	}
	bare := *n
	bare.Value, name = rest[:at], rest[at+1:]
	address, ok = f.addrPort(path, &bare, 853)
	return address, name, ok
}
