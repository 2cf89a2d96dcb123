package main

import (
	"bytes"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/forwarder/dnstest"
)

// countedNames are the metrics that both have to count alike, but for the exceptions
// of countedOtherwise.
func countedNames() []string {
	return []string{
		"coredns_dns_requests_total", "coredns_dns_responses_total", "coredns_dns_do_requests_total",
		"coredns_dns_request_size_bytes_count", "coredns_dns_request_size_bytes_sum", "coredns_dns_response_size_bytes_count",
		"coredns_dns_request_duration_seconds_count",
		"coredns_cache_requests_total", "coredns_cache_hits_total", "coredns_cache_misses_total", "coredns_cache_entries",
		"coredns_proxy_request_duration_seconds_count", "coredns_proxy_conn_cache_hits_total", "coredns_proxy_conn_cache_misses_total",
		"coredns_forward_max_concurrent_rejects_total", "coredns_panics_total",
	}
}

// countedQuestions are put to both, each twice in turn: a miss and, where it is kept, a hit.
func countedQuestions() (all []same) {
	for _, q := range []same{
		{kind: "plain", qtype: dns.TypeA},
		{kind: "plain", qtype: dns.TypeAAAA, edns: 1232},
		{kind: "plain", qtype: dns.TypeHTTPS, edns: 1232, do: true},
		{kind: "plain", n: 1, qtype: dns.TypeA, tcp: true},
		{kind: "alias", qtype: dns.TypeA, edns: 4096},
		{kind: "gone", qtype: dns.TypeA},
		{kind: "nodata", qtype: dns.TypeA},
		{kind: "servfail", qtype: dns.TypeA},
		{kind: "refused", qtype: dns.TypeA},
		{kind: "huge", qtype: dns.TypeA, edns: 1232},
		{kind: "zero", qtype: dns.TypeA},
	} {
		all = append(all, q, q)
	}
	return all
}

// counting is a rival and where its metrics are.
type counting struct {
	rival
	metrics netip.AddrPort
}

func countingCorefile(at, metrics, server netip.AddrPort) string {
	return fmt.Sprintf(".:%d {\n bind %s\n errors\n cache\n prometheus %s\n forward . %s\n}\n", at.Port(), at.Addr(), metrics, server)
}

func countingNodens(t *testing.T) *counting {
	server, at, metrics := dnstest.Serve(t, authority(t)), space.Free(t), space.Free(t)
	path := filepath.Join(t.TempDir(), "Corefile")
	write(t, path, countingCorefile(at, metrics, server.Addr()))
	f, err := parseNodeCache(strings.Fields("-setupinterface=false -setupiptables=false -metrics-listen-address 127.0.0.1:0 -basecorefile "+path), &strings.Builder{})
	if err != nil {
		t.Fatal(err)
	}
	serveNodeCache(t, f)
	return &counting{rival{"nodens", at, server}, metrics}
}

func countingCoreDNS(t *testing.T) *counting {
	binary := os.Getenv("NODENS_COREDNS")
	space.Needs(t, "coredns", binary != "" && installed(binary))
	server, at, metrics := dnstest.Serve(t, authority(t)), space.Free(t), space.Free(t)
	path := filepath.Join(t.TempDir(), "Corefile")
	write(t, path, countingCorefile(at, metrics, server.Addr()))
	startProcess(t, new(bytes.Buffer), nil, binary, "-conf", path)
	return &counting{rival{"CoreDNS", at, server}, metrics}
}

