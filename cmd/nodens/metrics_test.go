package main

import (
	"fmt"
	"math"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/nodens-dns/nodens/deploy/guard"
	"github.com/nodens-dns/nodens/forwarder"
	"github.com/nodens-dns/nodens/forwarder/cache"
	"github.com/nodens-dns/nodens/forwarder/listener"
	"github.com/nodens-dns/nodens/forwarder/upstream"
	"github.com/nodens-dns/nodens/topology"
	"github.com/nodens-dns/nodens/topology/file"
	"github.com/nodens-dns/nodens/topology/kube"
)

// fullSnapshot has something to say for every metric.
func fullSnapshot() snapshot {
	queries := forwarder.ZoneCounts{Listener: 0, Zone: "cluster.local."}
	queries.Requests[0][0][0] = 7 // UDP, IPv4, A
	queries.Requests[1][1][1] = 2 // TCP, IPv6, AAAA
	queries.Requests[0][0][slices.Index(forwarder.TypeNames[:], "SVCB")] = 1
	for p := range queries.RequestSize {
		queries.RequestSize[p].Buckets[1], queries.RequestSize[p].Sum = 5, 400
		queries.ResponseSize[p].Buckets[14], queries.ResponseSize[p].Sum = 5, 330000
	}
	queries.Duration.Buckets[0], queries.Duration.Buckets[16], queries.Duration.Sum = 8, 2, 18e9
	queries.DO, queries.Made = 3, 4
	queries.Responses[forwarder.FromCache][0], queries.Responses[forwarder.FromCache][3] = 4, 1
	queries.Responses[forwarder.FromStale][0] = 1
	queries.Responses[forwarder.FromServers][3] = 2
	queries.Responses[forwarder.FromFailure][2] = 2
	local := forwarder.ZoneCounts{Listener: 1, Zone: "localhost."}
	local.RequestSize[0].Buckets[1] = 1
	local.Responses[forwarder.FromLocal][0] = 1

	target := upstream.TargetStatus{Addr: addrPorts("192.0.2.53:53")[0], Tier: upstream.NodeTier, Timeouts: 1}
	target.Replies[upstream.ClassNXDomain].Buckets[3] = 4
	target.Replies[upstream.ClassNXDomain].Sum = 8 * time.Millisecond
	target.Ignored[upstream.IgnoredLate] = 1
	target.Sent, target.ReusedUDP, target.ReusedTCP, target.OpenedUDP, target.OpenedTCP, target.ProbeFailures = 19, 5, 2, 2, 1, 4
	other := target // a second route that asks the same server
	other.Tier = upstream.ClusterTier
	s := snapshot{
		Build:  build{"v1", "abc", "go1"},
		At:     time.Now(),
		Config: defaultConfig(),
		Reload: reloadResult{Hash: "beef", Failed: 2, Good: time.Unix(1000, 0)},
		Forwarder: forwarder.Stats{
			Zones:  []forwarder.ZoneCounts{queries, local, {Listener: 1, Zone: "."}},
			Routes: []forwarder.RouteStats{{Zone: "cluster.local.", InFlight: 1, Max: 9, Shed: 6}, {Zone: ".", Max: 9}},
			Matches: []forwarder.Matches{
				{Listener: 0, Zone: "a.example.", Types: [forwarder.Types]uint64{1: 6, forwarder.TypeOther: 1}},
				{Listener: 1, Zone: "."},
			},
		},
		Listens: []listenSnapshot{{Address: addrPorts("169.254.20.10:53")[0]}, {Address: addrPorts("[::1]:53")[0]}},
		Routes: []routeSnapshot{
			{
				Config: RouteConfig{Zones: []string{"cluster.local."}}, Servers: upstream.Status{Targets: []upstream.TargetStatus{target}},
				Topology: &topology.Status{}, File: &file.Stats{}, API: &kube.Status{}, Kept: &topology.KeeperStats{},
			},
			{Config: RouteConfig{Zones: []string{"."}}, Servers: upstream.Status{Targets: []upstream.TargetStatus{other}}, Hosts: 4, HostsAt: 1700000000},
		},
	}
	s.Listens[0].UDP.Sockets = []listener.SocketStats{{ReceiveBuffer: 212992}, {ReceiveBuffer: 4 << 20, Overflowed: 6}}
	s.Cache.Limit, s.Shrinks = 9<<20, 2
	s.Setup = [5]uint64{0, 0, 1, 0, 2}
	s.Health.Buckets[1], s.Health.Sum, s.Health.Failures = 3, time.Millisecond, 1
	s.Cache.Entries = [cache.Kinds]int64{5, 1, 2, 1}
	s.Cache.Evictions = [cache.Kinds]uint64{4, 0, 3, 0}
	s.Guard = &guard.ClientStatus{Connected: true}
	return s
}

