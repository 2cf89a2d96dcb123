package main

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nodens-dns/nodens/forwarder/upstream"
)

func noEnv(string) string { return "" }

// byValue shows address values to cmp.
func byValue() cmp.Option {
	return cmp.Options{cmpopts.EquateComparable(netip.AddrPort{}, netip.Addr{}, netip.Prefix{})}
}

func addrPorts(list ...string) []netip.AddrPort {
	var parsed []netip.AddrPort
	for _, s := range list {
		parsed = append(parsed, netip.MustParseAddrPort(s))
	}
	return parsed
}

func prefixes(list ...string) []netip.Prefix {
	var parsed []netip.Prefix
	for _, s := range list {
		parsed = append(parsed, netip.MustParsePrefix(s))
	}
	return parsed
}

func TestSampleIsTheDefault(t *testing.T) {
	got, err := readConfig("sample.yaml", []byte(sampleConfig), noEnv)
	if err != nil {
		t.Fatal(err)
	}
	want := defaultConfig()
	want.Limits.UDPSockets = 1 // follows cpus
	want.Path, want.Hash = got.Path, got.Hash
	want.Node = NodeConfig{Name: "node-1", Zone: "zone-a"}
	cluster, rest := defaultRoute(true), defaultRoute(false)
	cluster.Zones = []string{"cluster.local.", "in-addr.arpa.", "ip6.arpa."}
	cluster.Topology.File, cluster.Topology.Namespace, cluster.Topology.Service = "/etc/nodens/endpoints.yaml", "kube-system", "kube-dns"
	cluster.Search.Domain = "cluster.local."
	cluster.Topology.Domain, cluster.Probe = "cluster.local.", "kubernetes.default.svc.cluster.local."
	rest.Zones, rest.ResolvConf = []string{"."}, "/etc/resolv.conf"
	want.Routes = []RouteConfig{cluster, rest}
	if diff := cmp.Diff(want, got, byValue()); diff != "" {
		t.Errorf("the sample states something else than the defaults (-default +sample):\n%s", diff)
	}
}

// Every key that can be set is in the sample, so that it documents them all.
// TestRoomForOtherRoutes holds that one route with silent servers cannot take
// all the places of queries that wait.
func TestRoomForOtherRoutes(t *testing.T) {
	if l := defaultConfig().Limits; l.UpstreamInFlight > l.MissesInFlight/2 {
		t.Errorf("a route may have %d questions in flight, a listener %d misses: others have too little room", l.UpstreamInFlight, l.MissesInFlight)
	}
}

func TestSampleNamesEveryKey(t *testing.T) {
	f := &configFile{}
	all := sortedKeys(f.top())
	for _, section := range []fields{
		f.cache(), f.limits(), f.log(), f.kubernetes(), f.topology(&TopologyConfig{}), f.local(), f.admin(), f.host(), f.clients(), f.routeCacheFields(&RouteCacheConfig{}),
		f.ruleFields(&RulesConfig{}), f.searchFields(&SearchConfig{}), f.queryLog(), f.dnstap(), f.answerFields(&AnswerConfig{}), f.hostsFields(&HostsConfig{}), f.dns64Fields(&DNS64Config{}),
	} {
		all = append(all, sortedKeys(section)...)
	}
	for _, key := range all {
		if !strings.Contains(sampleConfig, key+":") {
			t.Errorf("the sample does not show %s", key)
		}
	}
}