// counts are the metrics that are compared, by name and labels.
func (c *counting) counts(t *testing.T) map[string]float64 {
	t.Helper()
	_, text := get(t, fmt.Sprintf("http://%s/metrics", c.metrics))
	text = strings.NewReplacer(c.at.String(), "LISTEN", c.server.Addr().String(), "SERVER").Replace(text)
	counts := map[string]float64{}
	for line := range strings.Lines(text) {
		i := strings.LastIndexByte(line, ' ')
		name, _, _ := strings.Cut(line[:max(i, 0)], "{")
		if !slices.Contains(countedNames(), name) {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(line[i:]), 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		counts[comparedAs(line[:i])] += n
	}
	return counts
}

// comparedAs leaves out of a metric's labels what each has its own way. The writer is
// the outermost plugin for CoreDNS, "errors" with this Corefile. Connections:
// nodens has more sockets to a server, and asks over UDP whatever the client used, so
// that how many questions went out is compared. Zones of the cache are those of all routes
// for nodens, where names that it would answer itself go with the root's.
func comparedAs(metric string) string {
	if _, labels, found := strings.Cut(metric, "coredns_proxy_conn_cache_"); found {
		_, to, _ := strings.Cut(labels, ",to=")
		return "coredns_proxy_conn_cache_hits_and_misses{to=" + to
	}
	for _, writer := range []string{"errors", "cache", "forward"} {
		metric = strings.Replace(metric, `plugin="`+writer+`",`, "", 1)
	}
	return strings.Replace(metric, `zones=".,localhost.,invalid.,onion.,resolver.arpa."`, `zones="."`, 1)
}

// countedOtherwise is by how much more nodens counts than CoreDNS, by design.
func countedOtherwise() map[string]float64 {
	const zones, zone = `{server="dns://LISTEN",%sview="",zones="."}`, `{rcode=%q,server="dns://LISTEN",view="",zone="."}`
	success, denial := fmt.Sprintf(zones, `type="success",`), fmt.Sprintf(zones, `type="denial",`)
	const asked = `coredns_proxy_request_duration_seconds_count{proxy_name="forward",rcode=%q,to="SERVER"}`
	return map[string]float64{
		// REFUSED becomes SERVFAIL and is remembered; CoreDNS passes it on and asks again.
		"coredns_dns_responses_total" + fmt.Sprintf(zone, "REFUSED"):  -2,
		"coredns_dns_responses_total" + fmt.Sprintf(zone, "SERVFAIL"): 2,
		fmt.Sprintf(asked, "REFUSED"):                                 -1,
		"coredns_cache_entries" + denial:                              1,
		// What is cut is asked for once more over TCP, and kept; CoreDNS passes it on and
		// asks again. With REFUSED that makes two hits.
		"coredns_cache_entries" + success:                         1,
		"coredns_cache_misses_total" + fmt.Sprintf(zones, ""):     -2,
		"coredns_proxy_conn_cache_hits_and_misses{to=\"SERVER\"}": -1,
		"coredns_cache_hits_total" + success:                      1, // what was cut
		"coredns_cache_hits_total" + denial:                       1, // REFUSED
	}
}

// counted asks everything and gives by how much each count went up.
func (c *counting) counted(t *testing.T) map[string]float64 {
	t.Helper()
	untilAnswers(t, c.at)
	await(t, c.name+"'s metrics", func() bool {
		_, err := fetchHere(fmt.Sprintf("http://%s/metrics", c.metrics))
		return err == nil
	})
	before := c.counts(t)
	for _, q := range countedQuestions() {
		if c.ask(q).reply == nil {
			t.Fatalf("%s did not answer %v", c.name, q)
		}
	}
	after := c.counts(t)
	for key, n := range before {
		after[key] -= n
	}
	maps.DeleteFunc(after, func(_ string, n float64) bool { return n == 0 })
	return after
}

// TestCounters puts the same questions to nodens and CoreDNS with the same Corefile:
// metrics of the same name and labels go up by the same.
func TestCounters(t *testing.T) {
	theirs, ours := countingCoreDNS(t).counted(t), countingNodens(t).counted(t)
	if len(theirs) < 20 {
		t.Fatalf("CoreDNS counts no more than %v", theirs)
	}
	all := maps.Clone(theirs)
	maps.Copy(all, ours)
	maps.Copy(all, countedOtherwise())
	for _, key := range sortedKeys(all) {
		if want := theirs[key] + countedOtherwise()[key]; ours[key] != want {
			t.Errorf("%s: nodens %v, want %v, CoreDNS %v", key, ours[key], want, theirs[key])
		}
	}
}