// gathered is what a scrape gives: per name the type, the labels, and the
// values as "label=value ... number".
type gathered struct {
	kind   string
	labels string
	bounds []float64
	values []string
}

func gather(t *testing.T, s snapshot) map[string]gathered {
	t.Helper()
	return gatherFrom(t, newCollector(func() snapshot { return s }, daemonMetrics()))
}

func gatherFrom(t *testing.T, c prometheus.Collector) map[string]gathered {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]gathered{}
	for _, f := range families {
		g := gathered{kind: strings.ToLower(f.GetType().String())}
		for _, m := range f.GetMetric() {
			var names, pairs []string
			for _, l := range m.GetLabel() {
				names = append(names, l.GetName())
				pairs = append(pairs, l.GetName()+"="+l.GetValue())
			}
			g.labels = strings.Join(names, " ")
			value := fmt.Sprint(m.GetCounter().GetValue() + m.GetGauge().GetValue())
			if h := m.GetHistogram(); h != nil {
				value = fmt.Sprint(h.GetSampleCount(), " sum ", h.GetSampleSum())
				g.bounds = nil
				for _, b := range h.GetBucket() {
					g.bounds = append(g.bounds, b.GetUpperBound())
				}
			}
			g.values = append(g.values, strings.Join(append(pairs, value), " "))
		}
		all[f.GetName()] = g
	}
	return all
}

// These names and labels are what dashboards and alerts made for node-cache
// ask for. Labels are in the order of the alphabet, as a scrape shows them.
func TestNamesOfNodeCache(t *testing.T) {
	got := gather(t, fullSnapshot())
	times, sizes := "times", "sizes"
	for _, want := range []struct{ name, kind, labels, bounds string }{
		{"coredns_build_info", "gauge", "goversion revision version", ""},
		{"coredns_dns_requests_total", "counter", "family proto server type view zone", ""},
		{"coredns_dns_request_duration_seconds", "histogram", "server view zone", times},
		{"coredns_dns_request_size_bytes", "histogram", "proto server view zone", sizes},
		{"coredns_dns_response_size_bytes", "histogram", "proto server view zone", sizes},
		{"coredns_dns_do_requests_total", "counter", "server view zone", ""},
		{"coredns_dns_responses_total", "counter", "plugin rcode server view zone", ""},
		{"coredns_panics_total", "counter", "", ""},
		{"coredns_plugin_enabled", "gauge", "name server view zone", ""},
		{"coredns_cache_entries", "gauge", "server type view zones", ""},
		{"coredns_cache_requests_total", "counter", "server view zones", ""},
		{"coredns_cache_hits_total", "counter", "server type view zones", ""},
		{"coredns_cache_misses_total", "counter", "server view zones", ""},
		{"coredns_cache_prefetch_total", "counter", "server view zones", ""},
		{"coredns_cache_served_stale_total", "counter", "server view zones", ""},
		{"coredns_cache_evictions_total", "counter", "server type view zones", ""},
		{"coredns_cache_drops_total", "counter", "server view zones", ""},
		{"coredns_forward_max_concurrent_rejects_total", "counter", "", ""},
		{"coredns_hosts_entries", "gauge", "", ""},
		{"coredns_hosts_reload_timestamp_seconds", "gauge", "", ""},
		{"coredns_template_matches_total", "counter", "class server type view zone", ""},
		{"coredns_dns64_requests_translated_total", "counter", "server", ""},
		{"coredns_forward_healthcheck_broken_total", "counter", "", ""},
		{"coredns_proxy_healthcheck_failures_total", "counter", "proxy_name to", ""},
		{"coredns_proxy_conn_cache_hits_total", "counter", "proto proxy_name to", ""},
		{"coredns_proxy_conn_cache_misses_total", "counter", "proto proxy_name to", ""},
		{"coredns_health_request_duration_seconds", "histogram", "", "health"},
		{"coredns_health_request_failures_total", "counter", "", ""},
		{"coredns_nodecache_setup_errors_total", "counter", "errortype", ""},
		{"coredns_forward_requests_total", "counter", "to", ""},
		{"coredns_forward_responses_total", "counter", "rcode to", ""},
		{"coredns_forward_request_duration_seconds", "histogram", "rcode to", times},
		{"coredns_forward_healthcheck_failures_total", "counter", "to", ""},
		{"coredns_panic_count_total", "counter", "", ""},
		{"coredns_dns_request_count_total", "counter", "family proto server view zone", ""},
		{"coredns_nodecache_setup_errors", "counter", "errortype", ""},
		{"coredns_proxy_request_duration_seconds", "histogram", "proxy_name rcode to", times},
		{"coredns_reload_failed_total", "counter", "", ""},
		{"coredns_reload_version_info", "gauge", "hash value", ""},
	} {
		g, ok := got[want.name]
		if !ok {
			t.Errorf("%s is missing", want.name)
			continue
		}
		if g.kind != want.kind || g.labels != want.labels {
			t.Errorf("%s is a %s by %q, want a %s by %q", want.name, g.kind, g.labels, want.kind, want.labels)
		}
		bounds := map[string][]float64{
			times:    {.00025, .0005, .001, .002, .004, .008, .016, .032, .064, .128, .256, .512, 1.024, 2.048, 4.096, 8.192},
			"health": {.00025, .0025, .025, .25, 2.5},
			sizes:    {0, 100, 200, 300, 400, 511, 1023, 2047, 4095, 8291, 16000, 32000, 48000, 64000},
		}[want.bounds]
		if diff := cmp.Diff(bounds, g.bounds, cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })); diff != "" {
			t.Errorf("%s: buckets (-want +got):\n%s", want.name, diff)
		}
	}
}

