package main

import (
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"net/netip"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/nodens-dns/nodens/topology"
)

const maxListen = 16

// loadConfig reads the file at path. Mistakes come back all at once.
func loadConfig(path string, getenv func(string) string) (Config, error) {
	data, err := readFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("configuration file cannot be read: %w; write one ('nodens check -sample' prints a start) or correct -config", err)
	}
	c, err := readConfig(path, data, getenv)
	if err == nil && c.Node.Zone == "" && c.Node.LabelsFile != "" {
		// The kubelet writes it before the container starts; without it the
		// zone is learned elsewhere.
		labels, _ := readFile(c.Node.LabelsFile)
		c.Node.Zone = topology.ZoneOfLabels(string(labels))
	}
	if err == nil && c.Node.Name == "" {
		c.Node.Name = podNode(podAccount)
	}
	return c, err
}

// configFile reads one file into a Config. Beside the values it keeps the
// lines of those that are compared with each other at the end.
type configFile struct {
	yamlFile
	config      Config
	listenLines []int
	adminLine   int
	hostLine    int
	guardLine   int          // of host.metrics
	served      []serverLine // what admin serves beside its address
	burstLine   int
	// upstreamLine is that of limits.upstreamInFlight, 0 when it is not written.
	upstreamLine int
	denied       []int // lines
	servers      []serverLine
	prefer       []preferLine
	searches     []searchLine
	prefixes     map[netip.Prefix]int // lines of those allowed or denied
	zoneLines    map[string]int
}

type serverLine struct {
	address netip.AddrPort
	path    string
	line    int
}

// preferLine is a route's preferPositive.
type preferLine struct {
	lasts time.Duration
	path  string
	line  int
}

// readConfig turns the bytes of a file into a Config, or into every mistake
// in them. It touches nothing but its arguments.
func readConfig(path string, data []byte, getenv func(string) string) (Config, error) {
	f := &configFile{
		yamlFile:  yamlFile{mistakes: mistakes{file: path}},
		config:    defaultConfig(),
		zoneLines: map[string]int{},
	}
	sum := sha512.Sum512(data)
	f.config.Path, f.config.Hash = path, hex.EncodeToString(sum[:])
	f.config.Node.Name, f.config.Node.Zone = getenv("NODE_NAME"), getenv("NODE_ZONE")
	if root := f.document(data); root != nil {
		f.object("", root, f.top(), "version", "routes")
		f.compare()
		f.config.complete(getenv)
	}
	if err := f.err(); err != nil {
		return Config{}, err
	}
	return f.config, nil
}

func (f *configFile) top() fields {
	c := &f.config
	return fields{
		"version":    f.version,
		"listen":     f.listen,
		"node":       f.section(fields{"name": f.to(&c.Node.Name), "zone": f.to(&c.Node.Zone), "labelsFile": f.to(&c.Node.LabelsFile)}),
		"host":       f.hostSection,
		"kubernetes": f.section(f.kubernetes()),
		"admin":      f.section(f.admin()),
		"cache":      f.section(f.cache()),
		"local":      f.section(f.local()),
		"clients":    f.section(f.clients()),
		"limits":     f.section(f.limits()),
		"routes":     f.routes,
		"log":        f.section(f.log()),
		"queryLog":   f.section(f.queryLog()),
		"dnstap":     f.section(f.dnstap()),
		"stopDelay":  f.time(&c.StopDelay, 0, time.Minute),
		"stopGrace":  f.time(&c.StopGrace, time.Second, time.Minute),
	}
}

func (f *configFile) kubernetes() fields {
	k := &f.config.Kubernetes
	return fields{
		"server":    f.to(&k.Server),
		"caFile":    f.to(&k.CAFile),
		"tokenFile": f.to(&k.TokenFile),
		"snapshots": f.to(&k.Snapshots),
		"readNode":  f.flag(&k.ReadNode),
	}
}

func (f *configFile) cache() fields {
	c := &f.config.Cache
	return fields{
		"size":     f.size(&c.Size, 1<<20, 16<<30),
		"rotate":   f.flag(&c.Rotate),
		"maxStale": f.time(&c.MaxStale, 0, 72*time.Hour),
	}
}

func (f *configFile) limits() fields {
	l := &f.config.Limits
	return fields{
		"cpus":                    f.number(&l.CPUs, 1, 64),
		"udpSockets":              f.number(&l.UDPSockets, 1, 8),
		"udpReceiveBuffer":        f.size(&l.UDPReceiveBuffer, 64<<10, 64<<20),
		"missesInFlight":          f.number(&l.MissesInFlight, 16, 65536),
		"tcpConnections":          f.number(&l.TCPConnections, 1, 65536),
		"tcpConnectionsPerClient": f.number(&l.TCPConnectionsPerClient, 1, 65536),
		"tcpQueriesPerConnection": f.number(&l.TCPQueriesPerConnection, 1, 1024),
		"tcpIdle":                 f.time(&l.TCPIdle, time.Second, 10*time.Minute),
		"upstreamInFlight":        f.noted(&f.upstreamLine, f.number(&l.UpstreamInFlight, 16, 65536)),
		"udpReplySize":            f.number(&l.UDPReplySize, 512, 4096),
		"followersPerMiss":        f.number(&l.FollowersPerMiss, 1, 65536),
	}
}

func (f *configFile) log() fields {
	l := &f.config.Log
	return fields{
		"level":  f.word(&l.Level, "debug", "info", "warn", "error"),
		"format": f.word(&l.Format, "json", "console"),
	}
}

func (f *configFile) version(path string, n *yaml.Node) {
	if n.Value != "v1" {
		f.add(n.Line, fmt.Sprintf("version is %q", cut(n.Value)), "write v1, the only version there is")
	}
}

func (f *configFile) listen(path string, n *yaml.Node) {
	f.config.Listen = nil
	f.list(path, n, "addresses", func(path string, n *yaml.Node) {
		address, ok := f.addrPort(path, n, 0)
		if !ok {
			return
		}
		for i, other := range f.config.Listen {
			if other == address {
				f.add(n.Line, fmt.Sprintf("%s repeats %s", path, address), fmt.Sprintf("remove one (the first is on line %d)", f.listenLines[i]))
				return
			}
		}
		f.config.Listen = append(f.config.Listen, address)
		f.listenLines = append(f.listenLines, n.Line)
	})
	if len(f.config.Listen) > maxListen {
		f.add(n.Line, fmt.Sprintf("listen has %d addresses", len(f.config.Listen)), fmt.Sprintf("keep at most %d; a wildcard such as 0.0.0.0:53 covers a family", maxListen))
	}
}

// compare looks for settings that contradict each other. A limit for each client
// above the one for all does not: it just never acts.
func (f *configFile) compare() {
	for _, server := range f.servers {
		if listen, ok := ownListen(f.config.Listen, server.address, nil); ok {
			f.add(server.line, fmt.Sprintf("%s is %s, where nodens itself listens (%s): queries would go round in a loop", server.path, server.address, listen),
				"name the server behind nodens")
		}
	}
	for _, p := range f.prefer {
		if bound := f.config.Cache.MaxStale; p.lasts > bound {
			f.add(p.line, fmt.Sprintf("%s.preferPositive is %s, more than cache.maxStale (%s)", p.path, shortDuration(p.lasts), shortDuration(bound)),
				"lower it or raise cache.maxStale")
		}
	}
	f.compareDenied()
	f.compareBounds()
	f.compareHost()
	f.compareSearches()
	f.compareServed()
}
