package topology_test

import (
	"context"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/nodens-dns/nodens/topology"
)

// casesEnv names a folder with more cases in the schema of testdata.
const casesEnv = "NODENS_CASES"

// oneCase is a case of either file: with endpoints (tiers) or with slices.
type oneCase struct {
	Name string `json:"name"`

	Node        string         `json:"node"`
	Zone        string         `json:"zone"`
	Endpoints   []caseEndpoint `json:"endpoints"`
	IgnoreHints *caseTiers     `json:"expectIgnoreHints"`
	LastResort  []string       `json:"lastResort"`

	Family string      `json:"family"`
	Slices []caseSlice `json:"slices"`

	Expect json.RawMessage `json:"expect"`
}

type caseEndpoint struct {
	Addr        string   `json:"addr"`
	Node        string   `json:"node"`
	Zone        string   `json:"zone"`
	Ready       *bool    `json:"ready"`
	Serving     *bool    `json:"serving"`
	Terminating *bool    `json:"terminating"`
	ForNodes    []string `json:"forNodes"`
	ForZones    []string `json:"forZones"`
}

type caseTiers struct {
	SameNode []string `json:"sameNode"`
	SameZone []string `json:"sameZone"`
	Cluster  []string `json:"cluster"`
}

type caseSlice struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace"`
	Labels      map[string]string `json:"labels"`
	AddressType string            `json:"addressType"`
	Ports       []struct {
		Name     *string `json:"name"`
		Protocol *string `json:"protocol"`
		Port     *int32  `json:"port"`
	} `json:"ports"`
	Endpoints []struct {
		Addresses   []string `json:"addresses"`
		Ready       *bool    `json:"ready"`
		Serving     *bool    `json:"serving"`
		Terminating *bool    `json:"terminating"`
		TargetUID   *string  `json:"targetUID"`
	} `json:"endpoints"`
	ChangedAt int64 `json:"changedAt"`
}

type casePorts struct {
	UDP []string `json:"udp"`
	TCP []string `json:"tcp"`
}

func TestCases(t *testing.T) {
	for _, path := range caseFiles(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			cases := readCases(t, path)
			for _, c := range cases {
				t.Run(c.Name, func(t *testing.T) {
					if c.Slices != nil {
						c.checkSlices(t)
					} else {
						c.checkTiers(t)
					}
				})
			}
		})
	}
}

func caseFiles(t *testing.T) []string {
	t.Helper()
	patterns := []string{filepath.Join("testdata", "*.json")}
	if folder := os.Getenv(casesEnv); folder != "" {
		patterns = append(patterns,
			filepath.Join(folder, "*topology_cases*.json"), filepath.Join(folder, "*slice_cases*.json"))
	}
	var files []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no case file matches %s (error: %v)", pattern, err)
		}
		files = append(files, found...)
	}
	return files
}

