package names_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/nodens-dns/nodens/bench/names"
)

const kubectl = `{"apiVersion": "v1", "kind": "List", "items": [
{"metadata": {"name": "kubernetes", "namespace": "default"}, "spec": {"clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1"], "type": "ClusterIP"}},
{"metadata": {"name": "both", "namespace": "shop"}, "spec": {"clusterIPs": ["10.96.0.2", "fd00::2"], "type": "NodePort"}},
{"metadata": {"name": "old", "namespace": "shop"}, "spec": {"clusterIP": "10.96.0.3"}},
{"metadata": {"name": "headless", "namespace": "shop"}, "spec": {"clusterIPs": ["None"]}},
{"metadata": {"name": "outside", "namespace": "shop"}, "spec": {"type": "ExternalName", "externalName": "example.com"}}]}`

func TestServicesOfACluster(t *testing.T) {
	list, err := names.ReadServices(strings.NewReader(kubectl), 1)
	if err != nil {
		t.Fatal(err)
	}
	zone, err := names.NewZone(names.Config{List: list})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		qtype uint16
		addr  string
		rcode uint8
		open  bool
	}{
		{"kubernetes.default.svc.cluster.local", names.TypeA, "10.96.0.1", 0, false},
		{"kubernetes.default.svc.cluster.local", names.TypeAAAA, "", 0, false},
		{"both.shop.svc.cluster.local", names.TypeAAAA, "fd00::2", 0, false},
		{"old.shop.svc.cluster.local", names.TypeA, "10.96.0.3", 0, false},
		{"headless.shop.svc.cluster.local", names.TypeA, "", 0, true},
		{"outside.shop.svc.cluster.local", names.TypeA, "", 0, true},
		{"shop.svc.cluster.local", names.TypeA, "", 0, false},
		{"kubernetes.shop.svc.cluster.local", names.TypeA, "", 3, false},
	} {
		wire, err := names.Wire(c.name)
		if err != nil {
			t.Fatal(err)
		}
		var want netip.Addr
		if c.addr != "" {
			want = netip.MustParseAddr(c.addr)
		}
		if a := zone.Answer(wire, c.qtype); a.Addr != want || a.RCode != c.rcode || a.Open != c.open {
			t.Errorf("%s type %d: %v, rcode %d, open %v", c.name, c.qtype, a.Addr, a.RCode, a.Open)
		}
	}
}

func TestBadServices(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no JSON":   {"apiVersion: v1", "not JSON"},
		"one item":  {`{"kind": "Service"}`, `no items (it is of kind "Service")`},
		"no name":   {`{"items": [{"metadata": {"namespace": "x"}}]}`, "item 1 of the list"},
		"bad IP":    {`{"items": [{"metadata": {"name": "a", "namespace": "x"}, "spec": {"clusterIP": "10.96.0"}}]}`, `x/a has the cluster address "10.96.0"`},
		"two at it": {`{"items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]}`, "item 2 of the list"},
	} {
		if _, err := names.ReadServices(strings.NewReader(c.text), 1); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want it to say %q", name, err, c.want)
		}
	}
}

func TestListFromFile(t *testing.T) {
	l, err := names.ReadList("q.txt", strings.NewReader("# of a day\nexample.com A\n\n;\n_dns._udp.example.com.  srv\n"))
	if err != nil || l.Len() != 2 {
		t.Fatalf("%d queries, %v", l.Len(), err)
	}
	every := l.Every()
	for i, want := range []string{"example.com.", "_dns._udp.example.com.", "example.com."} {
		if q := every.Next(); names.Text(q.Name()) != want || !q.Unjudged {
			t.Errorf("query %d is %s, want %s unjudged", i, names.Text(q.Name()), want)
		}
	}
	if q := every.Next(); q.Type() != 33 {
		t.Errorf("type %d, want SRV", q.Type())
	}
}

func TestEveryMistakeOfAFileHasItsLine(t *testing.T) {
	_, err := names.ReadList("q.txt", strings.NewReader("example.com A\nexample.com\nexample.com B\na..b A\n"))
	for _, want := range []string{`q.txt:2: "example.com" has 1 words`, `q.txt:3: "B" is no record type`, "q.txt:4: names: \"a..b\""} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want it to say %q", err, want)
		}
	}
	if _, err := names.ReadList("q.txt", strings.NewReader("#\n")); err == nil || !strings.Contains(err.Error(), "q.txt:1: there is no query") {
		t.Errorf("an empty file: %v", err)
	}
}

func TestOneTTLForEverything(t *testing.T) {
	mix := newMix(t, names.Config{TTL: 3600})
	every, n := mix.Every()
	seen := map[string]bool{}
	for range n {
		q := every.Next()
		seen[string(q.Question)] = true
		if q.Want.TTL != 3600 {
			t.Fatalf("%s has TTL %d", names.Text(q.Name()), q.Want.TTL)
		}
	}
	if n != 4000 || len(seen) != n {
		t.Errorf("%d queries, %d different, want 4000", n, len(seen))
	}
}

func TestBlendIsEven(t *testing.T) {
	b := newMix(t, names.Config{}).Blend(3, 0.7)
	all := 0
	for range 100 {
		hits := 0
		for range 10 {
			if q := b.Next(); q.Want.Class != names.Wild {
				hits++
			}
		}
		if hits < 6 || hits > 8 {
			t.Fatalf("%d of ten queries are hits, want 7", hits)
		}
		all += hits
	}
	if all < 699 || all > 701 {
		t.Errorf("%d of a thousand queries are hits, want 700", all)
	}
}