func TestReadConfig(t *testing.T) {
	file := `
version: v1
listen: [127.0.0.1:5353, "[::1]:5353", 0.0.0.0:53]
node: {name: n1, zone: za}
admin: {address: 127.0.0.1:9999, pprof: off, control: off}
cache: {size: 64Mi, rotate: false, maxStale: 2h}
local: {deny: [CORP], chaos: {Version.Bind: secret}, refuseSnooping: true}
clients: {allow: [10.0.0.0/8, "2001:db8::/32"], deny: [10.9.0.1], denied: drop, queriesPerSecond: 100, missesInFlight: 20,
  unlimited: [10.0.0.1/32], ipv4Prefix: 24, ipv6Prefix: 64}
limits: {udpSockets: 2, udpReceiveBuffer: 128Ki, missesInFlight: 100, tcpIdle: 1m}
routes:
- zones: [Cluster.Local, "10.in-addr.arpa."]
  topology: {file: /e.yaml}
  cache: {maxTTL: 10s}
  search: {cut: true, strict: true}
  forceTCP: true
- zones: ["."]
  servers: [192.0.2.1, "192.0.2.2:5300", "2001:db8::1", "[2001:db8::2]:54"]
  timeout: 2s
  choose: sequential
  socketsPerServer: 8
  queryLog: {every: 3, slower: 1ms}
  rewrite: [{name: DB.example, to: db.corp}, {suffix: a.example, to: b.example.}]
  answers:
  - {below: [X.example], match: "^a", types: [a, AAAA], records: ["60 A 192.0.2.1", "5 IN AAAA 2001:db8::7"]}
  - {types: [HTTPS], rcode: nxdomain}
  filterAAAA: true
  hosts: {entries: ["192.0.2.9 nas.example nas"], file: /h, ttl: 1m, reverse: false, only: true}
  dns64: {prefix: "64:ff9b::/96", all: true}
- zones: [corp.example]
  resolvConf: /r.conf
  cache: {maxTTL: 2h, minTTL: 1m, maxNegativeTTL: 1m, servFailTTL: 10s, maxServFailTTL: 1m, stale: true, staleWait: 0s,
    preferPositive: 1h, shareNXDomain: true, prefetch: 3, keepAA: true, minimal: true}
log: {level: warn, format: console}
queryLog: {every: 10, below: Corp.example, slower: 5ms, perSecond: 7}
dnstap: {address: "192.0.2.1:6000", identity: me, queue: 99}
stopGrace: 5s
`
	got, err := readConfig("f", []byte(file), noEnv)
	if err != nil {
		t.Fatal(err)
	}
	want := defaultConfig()
	want.Path, want.Hash = got.Path, got.Hash
	want.Listen = addrPorts("127.0.0.1:5353", "[::1]:5353", "0.0.0.0:53")
	want.Node = NodeConfig{Name: "n1", Zone: "za"}
	want.Admin = AdminConfig{Address: netip.MustParseAddrPort("127.0.0.1:9999"), Pprof: "off", Control: "off", Socket: defaultProbeSocket, LegacyMetrics: true, MetricsTLS: MetricsTLSConfig{ClientAuth: "none", MinVersion: "1.3"}}
	want.Cache = CacheConfig{Size: 64 << 20, MaxStale: 2 * time.Hour}
	want.Limits.UDPSockets, want.Limits.UDPReceiveBuffer = 2, 128<<10
	want.Limits.MissesInFlight, want.Limits.UpstreamInFlight, want.Limits.TCPIdle = 100, 50, time.Minute
	clusterCache, corpCache := defaultRoute(true).Cache, defaultRoute(false).Cache
	clusterCache.MaxTTL = 10 * time.Second
	corpCache.MaxTTL, corpCache.MinTTL, corpCache.MaxNegativeTTL = 2*time.Hour, time.Minute, time.Minute
	corpCache.ServFailTTL, corpCache.MaxServFailTTL = 10*time.Second, time.Minute
	corpCache.Stale, corpCache.StaleWait, corpCache.PreferPositive = true, 0, time.Hour
	corpCache.ShareNXDomain, corpCache.Prefetch, corpCache.KeepAA, corpCache.Minimal = true, 3, true, true
	want.Local = LocalConfig{Deny: []string{"corp."}, Chaos: map[string]string{"version.bind.": "secret"}, RefuseSnooping: true}
	usual := defaultRoute(true).Rules
	want.Clients = ClientsConfig{
		Allow: prefixes("10.0.0.0/8", "2001:db8::/32"), Deny: prefixes("10.9.0.1/32"), Denied: "drop",
		QueriesPerSecond: 100, Burst: 200, MissesInFlight: 20, Unlimited: prefixes("10.0.0.1/32"), IPv4Prefix: 24, IPv6Prefix: 64,
	}
	want.Routes = []RouteConfig{
		{
			Zones: []string{"cluster.local.", "10.in-addr.arpa."}, Choose: "balanced", Cache: clusterCache, Rules: usual, ForceTCP: true, Timeout: 2 * time.Second, SocketsPerServer: 4,
			Probe: "kubernetes.default.svc.cluster.local.",
		},
		{
			Zones: []string{"."}, Servers: addrPorts("192.0.2.1:53", "192.0.2.2:5300", "[2001:db8::1]:53", "[2001:db8::2]:54"), Choose: "sequential",
			Cache: defaultRoute(false).Cache, Timeout: 2 * time.Second, SocketsPerServer: 8, Probe: ".", MixCase: true,
			Rules: RulesConfig{
				Rewrite: []RewriteConfig{{From: "db.example.", To: "db.corp."}, {From: "a.example.", To: "b.example.", Suffix: true}},
				Answers: []AnswerConfig{
					{Below: []string{"x.example."}, Match: "^a", Types: []uint16{1, 28}, Records: []string{"60 A 192.0.2.1", "5 IN AAAA 2001:db8::7"}},
					{Types: []uint16{65}, RCode: 3},
				},
				FilterAAAA: true,
				Hosts:      HostsConfig{Entries: []string{"192.0.2.9 nas.example nas"}, File: "/h", TTL: time.Minute, Only: true},
				DNS64:      DNS64Config{Prefix: netip.MustParsePrefix("64:ff9b::/96"), All: true},
			},
		},
		{
			Zones: []string{"corp.example."}, ResolvConf: "/r.conf", Choose: "balanced", Cache: corpCache, Rules: usual,
			Timeout: 4 * time.Second, SocketsPerServer: 32, Probe: ".", MixCase: true,
		},
	}
	want.Routes[0].Search = SearchConfig{Domain: "cluster.local.", Prefetch: true, Cut: true, Strict: true}
	want.Routes[0].QueryLog, want.Routes[2].QueryLog = defaultRoute(true).QueryLog, defaultRoute(false).QueryLog
	want.Routes[1].QueryLog = RouteQueryLogConfig{Every: 3, Slower: time.Millisecond}
	want.Routes[0].Topology = defaultRoute(true).Topology
	want.Routes[0].Topology.Domain = "cluster.local."
	want.Routes[0].Topology.File = "/e.yaml"
	want.Log = LogConfig{"warn", "console"}
	want.QueryLog = QueryLogConfig{Every: 10, Below: "corp.example.", Slower: 5 * time.Millisecond, PerSecond: 7}
	want.Dnstap = DnstapConfig{Address: "192.0.2.1:6000", Identity: "me", Queue: 99}
	want.StopGrace = 5 * time.Second
	if diff := cmp.Diff(want, got, byValue()); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
}

