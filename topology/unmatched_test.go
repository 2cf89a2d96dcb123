package topology_test

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/nodens-dns/nodens/topology"
)

func slicesOf(services ...string) []topology.Slice {
	var list []topology.Slice
	for _, s := range services {
		list = append(list, topology.Slice{
			Namespace: "kube-system", Name: s + "-1", Service: s, AddressType: "IPv4",
			Ports:     []topology.Port{{Name: "dns", Protocol: "UDP", Number: 53}},
			Endpoints: []topology.SliceEndpoint{{Addresses: []string{"192.0.2.1"}, Node: "n1", Zone: "za"}},
		})
	}
	return list
}

func TestUnmatched(t *testing.T) {
	many := strings.Fields("a b c d e f g h i j k l")
	for name, tc := range map[string]struct {
		rules     topology.Rules
		slices    []topology.Slice
		endpoints int
		says      string
	}{
		"another Service": {
			topology.Rules{Namespace: "kube-system", Service: "kube-dns"},
			slicesOf("coredns", "web", "web"), 0,
			"wanted are those of namespace kube-system, Service kube-dns; there are slices of kube-system/coredns, kube-system/web: correct namespace",
		},
		"nothing":    {topology.Rules{}, nil, 0, "wanted are those of any Service; there are no slices at all: "},
		"no label":   {topology.Rules{Service: "dns"}, slicesOf(""), 0, "there are slices of kube-system/(no Service): "},
		"controller": {topology.Rules{ManagedBy: []string{"a", "b"}}, slicesOf("dns"), 0, "wanted are those of controller a or b; "},
		"many":       {topology.Rules{Service: "dns"}, slicesOf(many...), 0, "kube-system/j and 2 more: "},
		"a match":    {topology.Rules{Service: "dns"}, slicesOf("dns", "web"), 1, ""},
	} {
		endpoints, services := topology.Survey(tc.slices, tc.rules)
		if got := topology.Unmatched(tc.rules, services); endpoints != tc.endpoints || !strings.Contains(got, tc.says) {
			t.Errorf("%s: %d endpoints, %q; want %d and %q", name, endpoints, got, tc.endpoints, tc.says)
		}
	}
}

// TestUnmatchedIsTold holds that a set which is empty at the start is told, once
// and with what is there instead.
func TestUnmatchedIsTold(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	published := make(chan topology.Table, 8)
	w, err := topology.New(topology.Config{
		Rules: topology.Rules{Service: "kube-dns"}, Now: func() time.Duration { return 0 }, Coalesce: -1,
		Publish: func(table topology.Table) { published <- table }, Log: zap.New(core),
	})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- w.Run(t.Context()) }()
	w.Replace(slicesOf("coredns"))
	w.Synced()
	<-published
	w.Replace(slicesOf("kube-dns"))
	<-published
	lines := logs.FilterMessageSnippet("no endpoint can be asked").All()
	if len(lines) != 1 || !strings.Contains(lines[0].Message, "there are slices of kube-system/coredns") {
		t.Errorf("told %v, want once", lines)
	}
}
