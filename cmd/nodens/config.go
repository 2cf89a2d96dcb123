package main

import (
	"net/netip"
	"time"
)

// Config is everything the daemon can be told, checked and complete. It is
// read by readConfig and never changed afterwards.
type Config struct {
	// Path is the file it came from; Hash is the SHA-512 of its bytes in hex.
	Path, Hash string

	// Listen are the addresses served over UDP and TCP, 1 to 16. A wildcard
	// address serves all addresses of its family. Default 127.0.0.1:53.
	Listen []netip.AddrPort
	// Host is what is set up on the node around them.
	Host HostConfig
	Node NodeConfig
	// Kubernetes is the API server, for routes whose endpoints it tells.
	Kubernetes KubernetesConfig
	Admin      AdminConfig
	Cache      CacheConfig
	Local      LocalConfig
	Clients    ClientsConfig
	Limits     LimitsConfig
	// Routes has at least one element; every zone is in one route only.
	Routes []RouteConfig
	Log    LogConfig
	// QueryLog writes a sample of the queries to the log.
	QueryLog QueryLogConfig
	// Dnstap tells a collector of them.
	Dnstap DnstapConfig
	// StopDelay is how long everything is still answered after a stop was asked for,
	// while readiness is off already, 0 to 60 s, default 0.
	StopDelay time.Duration
	// StopGrace is how long a stop may take in all after that, 1 s to 60 s, default
	// 5 s.
	StopGrace time.Duration

	// Imports are files that the one at Path takes in.
	Imports []string
	// Notes are what a Corefile says that is done in another way, or not at all.
	Notes []string
}

// NodeConfig says where this daemon runs, so that the nearest endpoint can be
// told from the others.
type NodeConfig struct {
	// Name of the Node. Default: the environment variable NODE_NAME, then the node
	// of the pod's token; without any nothing is on the same node.
	Name string
	// Zone of the Node. Default: the environment variable NODE_ZONE, then
	// LabelsFile; then it is learned from an endpoint on this node, from the Node
	// object, or from the last snapshot, and until then nothing is in the same
	// zone.
	Zone string
	// LabelsFile is a file of the downward API with metadata.labels: some
	// clusters copy the labels of the zone to pods. Default none.
	LabelsFile string
}

// KubernetesConfig says how to reach the API server and what to ask beside
// endpoints. Everything may be left out in a pod with a service account.
type KubernetesConfig struct {
	// Server is a URL; CAFile and TokenFile are its authority and our token.
	// Default: those that the kubelet gives a pod.
	Server, CAFile, TokenFile string
	// Snapshots is a folder where the endpoints are kept for a start without
	// the API server. Default none.
	Snapshots string
	// ReadNode asks for the Node object every 10 minutes while nobody else says
	// the zone. Default true.
	ReadNode bool
}

// AdminConfig is the HTTP side.
type AdminConfig struct {
	// Address defaults to 127.0.0.1:9253.
	Address netip.AddrPort
	// Pprof is who may read /debug/pprof: "loopback" (default), "all" or "off".
	Pprof string
	// Control is who may explain, flush and tail, which show what clients ask
	// and change what they get: "loopback" (default), "all" or "off".
	Control string
	// Socket is a path at which 'nodens probe' asks, where its folder exists. Default
	// /run/nodens-pod/probe.sock. Read at the start only.
	Socket string
	// Metrics and Health are further addresses, which serve /metrics alone, and
	// /health, /ready, /livez and /readyz alone. Without a host they are served on
	// all addresses of the machine. Default none, at most 8 each.
	Metrics, Health []string
	// MetricsTLS serves /metrics over TLS. Default: not.
	MetricsTLS MetricsTLSConfig
	// LegacyMetrics are those that CoreDNS had before version 1.11, under which
	// some dashboards and alerts still look for them. Default true.
	LegacyMetrics bool
}

// MetricsTLSConfig is metrics over TLS.
type MetricsTLSConfig struct {
	// Listen are the addresses, written as those of Metrics. Default none.
	Listen []string
	// CertFile and KeyFile are read anew when they change. nodens does not start
	// without them.
	CertFile, KeyFile string
	// ClientAuth is what clients have to show: "none" (default), "request",
	// "require", "verify-if-given" or "verify".
	ClientAuth string
	// ClientCAFile has the authorities of clients' certificates. Default none.
	ClientCAFile string
	// MinVersion is "1.2" or "1.3" (default).
	MinVersion string
}