func TestNodeNameFromEnvironment(t *testing.T) {
	env := func(name string) string { return map[string]string{"NODE_NAME": "from-env"}[name] }
	rest := "\nroutes: [{zones: [.], servers: [192.0.2.1]}]\n"
	for file, want := range map[string]string{
		"version: v1":                     "from-env",
		"version: v1\nnode: {name: mine}": "mine",
		"version: v1\nnode: {zone: a}":    "from-env",
		"version: v1\nnode: {name: 007}":  "007",
	} {
		c, err := readConfig("f", []byte(file+rest), env)
		if err != nil || c.Node.Name != want {
			t.Errorf("%q: node name %q, %v; want %q", file, c.Node.Name, err, want)
		}
	}
}

// withRule is a file with a rule in its only route.
func withRule(rule string) string { return oneRoute("zones: [.]\n  servers: [192.0.2.1]\n  " + rule) }

// good is a file that each mistake below is put into.
const good = "version: v1\nroutes: [{zones: [.], servers: [192.0.2.1]}]\n"

func TestMistakes(t *testing.T) {
	for name, test := range map[string]struct{ file, want string }{
		"empty file":         {"", "f:1: the file is empty; start from the output of 'nodens check -sample'"},
		"only comments":      {"# nothing\n", "f:1: the file is empty; start from"},
		"not YAML":           {good + "listen: [\n", "f:3: this is not YAML: "},
		"not a mapping":      {"- a\n", "f:1: the file is a list; write a mapping of admin, "},
		"two documents":      {good + "---\nversion: v1\n", "f:3: a second document starts here; keep one"},
		"no version":         {"routes: [{zones: [.], servers: [192.0.2.1]}]\n", "f:1: version is missing; add it"},
		"other version":      {"version: v2\nroutes: [{zones: [.], servers: [192.0.2.1]}]\n", `f:1: version is "v2"; write v1`},
		"no routes":          {"version: v1\n", "f:1: routes is missing; add it"},
		"empty routes":       {"version: v1\nroutes: []\n", "f:2: routes is an empty list; add routes"},
		"unknown key, near":  {good + "lissten: [127.0.0.1:53]\n", `f:3: unknown key "lissten"; did you mean "listen"?`},
		"unknown key, case":  {good + "limits: {udpsockets: 1}\n", `f:3: unknown key "limits.udpsockets"; did you mean "udpSockets"?`},
		"unknown key, far":   {good + "xyzzyxyzzy: 1\n", `f:3: unknown key "xyzzyxyzzy"; remove it; known here: admin, cache, `},
		"key twice":          {good + "node: {name: a}\nnode: {name: b}\n", "f:4: node is given twice; remove one (the first is on line 3)"},
		"key without value":  {good + "listen:\n", "f:3: listen has no value; write one or remove the line"},
		"alias":              {good + "node: {name: &x a, zone: *x}\n", "f:3: node.zone is an alias; write the value itself"},
		"text for a list":    {good + "listen: 127.0.0.1:53\n", `f:3: listen is "127.0.0.1:53"; write a list of addresses`},
		"list for a mapping": {good + "node: [a]\n", "f:3: node is a list; write a mapping of labelsFile, name, zone"},
		"name for a listen":  {good + "listen: [localhost:53]\n", `f:3: listen[0] is "localhost:53"; write an IP address with a port`},
		"listen, no port":    {good + "listen: [127.0.0.1]\n", `f:3: listen[0] is "127.0.0.1"; write an IP address with a port, such as 127.0.0.1:53 or "[::1]:53"`},
		"IPv6 unquoted":      {good + "listen: [[::1]:53]\n", ": this is not YAML: "},
		"listen twice":       {good + "listen:\n- 127.0.0.1:53\n- 127.0.0.1:53\n", "f:5: listen[1] repeats 127.0.0.1:53; remove one (the first is on line 4)"},
		"too many listen":    {good + "listen: [" + manyListen() + "]\n", "f:3: listen has 17 addresses; keep at most 16"},
		"mode word":          {good + "host: {mode: bridge}\n", `f:3: host.mode is "bridge"; write none, link-local or service`},
		"host, wildcard":     {good + "listen: [0.0.0.0:53]\nhost: {mode: link-local}\n", "f:3: listen[0] is 0.0.0.0:53, which stands for every address: it cannot be set up on the host; name the addresses"},
		"host, two ports":    {good + "listen: [169.254.20.10:53, 169.254.20.11:54]\nhost: {mode: link-local}\n", "f:3: listen[1] is 169.254.20.11:54, which has another port than 53"},
		"host, no address":   {good + "host: {mode: link-local}\n", "f:3: host.mode is link-local, but mode link-local without a listen address: name one; correct listen or host"},
		"host, fe80":         {good + "listen: [\"[fe80::1]:53\"]\nhost: {mode: link-local}\n", "f:4: host.mode is link-local, but listen address fe80::1 is IPv6 link-local"},
		"host, no service":   {good + "listen: [169.254.20.10:53]\nhost: {mode: service}\n", "f:4: host.mode is service with 0 addresses in host.service; name the cluster addresses"},
		"host, not listened": {good + "listen: [169.254.20.10:53]\nhost: {mode: service, service: [10.96.0.10]}\n", "f:4: host.service has 10.96.0.10, which is no listen address; add it to listen"},
		"host, bad address":  {good + "host: {service: [kube-dns]}\n", `f:3: host.service[0] is "kube-dns"; write an IP address such as 10.96.0.10`},
		"admin on listen":    {good + "admin: {address: 127.0.0.1:53}\n", "f:3: admin.address is 127.0.0.1:53, which the listen address 127.0.0.1:53 takes; choose another port"},
		"listen on admin":    {good + "listen: [127.0.0.1:9253]\n", "f:3: admin.address is 127.0.0.1:9253, which the listen address 127.0.0.1:9253 takes; choose another port"},
		"admin everywhere":   {good + "admin: {address: 0.0.0.0:53}\n", "f:3: admin.address is 0.0.0.0:53, which the listen address 127.0.0.1:53 takes; choose another port"},
		"metrics on listen":  {good + "admin: {metrics: [\":9253\", 127.0.0.1:53]}\n", "f:3: admin.metrics[1] is 127.0.0.1:53, which the listen address 127.0.0.1:53 takes; choose another port"},
		"guard on admin":     {good + "listen: [169.254.20.10:53]\nhost: {mode: link-local, metrics: 0.0.0.0:9253}\n", "f:4: host.metrics is 0.0.0.0:9253, which admin.address has with 127.0.0.1:9253; choose another port"},
		"guard on listen":    {good + "listen: [169.254.20.10:53]\nhost: {mode: link-local, metrics: 169.254.20.10:53}\n", "f:4: host.metrics is 169.254.20.10:53, which the listen address 169.254.20.10:53 takes; choose another port"},
		"host, bad link":     {good + "listen: [169.254.20.10:53]\nhost: {mode: link-local, link: ..}\n", "f:4: host.mode is link-local, but link name \"..\""},
		"pprof word":         {good + "admin: {pprof: on}\n", `f:3: admin.pprof is "on"; write loopback, all or off`},
		"verify by nobody":   {good + "admin: {metricsTLS: {listen: [\":9443\"], certFile: a, keyFile: b, clientAuth: verify}}\n", "f:3: admin.metricsTLS.clientAuth is verify without clientCAFile"},
		"bool as text":       {good + "cache: {rotate: \"true\"}\n", `f:3: cache.rotate is "true"; write true or false`},
		"bool as yes":        {good + "cache: {rotate: yes}\n", `f:3: cache.rotate is "yes"; write true or false`},
		"int as text":        {good + "limits: {udpSockets: \"2\"}\n", `f:3: limits.udpSockets is "2"; write a whole number from 1 to 8`},
		"int as fraction":    {good + "limits: {udpSockets: 1.5}\n", `f:3: limits.udpSockets is "1.5"; write a whole number from 1 to 8`},
		"int too big":        {good + "limits: {udpSockets: 9}\n", "f:3: limits.udpSockets is 9; choose from 1 to 8"},
		"int beyond int":     {good + "limits: {udpSockets: 99999999999999999999}\n", "f:3: limits.udpSockets is "},
		"size without unit":  {good + "cache: {size: 32}\n", "f:3: cache.size is 32; choose from 1Mi to 16Gi"},
		"size, other unit":   {good + "cache: {size: 32MB}\n", `f:3: cache.size is "32MB"; write a size such as 32Mi`},
		"size overflows":     {good + "cache: {size: 9999999999999Gi}\n", `f:3: cache.size is "9999999999999Gi"; write a size`},
		"size negative":      {good + "cache: {size: -1Mi}\n", "f:3: cache.size is -1Mi; choose from 1Mi to 16Gi"},
		"time without unit":  {good + "cache: {maxStale: 30}\n", "f:3: cache.maxStale is 30 without a unit; write 30s for seconds"},
		"time, no time":      {good + "cache: {maxStale: soon}\n", `f:3: cache.maxStale is "soon"; write a duration such as 30s`},
		"time out of range":  {good + "stopGrace: 2h\n", "f:3: stopGrace is 2h; choose from 1s to 1m"},
		"log level":          {good + "log: {level: loud}\n", `f:3: log.level is "loud"; write debug, info, warn or error`},
		"route, no zones":    {oneRoute("servers: [192.0.2.1]"), "f:3: routes[0].zones is missing; add it"},
		"route, no servers":  {oneRoute("zones: [.]"), "f:3: routes[0] has no servers; add servers, resolvConf or topology"},
		"route is text":      {"version: v1\nroutes: [all]\n", `f:2: routes[0] is "all"; write a mapping of answers, cache, choose, `},
		"both kinds":         {oneRoute("zones: [.]\n  servers: [192.0.2.1]\n  resolvConf: /r"), "f:5: routes[0] has both servers (line 4) and resolvConf; keep one"},
		"server by name":     {oneRoute("zones: [.]\n  servers: [dns.example]"), `f:4: routes[0].servers[0] is "dns.example"; write an IP address with or without a port`},
		"server twice":       {oneRoute("zones: [.]\n  servers: [192.0.2.1, \"192.0.2.1:53\"]"), "f:4: routes[0].servers[1] repeats 192.0.2.1:53; remove one"},
		"server wildcard":    {oneRoute("zones: [.]\n  servers: [0.0.0.0]"), "f:4: routes[0].servers[0] is 0.0.0.0:53, which stands for every address; write the address of a DNS server"},
		"server multicast":   {oneRoute("zones: [.]\n  servers: [\"ff02::fb\"]"), "f:4: routes[0].servers[0] is [ff02::fb]:53, which is a group of hosts"},
		"server port 0":      {oneRoute("zones: [.]\n  servers: [\"192.0.2.1:0\"]"), "which has no port"},
		"server is us":       {oneRoute("zones: [.]\n  servers: [127.0.0.1]"), "f:4: routes[0].servers[0] is 127.0.0.1:53, where nodens itself listens (127.0.0.1:53): queries would go round in a loop; name the server behind nodens"},
		"server is mapped":   {oneRoute("zones: [.]\n  servers: [\"::ffff:127.0.0.1\"]"), "where nodens itself listens"},
		"server, wildcard":   {oneRoute("zones: [.]\n  servers: [127.0.0.53]") + "listen: [0.0.0.0:53]\n", "f:4: routes[0].servers[0] is 127.0.0.53:53, where nodens itself listens (0.0.0.0:53)"},
		"zone twice":         {oneRoute("zones: [a.example]\n  servers: [192.0.2.1]\n- zones: [b.example, A.example.]\n  servers: [192.0.2.2]"), `f:5: the zone "a.example." is in two routes or twice in one; keep it in one place (the first is on line 3)`},
		"zone is a URL":      {oneRoute("zones: [\"http://a\"]\n  servers: [192.0.2.1]"), `f:3: routes[0].zones[0] is "http://a", which is not a zone`},
		"zone, long label":   {oneRoute("zones: [" + strings.Repeat("a", 64) + "]\n  servers: [192.0.2.1]"), "which is not a zone"},
		"zone, empty":        {oneRoute("zones: [\"\"]\n  servers: [192.0.2.1]"), `f:3: routes[0].zones[0] is ""; write text`},
		"no zones":           {oneRoute("zones: []\n  servers: [192.0.2.1]"), "f:3: routes[0].zones is an empty list; add zones such as cluster.local"},
		"deny all":           {good + "local: {deny: [.]}\n", `f:3: local.deny[0] is ".", which is every name; leave out the route for it instead`},
		"deny a zone":        {oneRoute("zones: [a.example]\n  servers: [192.0.2.1]") + "local: {deny: [A.example]}\n", `f:5: local.deny has "a.example.", which is also a zone of a route; keep it in one place (the zone is on line 3)`},
		"deny twice":         {good + "local: {deny: [a, b, A.]}\n", `f:3: local.deny repeats "a."; remove one (the first is on line 3)`},
		"deny no name":       {good + "local: {deny: [\"a b\"]}\n", `f:3: local.deny[0] is "a b", which is no domain name`},
		"chaos is text":      {good + "local: {chaos: version.bind}\n", `f:3: local.chaos is "version.bind"; write a mapping of names to texts`},
		"chaos, long text":   {good + "local: {chaos: {version.bind: " + strings.Repeat("x", 256) + "}}\n", `f:3: the text of local.chaos.version.bind has 256 bytes; keep at most 255`},
		"chaos twice":        {good + "local: {chaos: {version.bind: a, VERSION.bind: b}}\n", `f:3: local.chaos has "version.bind." twice; remove one`},
		"chaos, no text":     {good + "local: {chaos: {version.bind: [a]}}\n", `f:3: local.chaos.version.bind is a list; write text`},
		"least over most":    {oneRoute("zones: [.]\n  servers: [192.0.2.1]\n  cache: {minTTL: 1m, maxTTL: 30s}"), "f:5: routes[0].cache.minTTL is 1m, more than maxTTL (30s); lower it or raise maxTTL"},
		"failures shrink":    {oneRoute("zones: [.]\n  servers: [192.0.2.1]\n  cache: {maxServFailTTL: 2s}"), "f:5: routes[0].cache.maxServFailTTL is 2s, less than servFailTTL (5s); raise it, or write 0s for no growth"},
		"no wait, no stale":  {oneRoute("zones: [.]\n  servers: [192.0.2.1]\n  cache: {staleWait: 0s, stale: false}"), "f:5: routes[0].cache.staleWait is 0s, but expired answers are only given when no server answers; let clients wait"},
		"prefer too long":    {oneRoute("zones: [.]\n  servers: [192.0.2.1]\n  cache: {preferPositive: 2h}"), "f:5: routes[0].cache.preferPositive is 2h, more than cache.maxStale (1h); lower it or raise cache.maxStale"},
		"huge value":         {good + "log: {level: " + strings.Repeat("x", 1000) + "}\n", `f:3: log.level is "` + strings.Repeat("x", 80) + `…"; write debug`},
		"huge key":           {good + strings.Repeat("x", 1000) + ": 1\n", `f:3: unknown key "` + strings.Repeat("x", 80) + `…"; remove it`},
		"huge address":       {good + "listen: [" + strings.Repeat("1", 1000) + "]\n", `f:3: listen[0] is "` + strings.Repeat("1", 80) + `…"; write an IP address`},
		"huge zone":          {oneRoute("zones: [" + strings.Repeat("a", 1000) + "]\n  servers: [192.0.2.1]"), `routes[0].zones[0] is "` + strings.Repeat("a", 80) + `…", which is not a zone`},
		"rewrite both":       {withRule("rewrite: [{name: a.example, suffix: b.example, to: c.example}]"), "f:5: routes[0].rewrite[0] has not one of name and suffix; write name for one name"},
		"rewrite, no to":     {withRule("rewrite: [{name: a.example}]"), "f:5: routes[0].rewrite[0].to is missing; add it"},
		"answer, no regexp":  {withRule("answers: [{match: \"(\"}]"), "f:5: routes[0].answers[0].match is no regular expression"},
		"answer, no type":    {withRule("answers: [{types: [AAAAA]}]"), `f:5: routes[0].answers[0].types[0] is "AAAAA", which is no type`},
		"answer, no rcode":   {withRule("answers: [{rcode: MAYBE}]"), `f:5: routes[0].answers[0].rcode is "MAYBE", which is no response code`},
		"answer, no record":  {withRule("answers: [{records: [192.0.2.1]}]"), `f:5: routes[0].answers[0].records[0] is "192.0.2.1", which is no record; write TTL, type and data`},
		"answer, both":       {withRule("answers: [{rcode: NXDOMAIN, records: [60 A 192.0.2.1]}]"), "f:5: routes[0].answers[0] has both records and an rcode that forbids them"},
		"hosts, empty":       {withRule("hosts: {ttl: 1s}"), "f:5: routes[0].hosts has neither entries nor a file; add one"},
		"hosts, bad line":    {withRule("hosts: {entries: [db.example]}"), `f:5: routes[0].hosts.entries[0] is "db.example", which is not an address and its names`},
		"dnstap, nowhere":    {good + "dnstap: {address: collector}\n", `f:3: dnstap.address is "collector", which is neither a path nor an address with a port`},
		"search, nowhere":    {withRule("search: {cut: true}"), "f:5: routes[0].search has no domain; name that of the cluster"},
		"search, elsewhere":  {oneRoute("zones: [a.example]\n  servers: [192.0.2.1]\n  search: {domain: cluster.local}"), `f:5: routes[0].search.domain is "cluster.local.", which is in no zone of the route`},
		"dns64, bits":        {withRule("dns64: {prefix: \"64:ff9b::/95\"}"), `f:5: routes[0].dns64.prefix is "64:ff9b::/95", which is no prefix for IPv4 addresses`},
		"dns64, host bits":   {withRule("dns64: {prefix: \"64:ff9b::1/96\"}"), "f:5: routes[0].dns64.prefix is 64:ff9b::1/96, which has bits behind its length; write 64:ff9b::/96"},
		"rewrite to itself":  {withRule("rewrite: [{name: A.example, to: a.example.}]"), "f:5: routes[0].rewrite[0] asks for a.example. under its own name; remove it"},
		"answer, other type": {withRule("answers: [{types: [AAAA], records: [60 A 192.0.2.1]}]"), "f:5: routes[0].answers[0].records[0] is a record of type A, which no question of its types gets; add A to types"},
		"answer, alias":      {withRule("answers: [{records: [60 CNAME a.example, 60 A 192.0.2.1]}]"), "f:5: routes[0].answers[0].records[0] is an alias beside other records; keep the alias alone"},
		"answer, TTL":        {withRule("answers: [{records: [2147483648 A 192.0.2.1]}]"), `f:5: routes[0].answers[0].records[0] is "2147483648 A 192.0.2.1", which is no record; write TTL, type and data, such as "60 A 192.0.2.1", with a TTL of at most 2147483647`},
		"burst, no rate":     {good + "clients: {burst: 5}\n", "f:3: clients.burst is of no effect without a rate; add queriesPerSecond"},
		"upstream, misses":   {good + "limits: {upstreamInFlight: 200, missesInFlight: 100}\n", "f:3: limits.upstreamInFlight is 200, more than missesInFlight (100)"},
		"ttl zero":           {oneRoute("zones: [.]\n  servers: [192.0.2.1]\n  cache: {maxTTL: 0s}"), "f:5: routes[0].cache.maxTTL is 0s; choose from 1s to 24h"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readConfig("f", []byte(test.file), noEnv)
			if err == nil {
				t.Fatalf("no mistake found, want %q", test.want)
			}
			if lines := strings.Split(err.Error(), "\n"); len(lines) != 1 {
				t.Errorf("%d mistakes, want one:\n%v", len(lines), err)
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
}

func oneRoute(lines string) string { return "version: v1\nroutes:\n- " + lines + "\n" }

func manyListen() string {
	var list []string
	for i := range 17 {
		list = append(list, netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, byte(i)}), 5300).String())
	}
	return strings.Join(list, ", ")
}

