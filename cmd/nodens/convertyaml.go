package main

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// yamlMap is a mapping that is being written: keys whose value is the default are
// left out.
type yamlMap struct{ *yaml.Node }

func newMap() yamlMap { return yamlMap{&yaml.Node{Kind: yaml.MappingNode}} }

func (m yamlMap) put(key string, value *yaml.Node) {
	m.Content = append(m.Content, scalar(key), value)
}

// section puts a mapping unless nothing is in it.
func (m yamlMap) section(key string, value yamlMap) {
	if len(value.Content) > 0 {
		m.put(key, value.Node)
	}
}

func (m yamlMap) text(key, value, without string) {
	if value != without {
		m.put(key, quoted(value))
	}
}

func (m yamlMap) number(key string, value, without int) {
	if value != without {
		m.put(key, scalar(strconv.Itoa(value)))
	}
}

func (m yamlMap) flag(key string, value, without bool) {
	if value != without {
		m.put(key, scalar(strconv.FormatBool(value)))
	}
}

func (m yamlMap) time(key string, value, without time.Duration) {
	if value != without {
		m.put(key, scalar(shortDuration(value)))
	}
}

func (m yamlMap) size(key string, value, without int64) {
	if value != without {
		m.put(key, scalar(strings.TrimSuffix(shortBytes(value), " bytes")))
	}
}

func (m yamlMap) list(key string, values []string) {
	if len(values) == 0 {
		return
	}
	n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, v := range values {
		n.Content = append(n.Content, quoted(v))
	}
	m.put(key, n)
}

// scalar is a plain word, quoted the text of somebody, whatever it looks like.
func scalar(text string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: text} }

func quoted(text string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(text)
	return n
}

func texts[T fmt.Stringer](values []T) []string {
	var list []string
	for _, v := range values {
		list = append(list, v.String())
	}
	return list
}

func configNode(c *Config) *yaml.Node {
	root, d := newMap(), defaultConfig()
	root.put("version", scalar("v1"))
	root.list("listen", texts(c.Listen))
	node := newMap()
	node.text("labelsFile", c.Node.LabelsFile, "")
	root.section("node", node)
	root.section("admin", adminNode(&c.Admin, &d.Admin))
	k := newMap()
	k.size("size", c.Cache.Size, d.Cache.Size)
	k.flag("rotate", c.Cache.Rotate, d.Cache.Rotate)
	k.time("maxStale", c.Cache.MaxStale, d.Cache.MaxStale)
	root.section("cache", k)
	local := newMap()
	local.list("deny", c.Local.Deny)
	root.section("local", local)
	root.section("clients", clientsNode(&c.Clients, &d.Clients))
	root.section("limits", limitsNode(&c.Limits, &d.Limits))
	routes := &yaml.Node{Kind: yaml.SequenceNode}
	for i := range c.Routes {
		routes.Content = append(routes.Content, routeNode(&c.Routes[i]))
	}
	root.put("routes", routes)
	log := newMap()
	log.text("level", c.Log.Level, d.Log.Level)
	log.text("format", c.Log.Format, d.Log.Format)
	root.section("log", log)
	root.section("queryLog", queryLogNode(&c.QueryLog, &d.QueryLog))
	tap := newMap()
	tap.text("address", c.Dnstap.Address, d.Dnstap.Address)
	tap.text("identity", c.Dnstap.Identity, d.Dnstap.Identity)
	tap.number("queue", c.Dnstap.Queue, d.Dnstap.Queue)
	root.section("dnstap", tap)
	root.time("stopDelay", c.StopDelay, d.StopDelay)
	root.time("stopGrace", c.StopGrace, d.StopGrace)
	return root.Node
}

// clientsNode has what a Corefile can say of clients.
func clientsNode(c, d *ClientsConfig) yamlMap {
	m := newMap()
	m.list("allow", texts(c.Allow))
	m.list("deny", texts(c.Deny))
	m.text("denied", c.Denied, d.Denied)
	return m
}

func queryLogNode(q, d *QueryLogConfig) yamlMap {
	m := newMap()
	m.number("every", q.Every, d.Every)
	m.text("below", q.Below, d.Below)
	m.time("slower", q.Slower, d.Slower)
	m.number("perSecond", q.PerSecond, d.PerSecond)
	return m
}

func adminNode(a, d *AdminConfig) yamlMap {
	m := newMap()
	m.text("address", a.Address.String(), d.Address.String())
	m.text("pprof", a.Pprof, d.Pprof)
	m.list("metrics", a.Metrics)
	m.list("health", a.Health)
	t := newMap()
	if len(a.MetricsTLS.Listen) > 0 {
		t.list("listen", a.MetricsTLS.Listen)
		t.text("certFile", a.MetricsTLS.CertFile, "")
		t.text("keyFile", a.MetricsTLS.KeyFile, "")
		t.text("clientAuth", a.MetricsTLS.ClientAuth, d.MetricsTLS.ClientAuth)
		t.text("clientCAFile", a.MetricsTLS.ClientCAFile, "")
		t.text("minVersion", a.MetricsTLS.MinVersion, d.MetricsTLS.MinVersion)
	}
	m.section("metricsTLS", t)
	m.flag("legacyMetrics", a.LegacyMetrics, d.LegacyMetrics)
	return m
}