func TestValuesOfNodeCache(t *testing.T) {
	got := gather(t, fullSnapshot())
	const server = " server=dns://169.254.20.10:53"
	for name, want := range map[string][]string{
		"coredns_dns_requests_total": {
			"family=1 proto=udp" + server + " type=A view= zone=cluster.local. 7",
			"family=1 proto=udp" + server + " type=other view= zone=cluster.local. 1",
			"family=2 proto=tcp" + server + " type=AAAA view= zone=cluster.local. 2",
		},
		"coredns_dns_responses_total": {
			"plugin= rcode=NOERROR server=dns://[::1]:53 view= zone=localhost. 1",
			"plugin=cache rcode=NOERROR" + server + " view= zone=cluster.local. 5",
			"plugin=cache rcode=NXDOMAIN" + server + " view= zone=cluster.local. 1",
			"plugin=forward rcode=NXDOMAIN" + server + " view= zone=cluster.local. 2",
			"plugin=forward rcode=SERVFAIL" + server + " view= zone=cluster.local. 2",
		},
		"coredns_dns_request_duration_seconds": {
			server[1:] + " view= zone=cluster.local. 10 sum 18",
			"server=dns://[::1]:53 view= zone=localhost. 0 sum 0",
		},
		"coredns_cache_entries": {
			server[1:] + " type=denial view= zones=cluster.local.,. 4",
			server[1:] + " type=success view= zones=cluster.local.,. 5",
		},
		"coredns_cache_evictions_total": {
			server[1:] + " type=denial view= zones=cluster.local.,. 3",
			server[1:] + " type=success view= zones=cluster.local.,. 4",
		},
		"coredns_cache_hits_total": {
			server[1:] + " type=denial view= zones=cluster.local. 1",
			server[1:] + " type=success view= zones=cluster.local. 5",
		},
		"coredns_cache_misses_total":   {server[1:] + " view= zones=cluster.local. 4"},
		"coredns_cache_requests_total": {server[1:] + " view= zones=cluster.local. 10"},
		"coredns_proxy_request_duration_seconds": {
			"proxy_name=forward rcode=NXDOMAIN to=192.0.2.53:53 8 sum 0.016",
		},
		"coredns_proxy_healthcheck_failures_total": {"proxy_name=forward to=192.0.2.53:53 8"},
		"coredns_proxy_conn_cache_hits_total": {
			"proto=tcp proxy_name=forward to=192.0.2.53:53 4", "proto=udp proxy_name=forward to=192.0.2.53:53 10",
		},
		"coredns_proxy_conn_cache_misses_total": {
			"proto=tcp proxy_name=forward to=192.0.2.53:53 2", "proto=udp proxy_name=forward to=192.0.2.53:53 4",
		},
		"coredns_forward_requests_total":           {"to=192.0.2.53:53 8"},
		"coredns_forward_responses_total":          {"rcode=NXDOMAIN to=192.0.2.53:53 8"},
		"coredns_forward_request_duration_seconds": {"rcode=NXDOMAIN to=192.0.2.53:53 8 sum 0.016"},
		"coredns_dns_request_count_total": {
			"family=1 proto=udp" + server + " view= zone=cluster.local. 8",
			"family=2 proto=tcp" + server + " view= zone=cluster.local. 2",
		},
		"coredns_nodecache_setup_errors_total": {
			"errortype=configmap 2", "errortype=interface_add 1", "errortype=interface_check 0", "errortype=iptables 0", "errortype=iptables_lock 0",
		},
		"coredns_health_request_duration_seconds":      {"3 sum 0.001"},
		"coredns_health_request_failures_total":        {"1"},
		"coredns_reload_failed_total":                  {"2"},
		"coredns_reload_version_info":                  {"hash=sha512 value=beef 1"},
		"coredns_forward_max_concurrent_rejects_total": {"6"},
		"coredns_hosts_entries":                        {"4"},
		"coredns_hosts_reload_timestamp_seconds":       {"1.7e+09"},
		"nodens_udp_receive_buffer_bytes":              {"listen=169.254.20.10:53 socket=0 212992", "listen=169.254.20.10:53 socket=1 4.194304e+06"},
		"nodens_udp_overflows_total":                   {"listen=169.254.20.10:53 socket=0 0", "listen=169.254.20.10:53 socket=1 6"},
		"nodens_cache_limit_bytes":                     {"9.437184e+06"},
		"nodens_cache_shrinks_total":                   {"2"},
		"coredns_template_matches_total": {
			"class=IN" + server + " type=AAAA view= zone=a.example. 6", "class=IN" + server + " type=other view= zone=a.example. 1",
		},
		"coredns_dns64_requests_translated_total": {server[1:] + " 4"},
		"nodens_endpoints": {
			"route=. tier=external 1", "route=cluster.local. tier=cluster 0", "route=cluster.local. tier=last 0",
			"route=cluster.local. tier=node 1", "route=cluster.local. tier=zone 0",
		},
	} {
		sorted := slices.Sorted(slices.Values(got[name].values))
		if diff := cmp.Diff(slices.Sorted(slices.Values(want)), sorted); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The names of former versions can be left out.
func TestLegacyMetrics(t *testing.T) {
	s := fullSnapshot()
	s.Config.Admin.LegacyMetrics = false
	got := gather(t, s)
	for _, m := range legacyMetrics() {
		if _, ok := got[m.name]; ok {
			t.Errorf("%s is there", m.name)
		}
	}
	if _, ok := got["coredns_proxy_request_duration_seconds"]; !ok {
		t.Error("the names of now are gone")
	}
}

// Everything is one table, so every row must have said something, and our own
// names must not look like somebody else's.
func TestEveryMetricHasAValue(t *testing.T) {
	got := gather(t, fullSnapshot())
	for _, m := range append(corednsMetrics(), ownMetrics()...) {
		if _, ok := got[m.name]; !ok {
			t.Errorf("%s says nothing about a snapshot that has everything", m.name)
		}
		if m.help == "" || !strings.HasSuffix(m.help, ".") {
			t.Errorf("%s: the help %q is no sentence", m.name, m.help)
		}
	}
	for _, m := range ownMetrics() {
		if !strings.HasPrefix(m.name, "nodens_") {
			t.Errorf("%s is ours and does not begin with nodens_", m.name)
		}
	}
}

func TestMetricsOfAnEmptyDaemon(t *testing.T) {
	recorder := httptest.NewRecorder()
	metricsHandler(newCollector(func() snapshot { return snapshot{} }, daemonMetrics())).ServeHTTP(recorder, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{"nodens_ready 1\n", "coredns_panics_total 0\n", "go_goroutines ", "process_start_time_seconds "} {
		if !strings.Contains(recorder.Body.String(), want) {
			t.Errorf("the scrape lacks %q", want)
		}
	}
}

// Who looks for what a zone has finds its rules, too.
func TestEnabledNames(t *testing.T) {
	for _, test := range []struct {
		rules RulesConfig
		want  string
	}{
		{RulesConfig{}, "cache errors forward loop prometheus"},
		{RulesConfig{Hosts: HostsConfig{File: "/etc/hosts"}, FilterAAAA: true}, "cache errors forward loop prometheus hosts template"},
		{
			RulesConfig{DNS64: DNS64Config{Prefix: netip.MustParsePrefix("64:ff9b::/96")}, Answers: make([]AnswerConfig, 1), Rewrite: make([]RewriteConfig, 1)},
			"cache errors forward loop prometheus dns64 rewrite template",
		},
	} {
		if got := strings.Join(enabledNames(&RouteConfig{Rules: test.rules}), " "); got != test.want {
			t.Errorf("%+v: %s, want %s", test.rules, got, test.want)
		}
		alone := strings.Replace(test.want, " forward", "", 1)
		if got := strings.Join(enabledNames(&RouteConfig{Rules: test.rules, RulesOnly: true}), " "); got != alone {
			t.Errorf("%+v without servers: %s, want %s", test.rules, got, alone)
		}
	}
}