func TestManyMistakesAtOnce(t *testing.T) {
	file := `version: v1
listen: [127.0.0.1:5300, nowhere]
cahce: {size: 1Mi}
limits:
  udpSockets: many
  tcpIdle: 5
routes:
- zones: [.]
  servers: [127.0.0.1:5300, 0.0.0.0]
- zones: [.]
`
	_, err := readConfig("conf.yaml", []byte(file), noEnv)
	if err == nil {
		t.Fatal("no mistake found")
	}
	var lines []string
	for _, l := range strings.Split(err.Error(), "\n") {
		lines = append(lines, strings.SplitN(l, " ", 2)[0])
	}
	want := []string{"conf.yaml:2:", "conf.yaml:3:", "conf.yaml:5:", "conf.yaml:6:", "conf.yaml:9:", "conf.yaml:9:", "conf.yaml:10:", "conf.yaml:10:"}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s\n%v", diff, err)
	}
}

func TestCheckCommand(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "c.yaml")
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(good)
	for name, test := range map[string]struct {
		args           []string
		status         int
		stdout, stderr string
	}{
		"good":          {[]string{"check", "-config", path}, 0, path + ": good; listens on 127.0.0.1:53, cache 32Mi, . -> 192.0.2.1:53", ""},
		"missing":       {[]string{"check", "-config", dir + "/none"}, 1, "", "configuration file cannot be read: open " + dir + "/none: no such file or directory; write one"},
		"no flag":       {[]string{"check"}, 2, "", "-config FILE or -corefile FILE is missing"},
		"both flags":    {[]string{"check", "-config", path, "-corefile", path}, 2, "", "one at a time"},
		"sample":        {[]string{"check", "-sample"}, 0, "version: v1", ""},
		"too much":      {[]string{"check", "-sample", "x"}, 2, "", `"x" is too much`},
		"bad flag":      {[]string{"check", "-x"}, 2, "", "not defined: -x"},
		"help":          {[]string{"check", "-h"}, 0, "", "-config FILE"},
		"no command":    {nil, 2, "", "nodens check"},
		"usage":         {[]string{"help"}, 0, "nodens check    -config FILE", ""},
		"wrong command": {[]string{"chekc"}, 2, "", `there is no command "chekc"; did you mean "check"?`},
		"version":       {[]string{"version"}, 0, "nodens devel (", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			status := run(t.Context(), test.args, noEnv, &stdout, &stderr)
			if status != test.status || !strings.Contains(stdout.String(), test.stdout) || !strings.Contains(stderr.String(), test.stderr) {
				t.Errorf("status %d, stdout %q, stderr %q\nwant %d, %q, %q", status, &stdout, &stderr, test.status, test.stdout, test.stderr)
			}
		})
	}
	write("version: v1\nroutes: [{zones: [.], servers: [nowhere, 192.0.2.1]}]\nx: 1\n")
	var stdout, stderr strings.Builder
	if status := run(t.Context(), []string{"check", "-config", path}, noEnv, &stdout, &stderr); status != 1 || strings.Count(stderr.String(), path+":") != 2 {
		t.Errorf("two mistakes: status %d, stderr %q", status, &stderr)
	}
}