// CacheConfig is the one cache of all routes.
type CacheConfig struct {
	// Size bounds the memory of the entries in bytes, 1 MiB to 16 GiB,
	// default 32 MiB.
	Size int64
	// Rotate turns the addresses of a cached answer around, so that clients
	// spread over them. Default true.
	Rotate bool
	// MaxStale is how long an expired answer may still be given while no
	// server answers, 0 (never) to 72 h, default 1 h.
	MaxStale time.Duration
}

// LocalConfig is what is answered without asking anybody.
type LocalConfig struct {
	// Deny are names that do not exist, nor does anything below them. Default
	// none.
	Deny []string
	// Chaos are texts of at most 255 bytes by the name that asks for them with
	// class CH and type TXT, as version.bind. Default none: refused.
	Chaos map[string]string
	// RefuseSnooping refuses queries without RD, which ask what others have
	// asked before. Default false.
	RefuseSnooping bool
}

// ClientsConfig says who may ask, and how much. A client is the address that a
// query comes from: pods on the node's own network are one.
type ClientsConfig struct {
	// Allow and Deny are prefixes, at most 64 of each. The longest that an
	// address lies in decides; one in none is allowed unless Allow has any.
	// Default none.
	Allow, Deny []netip.Prefix
	// Denied is what those get who may not ask: "refuse" (default, REFUSED) or
	// "drop" (nothing, and a TCP connection is closed).
	Denied string
	// QueriesPerSecond of one client, 0 (no bound, default) to 1000000.
	QueriesPerSecond int
	// Burst is how many queries a client may ask at once after a rest, 1 to
	// 1000000, default twice QueriesPerSecond.
	Burst int
	// MissesInFlight of one client, 0 (no bound, nothing is shared, default) to
	// 65536. With it, a client never has more in flight than places are free.
	MissesInFlight int
	// Unlimited are prefixes that these three do not hold for, at most 64.
	// Default none.
	Unlimited []netip.Prefix
	// IPv4Prefix and IPv6Prefix are how many bits of an address make a client, 8
	// to 32 and 16 to 128. Default 32 and 128.
	IPv4Prefix, IPv6Prefix int
}

// LimitsConfig are the bounds of the daemon's work. Each has a counter in the
// metrics that tells how close it is.
type LimitsConfig struct {
	// CPUs that may run the daemon's code at once, 1 to 64, default 1 (see
	// applyCPUPolicy).
	CPUs int
	// UDPSockets per listen address, 1 to 8; default: as many as CPUs, at most 4.
	UDPSockets int
	// UDPReceiveBuffer of each UDP socket in bytes, 64 KiB to 64 MiB, default
	// 4 MiB. The kernel may grant less (net.core.rmem_max).
	UDPReceiveBuffer int64
	// MissesInFlight are the queries that wait for a server, per listen address
	// and for each of UDP and TCP, 16 to 65536, default 4096.
	MissesInFlight int
	// TCPConnections per listen address, 1 to 65536, default 1024.
	TCPConnections int
	// TCPConnectionsPerClient per listen address, 1 to 65536, default 128.
	TCPConnectionsPerClient int
	// TCPQueriesPerConnection being worked on at once, 1 to 1024, default 64.
	TCPQueriesPerConnection int
	// TCPIdle is how long a connection may say nothing, 1 s to 10 min,
	// default 10 s.
	TCPIdle time.Duration
	// UpstreamInFlight per route, 16 to 65536, at most MissesInFlight. Default half of it,
	// up to 2048: silent servers leave room for the misses of other routes, and have
	// an eighth while they answer nothing. Half as many more may wait for others' answers.
	UpstreamInFlight int
	// UDPReplySize is the longest reply over UDP in bytes, 512 to 4096, default
	// 1232: that fits the smallest IPv6 packet. Longer ones go over TCP.
	UDPReplySize int
	// FollowersPerMiss wait for one identical query's reply, 1 to 65536,
	// default 1000.
	FollowersPerMiss int
}