func readCases(t *testing.T, path string) []oneCase {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Cases []oneCase `json:"cases"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if len(file.Cases) == 0 {
		t.Fatalf("%s has no cases", path)
	}
	return file.Cases
}

// checkTiers goes through Project and Rank, so that nil conditions are resolved
// by the code that does it in earnest.
func (c *oneCase) checkTiers(t *testing.T) {
	var want caseTiers
	decode(t, c.Expect, &want)
	self := topology.Self{Node: c.Node, Zone: c.Zone}
	endpoints := c.endpoints(t)
	tiers := topology.Rank(self, endpoints, topology.Options{})
	compareTiers(t, "hints honoured", want, tiers)
	checkExplain(t, self, endpoints, topology.Options{}, tiers)
	if !tiers.Usable() {
		if diff := cmp.Diff(c.LastResort, addrs(tiers.Last), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("last resort (-want +got):\n%s", diff)
		}
	}
	ignored := topology.Rank(self, endpoints, topology.Options{IgnoreHints: true})
	if c.IgnoreHints != nil {
		want = *c.IgnoreHints
	}
	compareTiers(t, "hints ignored", want, ignored)
}

// endpoints projects each endpoint as a slice of its own.
func (c *oneCase) endpoints(t *testing.T) []topology.Endpoint {
	t.Helper()
	var list []topology.Endpoint
	for _, e := range c.Endpoints {
		family := "IPv4"
		if addr := netip.MustParseAddr(e.Addr); addr.Is6() {
			family = "IPv6"
		}
		one, ignored := topology.Project(&topology.Slice{
			AddressType: family,
			Ports:       []topology.Port{{Name: "dns", Protocol: "UDP", Number: 53}},
			Endpoints: []topology.SliceEndpoint{{
				Addresses: []string{e.Addr}, Node: e.Node, Zone: e.Zone,
				Ready: e.Ready, Serving: e.Serving, Terminating: e.Terminating,
				ForNodes: e.ForNodes, ForZones: e.ForZones,
			}},
		}, topology.Rules{})
		if len(one) != 1 {
			t.Fatalf("endpoint %s was ignored: %v", e.Addr, &ignored)
		}
		list = append(list, one...)
	}
	return list
}

func compareTiers(t *testing.T, what string, want caseTiers, got topology.Tiers) {
	t.Helper()
	have := caseTiers{SameNode: addrs(got.Node), SameZone: addrs(got.Zone), Cluster: addrs(got.Cluster)}
	sets := cmp.Options{cmpopts.EquateEmpty(), cmpopts.SortSlices(func(a, b string) bool { return a < b })}
	if diff := cmp.Diff(want, have, sets); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// checkExplain holds Explain to what Rank says.
func checkExplain(t *testing.T, self topology.Self, list []topology.Endpoint, o topology.Options, tiers topology.Tiers) {
	t.Helper()
	got := make(map[topology.Tier][]topology.Endpoint)
	for _, p := range topology.Explain(self, list, o) {
		if p.Reason == "" {
			t.Errorf("no reason for %v", p.Endpoint.Addr)
		}
		got[p.Tier] = append(got[p.Tier], p.Endpoint)
	}
	for tier, want := range map[topology.Tier][]topology.Endpoint{
		topology.TierNode: tiers.Node, topology.TierZone: tiers.Zone,
		topology.TierCluster: tiers.Cluster, topology.TierLast: tiers.Last,
	} {
		a, b := addrs(want), addrs(got[tier])
		slices.Sort(a)
		slices.Sort(b)
		if !slices.Equal(a, b) {
			t.Errorf("Explain puts %v in tier %v, Rank puts %v there", b, tier, a)
		}
	}
}

// checkSlices goes through a whole Watcher: as one list, and as single events in
// the order of writing.
func (c *oneCase) checkSlices(t *testing.T) {
	var want casePorts
	decode(t, c.Expect, &want)
	family := topology.IPv4
	if c.Family == "IPv6" {
		family = topology.IPv6
	}
	rules := topology.Rules{
		Namespace: "kube-system", Service: "kube-dns", Families: []topology.Family{family},
	}
	feeds := map[string]func(*topology.Watcher){
		"list": func(w *topology.Watcher) { w.Replace(c.plain()) },
		"events": func(w *topology.Watcher) {
			list := c.plain()
			slices.SortStableFunc(list, func(a, b topology.Slice) int { return a.Changed.Compare(b.Changed) })
			for _, s := range list {
				w.Put(s)
			}
		},
	}
	for name, feed := range feeds {
		got := ready(firstTable(t, rules, feed))
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("as %s (-want +got):\n%s", name, diff)
		}
	}
}

func (c *oneCase) plain() []topology.Slice {
	var list []topology.Slice
	for _, s := range c.Slices {
		out := topology.Slice{
			Namespace: s.Namespace, Name: s.Name, AddressType: s.AddressType,
			Service:   s.Labels["kubernetes.io/service-name"],
			ManagedBy: s.Labels["endpointslice.kubernetes.io/managed-by"],
			Changed:   time.Unix(s.ChangedAt, 0),
		}
		for _, p := range s.Ports {
			out.Ports = append(out.Ports, topology.Port{
				Name: value(p.Name), Protocol: value(p.Protocol), Number: value(p.Port),
			})
		}
		for _, e := range s.Endpoints {
			out.Endpoints = append(out.Endpoints, topology.SliceEndpoint{
				Addresses: e.Addresses, TargetUID: value(e.TargetUID),
				Ready: e.Ready, Serving: e.Serving, Terminating: e.Terminating,
			})
		}
		list = append(list, out)
	}
	return list
}

// firstTable runs a Watcher until its first Table.
func firstTable(t *testing.T, rules topology.Rules, feed func(*topology.Watcher)) topology.Table {
	t.Helper()
	tables := make(chan topology.Table, 1)
	w, err := topology.New(topology.Config{
		Rules: rules, Now: func() time.Duration { return 0 },
		Publish: func(table topology.Table) { tables <- table },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	feed(w)
	w.Synced()
	table := <-tables
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return table
}

// ready lists the addresses of the ready members of all tiers.
func ready(table topology.Table) casePorts {
	var got casePorts
	for _, tier := range table.Tiers {
		for _, m := range tier {
			if m.State != topology.Ready {
				continue
			}
			if m.UDP.IsValid() {
				got.UDP = append(got.UDP, m.UDP.String())
			}
			if m.TCP.IsValid() {
				got.TCP = append(got.TCP, m.TCP.String())
			}
		}
	}
	slices.Sort(got.UDP)
	slices.Sort(got.TCP)
	return got
}

func addrs(list []topology.Endpoint) []string {
	var texts []string
	for _, e := range list {
		texts = append(texts, e.Addr.String())
	}
	return texts
}

func decode(t *testing.T, raw json.RawMessage, into any) {
	t.Helper()
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatal(err)
	}
}

func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