func TestDomains(t *testing.T) {
	tests := map[string]struct {
		routes        string
		domain, probe string // of the first route
		fast          []string
	}{
		"the route's zone": {
			"- {zones: [10.in-addr.arpa, k8s.example], topology: {}}",
			"k8s.example.", "kubernetes.default.svc.k8s.example.",
			[]string{"k8s.example.", "in-addr.arpa.", "ip6.arpa.", "10.in-addr.arpa.", "k8s.example."},
		},
		"another route's": {
			"- {zones: [\".\"], topology: {}}\n- {zones: [k8s.example], topology: {}}",
			"k8s.example.", "kubernetes.default.svc.k8s.example.",
			[]string{"k8s.example.", "in-addr.arpa.", "ip6.arpa."},
		},
		"nobody's":     {"- {zones: [\".\"], topology: {}}", "cluster.local.", "kubernetes.default.svc.cluster.local.", []string{"cluster.local.", "in-addr.arpa.", "ip6.arpa."}},
		"written down": {"- {zones: [\".\"], probe: P.example, topology: {domain: K8S.example}}", "k8s.example.", "p.example.", []string{"k8s.example.", "in-addr.arpa.", "ip6.arpa."}},
	}
	for name, tc := range tests {
		c, err := readConfig("f", []byte("version: v1\nroutes:\n"+tc.routes+"\n"), noEnv)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		r := &c.Routes[0]
		if r.Topology.Domain != tc.domain || r.Probe != tc.probe {
			t.Errorf("%s: domain %s, probe %s", name, r.Topology.Domain, r.Probe)
		}
		if diff := cmp.Diff(tc.fast, r.fastZones()); diff != "" {
			t.Errorf("%s: fast zones (-want +got):\n%s", name, diff)
		}
	}
}