// RouteConfig sends the names below some zones to some servers. Without Servers,
// ResolvConf and RulesOnly they come from Topology.
type RouteConfig struct {
	// Zones in lower case with a final dot, at least one.
	Zones    []string
	Topology TopologyConfig
	// Servers are fixed.
	Servers []netip.AddrPort
	// TLSNames are the names in the certificates of those servers that are asked
	// over TLS only. Default none.
	TLSNames map[netip.AddrPort]string
	// ResolvConf names a file whose nameservers are followed.
	ResolvConf string
	// RulesOnly asks nobody: what the rules of the route do not answer gets
	// SERVFAIL. Default false.
	RulesOnly bool
	// Choose is which of several equally near servers is asked: "balanced"
	// (default: the one that answers faster and has less to do of two picked
	// by chance), "fastest" (the same, picked of all), "random", or "sequential"
	// (the first that works).
	Choose string

	// Cache is what is kept of the answers.
	Cache RouteCacheConfig
	// Rules change what the names are answered with.
	Rules RulesConfig
	// Search spares questions that clients ask because of their search lists.
	Search SearchConfig
	// QueryLog writes a sample of the route's queries to the log.
	QueryLog RouteQueryLogConfig
	// ForceTCP asks the servers over TCP only. Default false.
	ForceTCP bool
	// Timeout is the whole time for one query, retries included, 100 ms to
	// 10 s. Default 2 s with a topology, before the most impatient clients ask
	// again; names outside the cluster's zones then have 4 s all the same.
	// Otherwise 4 s: the C library of most clients gives up after 5 s.
	Timeout time.Duration
	// Probe is the name asked to see how a server is. Default with a topology
	// kubernetes.default.svc below the cluster's domain, whose address a pod is
	// told: it shows that the server knows this cluster; otherwise the root.
	Probe string
	// MixCase asks servers without a topology over UDP in letters of mixed case,
	// which a forger has to guess. Default true.
	MixCase bool
	// PacketsPerSecond bounds the questions that the route puts to its servers,
	// 0 (no bound, default) to 1000000: some clouds drop what a machine asks
	// above 1024. What is more waits for its turn, for half of its time at most.
	PacketsPerSecond int
	// SocketsPerServer bounds the UDP sockets to one server, 1 to 256;
	// default 4 with a topology, otherwise 32: on a longer way more ports
	// make a forged reply harder.
	SocketsPerServer int

	// Note says why the servers of a Corefile are taken as they are.
	Note string
}

// RouteCacheConfig is what is kept of a route's answers, and how they are shown.
type RouteCacheConfig struct {
	// MaxTTL bounds how long an answer is kept, 1 s to 24 h; default 30 s
	// with a topology, otherwise 1 h.
	MaxTTL time.Duration
	// MinTTL raises the time to live of answers, 0 to 1 h and at most MaxTTL,
	// default 0.
	MinTTL time.Duration
	// MaxNegativeTTL bounds how long the absence of a name is kept, 1 s to
	// 3 h; default 5 s with a topology, otherwise 30 s.
	MaxNegativeTTL time.Duration
	// ServFailTTL is how long a server's error is remembered, 1 s to 5 min,
	// default 5 s.
	ServFailTTL time.Duration
	// MaxServFailTTL is what that grows to, twofold each time, while the error
	// stays, 0 (it does not grow) or ServFailTTL to 5 min, default 0.
	MaxServFailTTL time.Duration
	// Stale allows an expired answer in place of a server's error. Default
	// false with a topology (an address may already be another pod's; then only
	// while no server answers at all), otherwise true.
	Stale bool
	// StaleWait is how long a client waits for a new answer before the expired
	// one is given, 0 (not at all; needs Stale) to 5 s, default 1 s.
	StaleWait time.Duration
	// PreferPositive is how long an expired answer with records still stands
	// when a server says that there are none, 0 (not at all) to
	// CacheConfig.MaxStale, default 0.
	PreferPositive time.Duration
	// ShareNXDomain lets "no such name" to one type answer all types. Default
	// false: some servers say it of types alone.
	ShareNXDomain bool
	// Prefetch is how many hits an answer needs for being asked for again just
	// before it expires, 0 (never) to 1000000, default 5.
	Prefetch int
	// KeepAA shows a server's AA bit. Default false: a forwarder is no
	// authority.
	KeepAA bool
	// Minimal leaves out the authority and additional records that clients do
	// not use. Default false.
	Minimal bool
}

