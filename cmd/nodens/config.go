package main

import (
	"net/netip"
	"runtime"
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
	Node   NodeConfig
	Admin  AdminConfig
	Cache  CacheConfig
	Limits LimitsConfig
	// Routes has at least one element; every zone is in one route only.
	Routes []RouteConfig
	Local  LocalConfig
	Log    LogConfig
	// StopGrace is how long a stop may take in all, 1 s to 60 s, default 10 s.
	StopGrace time.Duration
}

// NodeConfig says where this daemon runs, so that the nearest endpoint can be
// told from the others. Name is empty when neither the file nor the
// environment variable NODE_NAME says it, Zone when nobody does; then nothing
// is on the same node, or in the same zone.
type NodeConfig struct {
	Name, Zone string
}

// AdminConfig is the HTTP side.
type AdminConfig struct {
	// Address defaults to 127.0.0.1:9253.
	Address netip.AddrPort
	// Pprof is who may read /debug/pprof: "loopback" (default), "all" or "off".
	Pprof string
}

// CacheConfig is the one cache of all routes.
type CacheConfig struct {
	// Size bounds the memory of the entries in bytes, 1 MiB to 16 GiB,
	// default 32 MiB.
	Size int64
	// Rotate turns the addresses of a cached answer around, so that clients
	// spread over them. Default true.
	Rotate bool
	// MaxStale is how long an expired entry may still be served while the
	// upstreams fail, 0 (never) to 72 h, default 1 h.
	MaxStale time.Duration
}

// LimitsConfig are the bounds of the daemon's work. Each has a counter in the
// metrics that tells how close it is.
type LimitsConfig struct {
	// UDPSockets per listen address, 1 to 8; default: the usable CPUs, at most 4.
	UDPSockets int
	// UDPReceiveBuffer of each UDP socket in bytes, 64 KiB to 64 MiB, default
	// 4 MiB. The kernel may grant less (net.core.rmem_max).
	UDPReceiveBuffer int64
	// MissesInFlight over UDP, per listen address, 16 to 65536, default 4096.
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
	// UpstreamInFlight per route, 16 to 65536, default 4096.
	UpstreamInFlight int
	// FollowersPerMiss wait for one identical query's reply, 1 to 65536,
	// default 1000.
	FollowersPerMiss int
}

// RouteConfig sends the names below some zones to some servers. Exactly one
// of TopologyFile, Servers and ResolvConf is set.
type RouteConfig struct {
	// Zones in lower case with a final dot, at least one.
	Zones []string
	// TopologyFile lists EndpointSlices and is followed while it changes.
	TopologyFile string
	// Servers are asked in this order.
	Servers []netip.AddrPort
	// ResolvConf names a file whose nameservers are followed.
	ResolvConf string

	// MaxTTL bounds how long an answer is kept, 1 s to 24 h; default 30 s
	// with a topology, otherwise 1 h.
	MaxTTL time.Duration
	// MaxNegativeTTL bounds how long the absence of a name is kept, 1 s to
	// 3 h; default 5 s with a topology, otherwise 30 s.
	MaxNegativeTTL time.Duration
	// Stale allows expired answers while the upstreams fail. Default false
	// with a topology (an address may already be another pod's), otherwise true.
	Stale bool
	// ForceTCP asks the servers over TCP only. Default false.
	ForceTCP bool
	// Timeout is the whole time for one query, retries included, 100 ms to
	// 10 s, default 4 s: the C library of most clients gives up after 5 s.
	Timeout time.Duration
	// SocketsPerServer bounds the UDP sockets to one server, 1 to 256;
	// default 4 with a topology, otherwise 32: on a longer way more ports
	// make a forged reply harder.
	SocketsPerServer int
}

// LocalConfig says which names are answered without asking anybody.
type LocalConfig struct {
	// Localhost, Invalid and Onion default to true.
	Localhost, Invalid, Onion bool
	// Chaos is what version.bind and its like get: "refuse" (default) or
	// "answer".
	Chaos string
}

// LogConfig is the log on standard error.
type LogConfig struct {
	// Level is "debug", "info" (default), "warn" or "error".
	Level string
	// Format is "json" (default) or "console".
	Format string
}

// defaultConfig is the one place where a default is written, but for those
// that depend on the kind of a route: they are in defaultRoute.
func defaultConfig() Config {
	return Config{
		Listen: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:53")},
		Admin:  AdminConfig{Address: netip.MustParseAddrPort("127.0.0.1:9253"), Pprof: "loopback"},
		Cache:  CacheConfig{Size: 32 << 20, Rotate: true, MaxStale: time.Hour},
		Limits: LimitsConfig{
			UDPSockets:              min(runtime.GOMAXPROCS(0), 4),
			UDPReceiveBuffer:        4 << 20,
			MissesInFlight:          4096,
			TCPConnections:          1024,
			TCPConnectionsPerClient: 128,
			TCPQueriesPerConnection: 64,
			TCPIdle:                 10 * time.Second,
			UpstreamInFlight:        4096,
			FollowersPerMiss:        1000,
		},
		Local:     LocalConfig{Localhost: true, Invalid: true, Onion: true, Chaos: "refuse"},
		Log:       LogConfig{Level: "info", Format: "json"},
		StopGrace: 10 * time.Second,
	}
}

// defaultRoute is a route before the file is read. In a cluster names change
// often and the servers are near; elsewhere it is the other way round.
func defaultRoute(cluster bool) RouteConfig {
	if cluster {
		return RouteConfig{
			MaxTTL: 30 * time.Second, MaxNegativeTTL: 5 * time.Second,
			Timeout: 4 * time.Second, SocketsPerServer: 4,
		}
	}
	return RouteConfig{
		MaxTTL: time.Hour, MaxNegativeTTL: 30 * time.Second, Stale: true,
		Timeout: 4 * time.Second, SocketsPerServer: 32,
	}
}