func TestServersOverTLS(t *testing.T) {
	read := func(server string) (Config, error) {
		return readConfig("f", []byte("version: v1\nroutes:\n- zones: [.]\n  servers: [\""+server+"\"]\n"), noEnv)
	}
	for server, want := range map[string]string{
		"tls://192.0.2.1#dns.example":          "tls://192.0.2.1:853#dns.example",
		"tls://192.0.2.1:8853@dns.example":     "tls://192.0.2.1:8853#dns.example",
		"tls://2001:db8::1#dns.example":        "tls://[2001:db8::1]:853#dns.example",
		"tls://[2001:db8::1]:8853#dns.example": "tls://[2001:db8::1]:8853#dns.example",
	} {
		c, err := read(server)
		if err != nil {
			t.Errorf("%s: %v", server, err)
			continue
		}
		if got := c.Routes[0].source(); got != want {
			t.Errorf("%s: %s, want %s", server, got, want)
		}
		table := plainTable(c.Routes[0].Servers, c.Routes[0].TLSNames)
		if m := table.Tiers[upstream.ClusterTier]; len(m) != 1 || m[0].TLSName != "dns.example" {
			t.Errorf("%s: members %+v", server, m)
		}
	}
	for server, want := range map[string]string{
		"tls://192.0.2.1":          "without the name",
		"tls://192.0.2.1#":         "without the name",
		"tls://dns.example#a.test": "write an IP address",
		"tls://0.0.0.0#a.test":     "every address",
	} {
		if _, err := read(server); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", server, err)
		}
	}
}