// TopologyConfig says where the endpoints of a Service are listed.
type TopologyConfig struct {
	// File lists EndpointSlices and is followed while it changes. Default none:
	// the API server tells them. What is one server in a slice of each address
	// family has the same targetRef in both; without it the first family alone is
	// asked, also by the kernel's fallback.
	File string
	// Namespace and Service name the slices that count. Of a file, default any;
	// of the API server, kube-system, and kube-dns or else the Service with the
	// label k8s-app=kube-dns.
	Namespace, Service string
	// ManagedBy lists the controllers whose slices count. Default all.
	ManagedBy []string
	// UDPPort and TCPPort are the preferred port names. Default dns, dns-tcp.
	UDPPort, TCPPort string
	// Hints says whether the hints of trafficDistribution count: "honor"
	// (default) or "ignore".
	Hints string
	// Local are servers on this node that are asked first and that no Service
	// lists, at a fixed address for example. Default none.
	Local []netip.AddrPort
	// Domain of the cluster. Default: the first zone of a route with a topology
	// that is neither "." nor reverse, or cluster.local.
	Domain string
	// ClusterIP is asked while no endpoint is known. Default: what the kubelet
	// tells in the environment (KUBE_DNS_UPSTREAM_SERVICE_HOST,
	// KUBE_DNS_SERVICE_HOST or that of Service), unless we listen there.
	ClusterIP []netip.AddrPort
	// Fallback is asked when that does not answer either. Default none.
	Fallback []netip.AddrPort
}

// topological says that the servers of the route have a place.
func (r *RouteConfig) topological() bool {
	return len(r.Servers) == 0 && r.ResolvConf == "" && !r.RulesOnly
}

// patience is the longest time for one query.
func (r *RouteConfig) patience() time.Duration {
	if r.topological() {
		return max(r.Timeout, 4*time.Second)
	}
	return r.Timeout
}

// fromAPI says that the API server tells where.
func (r *RouteConfig) fromAPI() bool { return r.topological() && r.Topology.File == "" }

// LogConfig is the log on standard error.
type LogConfig struct {
	// Level is "debug", "info" (default), "warn" or "error".
	Level string
	// Format is "json" (default) or "console". Read at the start only.
	Format string
}

// defaultConfig is the one place where a default is written, but for those
// that depend on the kind of a route: they are in defaultRoute.
func defaultConfig() Config {
	return Config{
		Listen:     []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:53")},
		Host:       defaultHost(),
		Kubernetes: KubernetesConfig{ReadNode: true},
		Admin: AdminConfig{
			Address: netip.MustParseAddrPort("127.0.0.1:9253"), Pprof: "loopback", Control: "loopback", Socket: defaultProbeSocket, LegacyMetrics: true,
			MetricsTLS: MetricsTLSConfig{ClientAuth: "none", MinVersion: "1.3"},
		},
		Cache:   CacheConfig{Size: 32 << 20, Rotate: true, MaxStale: time.Hour},
		Clients: ClientsConfig{Denied: "refuse", IPv4Prefix: 32, IPv6Prefix: 128},
		Limits: LimitsConfig{
			CPUs:                    1,
			UDPReceiveBuffer:        4 << 20,
			MissesInFlight:          4096,
			TCPConnections:          1024,
			TCPConnectionsPerClient: 128,
			TCPQueriesPerConnection: 64,
			TCPIdle:                 10 * time.Second,
			UpstreamInFlight:        2048,
			UDPReplySize:            1232,
			FollowersPerMiss:        1000,
		},
		Log:       LogConfig{Level: "info", Format: "json"},
		QueryLog:  QueryLogConfig{PerSecond: 100},
		Dnstap:    DnstapConfig{Queue: 2048},
		StopGrace: 5 * time.Second,
	}
}
