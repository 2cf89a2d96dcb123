package names_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nodens-dns/nodens/bench/names"
)

func newMix(t *testing.T, cfg names.Config) *names.Mix {
	t.Helper()
	mix, err := names.NewMix(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return mix
}

func TestConfigMistakes(t *testing.T) {
	for name, cfg := range map[string]names.Config{
		"negative services":             {Services: -1},
		"more namespaces than services": {Services: 3, Namespaces: 4},
		"more pod namespaces":           {Namespaces: 2, PodNamespaces: 3},
		"share above one":               {ExternalShare: 1.5},
		"empty label":                   {Domain: "cluster..local"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := names.NewMix(cfg); err == nil {
				t.Error("accepted")
			}
		})
	}
}

func TestZoneAnswers(t *testing.T) {
	mix := newMix(t, names.Config{Services: 8, Namespaces: 1, External: 4})
	addr := netip.MustParseAddr
	const cart = "cart-api-0.cart-team-0.svc.cluster.local"
	for name, c := range map[string]struct {
		ask  string
		kind uint16
		want names.Answer
	}{
		"service":         {cart, names.TypeA, names.Answer{Class: names.Service, TTL: 30, Addr: addr("10.96.0.1")}},
		"letter case":     {"CART-api-0.cart-team-0.SVC.cluster.local", names.TypeA, names.Answer{Class: names.Service, TTL: 30, Addr: addr("10.96.0.1")}},
		"no AAAA":         {cart, names.TypeAAAA, names.Answer{Class: names.Service, TTL: 5}},
		"other type":      {cart, 16, names.Answer{Class: names.Service, TTL: 5}},
		"headless":        {"mail-api-7.cart-team-0.svc.cluster.local", names.TypeA, names.Answer{Class: names.Headless, TTL: 5, Addr: addr("10.128.0.8")}},
		"namespace":       {"cart-team-0.svc.cluster.local", names.TypeA, names.Answer{Class: names.Bare, TTL: 5}},
		"no such service": {"x.cart-team-0.svc.cluster.local", names.TypeA, names.Answer{RCode: 3, Class: names.Missing, TTL: 5}},
		"below a service": {"x." + cart, names.TypeA, names.Answer{RCode: 3, Class: names.Missing, TTL: 5}},
		"external":        {"www.cart-0.example", names.TypeAAAA, names.Answer{Class: names.External, TTL: 60, Addr: addr("2001:db8:4::1")}},
		"stable":          {"login.cart-2.example", names.TypeA, names.Answer{Class: names.Stable, TTL: 300, Addr: addr("203.0.0.3")}},
		"stranger":        {"example.org", names.TypeA, names.Answer{RCode: 3, Class: names.Missing, TTL: 5}},
		"root":            {".", names.TypeA, names.Answer{RCode: 3, Class: names.Missing, TTL: 5}},
	} {
		t.Run(name, func(t *testing.T) {
			wire, err := names.Wire(c.ask)
			if err != nil {
				t.Fatal(err)
			}
			got := mix.Zone().Answer(wire, c.kind)
			if diff := cmp.Diff(c.want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestWildNamesDiffer(t *testing.T) {
	zone := newMix(t, names.Config{}).Zone()
	a, _ := names.Wire("a." + names.WildSuffix)
	b, _ := names.Wire("b." + names.WildSuffix)
	apex, _ := names.Wire(names.WildSuffix)
	nearly, _ := names.Wire("not" + names.WildSuffix)
	if x, y := zone.Answer(a, names.TypeA), zone.Answer(b, names.TypeA); !x.Addr.IsValid() || x.Addr == y.Addr {
		t.Errorf("two wild names answer %v and %v", x.Addr, y.Addr)
	}
	for _, name := range [][]byte{apex, nearly} {
		if got := zone.Answer(name, names.TypeA); got.RCode != names.NXDomain {
			t.Errorf("%s answers %+v, want NXDOMAIN", names.Text(name), got)
		}
	}
}

func TestAuthority(t *testing.T) {
	zone := newMix(t, names.Config{}).Zone()
	for ask, want := range map[string]string{
		"nope.svc.Cluster.local": "Cluster.local.",
		"cluster.local":          "cluster.local.",
		"www.x.example":          "example.",
		"notcluster.local":       "local.",
		".":                      ".",
	} {
		wire, _ := names.Wire(ask)
		n, cluster := zone.Authority(wire)
		if got := names.Text(wire[len(wire)-n:]); got != want {
			t.Errorf("authority of %s is %s, want %s", ask, got, want)
		}
		if isCluster := want == "cluster.local." || want == "Cluster.local."; cluster != isCluster {
			t.Errorf("authority of %s: cluster is %v", ask, cluster)
		}
	}
}