func limitsNode(l, d *LimitsConfig) yamlMap {
	m := newMap()
	m.number("cpus", l.CPUs, d.CPUs)
	m.number("udpSockets", l.UDPSockets, min(l.CPUs, 4))
	m.size("udpReceiveBuffer", l.UDPReceiveBuffer, d.UDPReceiveBuffer)
	m.number("missesInFlight", l.MissesInFlight, d.MissesInFlight)
	m.number("tcpConnections", l.TCPConnections, d.TCPConnections)
	m.number("tcpConnectionsPerClient", l.TCPConnectionsPerClient, d.TCPConnectionsPerClient)
	m.number("tcpQueriesPerConnection", l.TCPQueriesPerConnection, d.TCPQueriesPerConnection)
	m.time("tcpIdle", l.TCPIdle, d.TCPIdle)
	m.number("upstreamInFlight", l.UpstreamInFlight, d.UpstreamInFlight)
	m.number("udpReplySize", l.UDPReplySize, d.UDPReplySize)
	m.number("followersPerMiss", l.FollowersPerMiss, d.FollowersPerMiss)
	return m
}

func routeNode(r *RouteConfig) *yaml.Node {
	m, d := newMap(), defaultRoute(r.topological())
	var zones []string
	for _, zone := range r.Zones {
		if zone != "." {
			zone = strings.TrimSuffix(zone, ".")
		}
		zones = append(zones, zone)
	}
	m.list("zones", zones)
	m.Content[0].HeadComment = r.Note
	if r.topological() {
		m.put("topology", topologyNode(&r.Topology, &d.Topology).Node)
	}
	m.list("servers", serverTexts(r))
	m.text("resolvConf", r.ResolvConf, "")
	m.flag("rulesOnly", r.RulesOnly, false)
	m.text("choose", r.Choose, d.Choose)
	m.flag("forceTCP", r.ForceTCP, d.ForceTCP)
	m.time("timeout", r.Timeout, d.Timeout)
	probe := d.Probe
	if r.topological() {
		probe = "kubernetes.default.svc." + r.Topology.Domain
	}
	m.text("probe", r.Probe, probe)
	m.flag("mixCase", r.MixCase, d.MixCase)
	m.number("packetsPerSecond", r.PacketsPerSecond, d.PacketsPerSecond)
	m.number("socketsPerServer", r.SocketsPerServer, d.SocketsPerServer)
	addRules(m, &r.Rules)
	log := newMap()
	log.number("every", r.QueryLog.Every, d.QueryLog.Every)
	log.time("slower", r.QueryLog.Slower, d.QueryLog.Slower)
	m.section("queryLog", log)
	m.section("cache", routeCacheNode(&r.Cache, &d.Cache))
	return m.Node
}

func topologyNode(t, d *TopologyConfig) yamlMap {
	m := newMap()
	m.text("file", t.File, "")
	m.text("namespace", t.Namespace, "")
	m.text("service", t.Service, "")
	m.list("managedBy", t.ManagedBy)
	ports := newMap()
	ports.text("udp", t.UDPPort, d.UDPPort)
	ports.text("tcp", t.TCPPort, d.TCPPort)
	m.section("ports", ports)
	m.text("hints", t.Hints, d.Hints)
	m.list("local", texts(t.Local))
	m.text("domain", strings.TrimSuffix(t.Domain, "."), "")
	m.list("clusterIP", texts(t.ClusterIP))
	m.list("fallback", texts(t.Fallback))
	return m
}

// serverTexts are the servers as the file writes them.
func serverTexts(r *RouteConfig) []string {
	var list []string
	for _, server := range r.Servers {
		list = append(list, serverText(server, r.TLSNames))
	}
	return list
}

func serverText(server netip.AddrPort, names map[netip.AddrPort]string) string {
	if name, ok := names[server]; ok {
		return "tls://" + server.String() + "#" + name
	}
	return server.String()
}

func routeCacheNode(c, d *RouteCacheConfig) yamlMap {
	m := newMap()
	m.time("maxTTL", c.MaxTTL, d.MaxTTL)
	m.time("minTTL", c.MinTTL, d.MinTTL)
	m.time("maxNegativeTTL", c.MaxNegativeTTL, d.MaxNegativeTTL)
	m.time("servFailTTL", c.ServFailTTL, d.ServFailTTL)
	m.time("maxServFailTTL", c.MaxServFailTTL, d.MaxServFailTTL)
	m.flag("stale", c.Stale, d.Stale)
	m.time("staleWait", c.StaleWait, d.StaleWait)
	m.time("preferPositive", c.PreferPositive, d.PreferPositive)
	m.flag("shareNXDomain", c.ShareNXDomain, d.ShareNXDomain)
	m.number("prefetch", c.Prefetch, d.Prefetch)
	m.flag("keepAA", c.KeepAA, d.KeepAA)
	m.flag("minimal", c.Minimal, d.Minimal)
	return m
}
