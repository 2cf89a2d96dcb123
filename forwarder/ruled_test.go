package forwarder_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder"
	"github.com/nodens-dns/nodens/forwarder/dnstest"
	"github.com/nodens-dns/nodens/forwarder/rules"
)

func withRules(t testing.TB, c rules.Config) func(*forwarder.Config) {
	t.Helper()
	set, err := rules.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return func(cfg *forwarder.Config) { cfg.Routes[0].Rules = set }
}

// section is records as text without the header's spaces.
func section(records []dns.RR) (out []string) {
	for _, rr := range records {
		out = append(out, strings.Join(strings.Fields(rr.String()), " "))
	}
	return out
}

func hostsOf(t testing.TB, c rules.HostsConfig, lines ...string) *rules.Hosts {
	t.Helper()
	h := rules.NewHosts(c)
	if err := h.Update([]byte(strings.Join(lines, "\n"))); err != nil {
		t.Fatal(err)
	}
	return h
}

// TestRulesThatNeedNoServer lists what the rules answer at once, over UDP and TCP.
func TestRulesThatNeedNoServer(t *testing.T) {
	hosts := func(only bool) rules.Config {
		return rules.Config{Hosts: hostsOf(t, rules.HostsConfig{TTL: time.Minute, Reverse: true, Only: only},
			"192.0.2.1 DB.example db # the database", "192.0.2.2 db.example", "2001:db8::1 six.example")}
	}
	answers := func(list ...rules.Answer) rules.Config { return rules.Config{Answers: list} }
	tests := []struct {
		name, asked string
		qtype       uint16
		rules       rules.Config
		rcode       int
		want        []string // answers; nil is a SOA record
		asks        bool     // the servers
	}{
		{name: "host", asked: "db.Example.", qtype: dns.TypeA, rules: hosts(false), want: []string{"db.Example. 60 IN A 192.0.2.1", "db.Example. 60 IN A 192.0.2.2"}},
		{name: "alias of a host", asked: "db.", qtype: dns.TypeA, rules: hosts(false), want: []string{"db. 60 IN A 192.0.2.1"}},
		{name: "IPv6 host", asked: "six.example.", qtype: dns.TypeAAAA, rules: hosts(false), want: []string{"six.example. 60 IN AAAA 2001:db8::1"}},
		{name: "host without IPv6", asked: "db.example.", qtype: dns.TypeAAAA, rules: hosts(false)},
		{name: "host, other type", asked: "db.example.", qtype: dns.TypeMX, rules: hosts(false)},
		{name: "name of an address", asked: "1.2.0.192.in-addr.arpa.", qtype: dns.TypePTR, rules: hosts(false), want: []string{"1.2.0.192.in-addr.arpa. 60 IN PTR db.example.", "1.2.0.192.in-addr.arpa. 60 IN PTR db."}},
		{name: "all of a host", asked: "db.example.", qtype: dns.TypeANY, rules: rules.Config{Hosts: hostsOf(t, rules.HostsConfig{TTL: time.Minute}, "192.0.2.1 db.example", "2001:db8::1 db.example")}, want: []string{"db.example. 60 IN A 192.0.2.1", "db.example. 60 IN AAAA 2001:db8::1"}},
		{name: "all of an address", asked: "1.2.0.192.in-addr.arpa.", qtype: dns.TypeANY, rules: hosts(false), want: []string{"1.2.0.192.in-addr.arpa. 60 IN PTR db.example.", "1.2.0.192.in-addr.arpa. 60 IN PTR db."}},
		{name: "all of a fixed answer", asked: "a.test.", qtype: dns.TypeANY, rules: answers(rules.Answer{Below: []string{"a.test"}, Records: []string{"5 A 192.0.2.7", "5 AAAA 2001:db8::7"}}), want: []string{"a.test. 5 IN A 192.0.2.7", "a.test. 5 IN AAAA 2001:db8::7"}},
		{name: "other name", asked: "a.db.example.", qtype: dns.TypeA, rules: hosts(false), asks: true},
		{name: "other name, only hosts", asked: "a.db.example.", qtype: dns.TypeA, rules: hosts(true), rcode: dns.RcodeNameError},
		{name: "fixed address", asked: "X.a.test.", qtype: dns.TypeA, rules: answers(rules.Answer{Below: []string{"A.test"}, Records: []string{"5 A 192.0.2.7", "5 AAAA 2001:db8::7"}}), want: []string{"X.a.test. 5 IN A 192.0.2.7"}},
		{name: "fixed, other type", asked: "a.test.", qtype: dns.TypeTXT, rules: answers(rules.Answer{Below: []string{"a.test"}, Records: []string{"5 A 192.0.2.7"}})},
		{name: "fixed alias", asked: "a.test.", qtype: dns.TypeAAAA, rules: answers(rules.Answer{Records: []string{"5 IN CNAME b.test."}}), want: []string{"a.test. 5 IN CNAME b.test."}},
		{name: "fixed rcode", asked: "a.test.", qtype: dns.TypeA, rules: answers(rules.Answer{RCode: dns.RcodeNameError}), rcode: dns.RcodeNameError},
		{name: "fixed type", asked: "a.test.", qtype: dns.TypeA, rules: answers(rules.Answer{Types: []uint16{dns.TypeAAAA}}), asks: true},
		{name: "fixed, not below", asked: "ba.test.", qtype: dns.TypeA, rules: answers(rules.Answer{Below: []string{"a.test"}}), asks: true},
		{name: "fixed, fits", asked: "IP-7.a.test.", qtype: dns.TypeA, rules: answers(rules.Answer{Match: `^ip-\d+\.`, RCode: dns.RcodeNameError}), rcode: dns.RcodeNameError},
		{name: "fixed, fits not", asked: "host.a.test.", qtype: dns.TypeA, rules: answers(rules.Answer{Match: `^ip-\d+\.`, RCode: dns.RcodeNameError}), asks: true},
		{name: "first that fits", asked: "a.test.", qtype: dns.TypeA, rules: answers(rules.Answer{Records: []string{"5 A 192.0.2.1"}}, rules.Answer{RCode: dns.RcodeNameError}), want: []string{"a.test. 5 IN A 192.0.2.1"}},
		{name: "no IPv6", asked: "a.test.", qtype: dns.TypeAAAA, rules: rules.Config{FilterAAAA: true}},
		{name: "no IPv6, but IPv4", asked: "a.test.", qtype: dns.TypeA, rules: rules.Config{FilterAAAA: true}, asks: true},
		{
			name: "rewritten to a host", asked: "Www.shop.example.", qtype: dns.TypeA, want: []string{"Www.shop.example. 0 IN A 192.0.2.1"},
			rules: rules.Config{Rewrite: []rules.Rewrite{{From: "shop.example", To: "test", Suffix: true}}, Hosts: hostsOf(t, rules.HostsConfig{}, "192.0.2.1 www.test")},
		},
		{name: "transfers are refused all the same", asked: "a.test.", qtype: dns.TypeAXFR, rules: answers(rules.Answer{Records: []string{"5 A 192.0.2.7"}}), rcode: dns.RcodeRefused, want: []string{}},
	}
	for _, proto := range []forwarder.Proto{forwarder.UDP, forwarder.TCP} {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				r := newRig(t, dnstest.Addresses(1), withRules(t, tt.rules))
				m, hit := r.exchange(edns(dnstest.Question(tt.asked, tt.qtype), 1232, false), proto)
				if hit == tt.asks || (r.server.Asked() > 0) != tt.asks {
					t.Fatalf("at once: %v, %d questions to the servers", hit, r.server.Asked())
				}
				if tt.asks {
					return
				}
				got := section(m.Answer)
				if m.Rcode != tt.rcode || m.IsEdns0() == nil || m.Question[0].Name != tt.asked || !slices.Equal(got, tt.want) {
					t.Errorf("got %v", m)
				}
				if soa := len(m.Ns) == 1 && m.Ns[0].Header().Rrtype == dns.TypeSOA && m.Authoritative; soa != (tt.want == nil) {
					t.Errorf("SOA in %v", m)
				}
			})
		}
	}
}

// TestRuleBeforeCache: a rule that comes later is not passed by through what the
// cache holds, and one that goes leaves nothing behind.
func TestRuleBeforeCache(t *testing.T) {
	hosts := rules.NewHosts(rules.HostsConfig{TTL: time.Minute})
	r := newRig(t, dnstest.Addresses(1), withRules(t, rules.Config{Hosts: hosts}))
	ask := func() string {
		m, _ := r.exchange(dnstest.Question("a.test.", dns.TypeA), forwarder.UDP)
		return dns.Field(m.Answer[0], 1)
	}
	before := ask()
	if err := hosts.Update([]byte("192.0.2.1 a.test")); err != nil {
		t.Fatal(err)
	}
	during := ask()
	_ = hosts.Update()
	if after := ask(); before != "10.0.0.0" || during != "192.0.2.1" || after != before {
		t.Errorf("%s, %s with the rule, %s after it", before, during, after)
	}
}

// TestFixedAnswersAreCounted by the longest zone of their rule, and go on when the
// rules are made anew; what a hosts list or a server answers is not.
func TestFixedAnswersAreCounted(t *testing.T) {
	hosts := hostsOf(t, rules.HostsConfig{}, "192.0.2.1 db.example")
	set := func(more ...rules.Answer) func(*forwarder.Config) {
		answers := append([]rules.Answer{{Below: []string{"test", "A.test"}, RCode: dns.RcodeNameError}}, more...)
		return withRules(t, rules.Config{Answers: answers, FilterAAAA: true, Hosts: hosts})
	}
	var cfg forwarder.Config
	r := newRig(t, dnstest.Addresses(1), set(), func(c *forwarder.Config) { cfg = *c })
	ask := func(f *forwarder.Forwarder, name string, qtype uint16) {
		f.Lookup(nil, dnstest.Pack(t, dnstest.Question(name, qtype)), r.peer(forwarder.UDP))
	}
	count := func(f *forwarder.Forwarder) map[string]uint64 {
		got := map[string]uint64{}
		for _, m := range f.Stats().Matches {
			for i, n := range m.Types {
				if n > 0 {
					got[fmt.Sprint(m.Listener, " ", m.Zone, " ", forwarder.TypeNames[i])] = n
				}
			}
		}
		return got
	}
	for range 2 {
		ask(r.Forwarder, "x.a.Test.", dns.TypeA)
	}
	ask(r.Forwarder, "test.", dns.TypeHINFO)
	ask(r.Forwarder, "www.example.", dns.TypeAAAA)
	ask(r.Forwarder, "www.example.", dns.TypeA) // a server's
	ask(r.Forwarder, "db.example.", dns.TypeA)  // of the hosts
	want := map[string]uint64{"0 a.test. A": 2, "0 test. other": 1, "0 . AAAA": 1}
	if diff := cmp.Diff(want, count(r.Forwarder)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	cfg.Before = r.Forwarder
	set(rules.Answer{Below: []string{"new.example"}})(&cfg)
	next, err := forwarder.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ask(next, "new.example.", dns.TypeA)
	ask(next, "a.test.", dns.TypeA)
	want["0 a.test. A"], want["0 new.example. A"] = 3, 1
	if diff := cmp.Diff(want, count(next)); diff != "" {
		t.Errorf("the next (-want +got):\n%s", diff)
	}
}

// TestRuleOfItsRoute: a rule holds for the names of its own route, whoever asked
// before and however.
func TestRuleOfItsRoute(t *testing.T) {
	set, err := rules.New(rules.Config{
		Answers: []rules.Answer{{Types: []uint16{dns.TypeTXT}, RCode: dns.RcodeNameError}},
		Rewrite: []rules.Rewrite{{From: "test", To: "real", Suffix: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var other *dnstest.Group
	r := newRig(t, dnstest.Addresses(1), func(c *forwarder.Config) {
		ruled := c.Routes[0]
		other = dnstest.NewGroup(dnstest.Addresses(1))
		ruled.Zones, ruled.Group, ruled.Rules = []string{"in.test"}, other, set
		c.Routes = append(c.Routes, ruled)
	})
	for range 2 {
		for name, rcode := range map[string]int{"a.in.test.": dns.RcodeNameError, "a.test.": 0, "in.test.": dns.RcodeNameError, "a.real.": 0, "a.in.real.": 0} {
			if m, _ := r.exchange(dnstest.Question(name, dns.TypeTXT), forwarder.UDP); m.Rcode != rcode {
				t.Errorf("%s: rcode %d", name, m.Rcode)
			}
			r.exchange(dnstest.Question(name, dns.TypeA), forwarder.UDP)
		}
	}
	for _, q := range r.server.Seen() {
		if dns.IsSubDomain("in.test.", q.Question[0].Name) {
			t.Errorf("%s went to the other route", q.Question[0].Name)
		}
	}
	for _, q := range other.Seen() {
		if !dns.IsSubDomain("in.real.", q.Question[0].Name) {
			t.Errorf("the servers were asked for %s", q.Question[0].Name)
		}
	}
}

// TestRewrite sees what servers are asked and what clients get, on every path.
func TestRewrite(t *testing.T) {
	suffix := rules.Rewrite{From: "shop.example", To: "prod.svc.cluster.local", Suffix: true}
	tests := []struct {
		name, asked string
		qtype       uint16
		rules       []rules.Rewrite
		to          string
		rcode       int
		said, want  []string // by the servers; by us
	}{
		{
			name: "one name", asked: "Db.example.", qtype: dns.TypeA, rules: []rules.Rewrite{{From: "db.example", To: "pg.corp"}}, to: "pg.corp.",
			said: []string{"pg.corp. 60 A 192.0.2.1"},
			want: []string{"Db.example. 60 IN A 192.0.2.1"},
		},
		{
			name: "one name, alias", asked: "db.example.", qtype: dns.TypeA, rules: []rules.Rewrite{{From: "db.example", To: "pg.corp"}}, to: "pg.corp.",
			said: []string{"pg.corp. 60 CNAME x.corp.", "x.corp. 60 A 192.0.2.1"},
			want: []string{"db.example. 60 IN CNAME x.corp.", "x.corp. 60 IN A 192.0.2.1"},
		},
		{
			name: "below the name", asked: "a.db.example.", qtype: dns.TypeA, rules: []rules.Rewrite{{From: "db.example", To: "pg.corp"}}, to: "a.db.example.",
			said: []string{"a.db.example. 60 A 192.0.2.1"}, want: []string{"a.db.example. 60 IN A 192.0.2.1"},
		},
		{
			name: "suffix, chain", asked: "WEB.shop.example.", qtype: dns.TypeA, rules: []rules.Rewrite{suffix}, to: "web.prod.svc.cluster.local.",
			said: []string{"web.prod.svc.cluster.local. 60 CNAME b.prod.svc.cluster.local.", "b.prod.svc.cluster.local. 60 CNAME c.other.", "c.other. 60 A 192.0.2.1"},
			want: []string{"WEB.shop.example. 60 IN CNAME b.shop.example.", "b.shop.example. 60 IN CNAME c.other.", "c.other. 60 IN A 192.0.2.1"},
		},
		{
			name: "suffix itself", asked: "shop.example.", qtype: dns.TypeA, rules: []rules.Rewrite{suffix}, to: "prod.svc.cluster.local.",
			said: []string{"prod.svc.cluster.local. 60 A 192.0.2.1"}, want: []string{"shop.example. 60 IN A 192.0.2.1"},
		},
		{
			name: "on label borders only", asked: "workshop.example.", qtype: dns.TypeA, rules: []rules.Rewrite{suffix}, to: "workshop.example.",
			said: []string{"workshop.example. 60 A 192.0.2.1"}, want: []string{"workshop.example. 60 IN A 192.0.2.1"},
		},
		{
			name: "SRV", asked: "_pg._tcp.db.shop.example.", qtype: dns.TypeSRV, rules: []rules.Rewrite{suffix}, to: "_pg._tcp.db.prod.svc.cluster.local.",
			said: []string{"_pg._tcp.db.prod.svc.cluster.local. 60 SRV 0 100 5432 p-0.db.prod.svc.cluster.local.", "---", "---", "p-0.db.prod.svc.cluster.local. 60 A 192.0.2.1"},
			want: []string{"_pg._tcp.db.shop.example. 60 IN SRV 0 100 5432 p-0.db.shop.example.", "---", "---", "p-0.db.shop.example. 60 IN A 192.0.2.1"},
		},
		{
			name: "target of another rule stays", asked: "_pg._tcp.shop.example.", qtype: dns.TypeSRV, to: "_pg._tcp.prod.svc.cluster.local.",
			rules: []rules.Rewrite{{From: "x.shop.example", To: "elsewhere.example"}, suffix},
			said:  []string{"_pg._tcp.prod.svc.cluster.local. 60 SRV 0 100 5432 x.prod.svc.cluster.local."},
			want:  []string{"_pg._tcp.shop.example. 60 IN SRV 0 100 5432 x.prod.svc.cluster.local."},
		},
		{
			name: "no such name", asked: "x.shop.example.", qtype: dns.TypeA, rules: []rules.Rewrite{suffix}, to: "x.prod.svc.cluster.local.", rcode: dns.RcodeNameError,
			said: []string{"---", "cluster.local. 60 SOA ns.cluster.local. h.cluster.local. 1 2 3 4 5"},
			want: []string{"---", "shop.example. 5 IN SOA ns.cluster.local. h.cluster.local. 1 2 3 4 5"},
		},
		{
			name: "signatures do not survive", asked: "web.shop.example.", qtype: dns.TypeA, rules: []rules.Rewrite{suffix}, to: "web.prod.svc.cluster.local.",
			said: []string{"web.prod.svc.cluster.local. 60 A 192.0.2.1", "web.prod.svc.cluster.local. 60 RRSIG A 13 5 60 20300101000000 20200101000000 1 cluster.local. AAAA"},
			want: []string{"web.shop.example. 60 IN A 192.0.2.1"},
		},
	}
	for _, p := range paths {
		for _, tt := range tests {
			t.Run(p.name+"/"+tt.name, func(t *testing.T) {
				said := dnstest.Records(t, tt.rcode, tt.said...)
				r := newRig(t, func(q *dns.Msg) *dns.Msg { m := said(q); m.AuthenticatedData = true; return m }, withRules(t, rules.Config{Rewrite: tt.rules}))
				ask := func() *dns.Msg { return edns(dnstest.Question(tt.asked, tt.qtype), 1232, true) }
				p.before(r, ask())
				m, hit := r.exchange(ask(), p.proto)
				if hit != p.hit || m.Rcode != tt.rcode || m.Question[0].Name != tt.asked || m.AuthenticatedData && tt.to != tt.asked {
					t.Errorf("hit %v, reply %v", hit, m)
				}
				got := section(m.Answer)
				if len(m.Ns)+len(m.Extra) > 1 {
					got = append(append(got, "---"), section(m.Ns)...)
				}
				if len(m.Extra) > 1 { // beside the OPT
					got = append(append(got, "---"), section(m.Extra[:1])...)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" && !p.stale {
					t.Errorf("records (-want +got):\n%s", diff)
				}
				for _, q := range r.server.Seen() {
					if !strings.EqualFold(q.Question[0].Name, tt.to) || q.IsEdns0() == nil || !q.IsEdns0().Do() {
						t.Errorf("the servers were asked %v", q)
					}
				}
			})
		}
	}
}

// TestDNS64 is RFC 6147 section 5 as a table.
func TestDNS64(t *testing.T) {
	known, own := netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("2001:db8:64::/48")
	none := []string{"---", "test. 50 SOA ns.test. h.test. 1 2 3 4 50"}
	tests := []struct {
		name   string
		prefix netip.Prefix
		all    bool
		change func(*dns.Msg)
		code   int // to AAAA
		v6, v4 []string
		want   []string
		asked  int
	}{
		{name: "made", prefix: known, v6: none, v4: []string{"a.test. 60 A 198.51.101.9"}, want: []string{"a.test. 50 IN AAAA 64:ff9b::c633:6509"}, asked: 2},
		{name: "around the zero byte", prefix: own, v6: none, v4: []string{"a.test. 20 A 192.0.2.33"}, want: []string{"a.test. 20 IN AAAA 2001:db8:64:c000:2:2100::"}, asked: 2},
		{name: "real ones win", prefix: known, v6: []string{"a.test. 60 AAAA 2001:db8::1"}, v4: []string{"a.test. 60 A 198.51.101.9"}, want: []string{"a.test. 60 IN AAAA 2001:db8::1"}, asked: 1},
		{name: "made of all", prefix: known, all: true, v6: []string{"a.test. 60 AAAA 2001:db8::1"}, v4: []string{"a.test. 60 A 198.51.101.9"}, want: []string{"a.test. 60 IN AAAA 64:ff9b::c633:6509"}, asked: 2},
		{name: "alias", prefix: known, v6: append([]string{"a.test. 60 CNAME b.test."}, none...), v4: []string{"a.test. 60 CNAME b.test.", "b.test. 60 A 198.51.101.9"}, want: []string{"a.test. 60 IN CNAME b.test.", "b.test. 50 IN AAAA 64:ff9b::c633:6509"}, asked: 2},
		{name: "mapped ones do not count", prefix: known, v6: []string{"a.test. 60 AAAA ::ffff:198.51.101.9"}, v4: []string{"a.test. 60 A 198.51.101.9"}, want: []string{"a.test. 60 IN AAAA 64:ff9b::c633:6509"}, asked: 2},
		{name: "mapped ones are left out", prefix: known, v6: []string{"a.test. 60 AAAA ::ffff:198.51.101.9", "a.test. 60 AAAA 2001:db8::1"}, want: []string{"a.test. 60 IN AAAA 2001:db8::1"}, asked: 1},
		{name: "private ones, known prefix", prefix: known, v6: none, v4: []string{"a.test. 60 A 10.0.0.1"}, asked: 2},
		{name: "private ones, own prefix", prefix: own, v6: none, v4: []string{"a.test. 60 A 10.0.0.1"}, want: []string{"a.test. 50 IN AAAA 2001:db8:64:a00:0:100::"}, asked: 2},
		{name: "no such name", prefix: known, code: dns.RcodeNameError, v6: none, v4: []string{"a.test. 60 A 198.51.101.9"}, asked: 1},
		{name: "no IPv4 either", prefix: known, v6: none, v4: none, asked: 2},
		{name: "error of the server", prefix: known, code: dns.RcodeServerFailure, v4: []string{"a.test. 60 A 198.51.101.9"}, want: []string{"a.test. 60 IN AAAA 64:ff9b::c633:6509"}, asked: 2},
		{name: "the client checks", prefix: known, change: func(m *dns.Msg) { m.SetEdns0(1232, true).CheckingDisabled = true }, v6: none, v4: []string{"a.test. 60 A 198.51.101.9"}, asked: 1},
	}
	for _, p := range paths {
		for _, tt := range tests {
			t.Run(p.name+"/"+tt.name, func(t *testing.T) {
				v6, v4 := dnstest.Records(t, tt.code, tt.v6...), dnstest.Records(t, 0, tt.v4...)
				r := newRig(t, func(q *dns.Msg) *dns.Msg {
					if q.Question[0].Qtype == dns.TypeAAAA {
						return v6(q)
					}
					return v4(q)
				}, withRules(t, rules.Config{DNS64: tt.prefix, DNS64All: tt.all}))
				ask := func() *dns.Msg {
					m := dnstest.Question("a.test.", dns.TypeAAAA)
					if tt.change != nil {
						tt.change(m)
					}
					return m
				}
				p.before(r, ask())
				m, hit := r.exchange(ask(), p.proto)
				if hit != p.hit || m.Question[0].Qtype != dns.TypeAAAA || m.AuthenticatedData {
					t.Errorf("hit %v, reply %v", hit, m)
				}
				if p.stale {
					return // as below, with other TTLs, or the error that is scripted
				}
				if diff := cmp.Diff(tt.want, section(m.Answer)); diff != "" || r.server.Asked() != tt.asked {
					t.Errorf("%d questions; answers (-want +got):\n%s", r.server.Asked(), diff)
				}
				least := uint64(0)
				if tt.want != nil && tt.asked == 2 {
					least = 1
				}
				if p.hit {
					least *= 2
				}
				if made := zone(r.Stats(), ".").Made; made < least || least == 0 && made > 0 {
					t.Errorf("%d replies are counted as made, want %d", made, least)
				}
			})
		}
	}
}

// TestDNS64Silence has servers that are silent about IPv6 addresses alone, and some
// that are silent about all.
func TestDNS64Silence(t *testing.T) {
	for name, v4 := range map[string]dnstest.Answer{"about IPv6": dnstest.Records(t, 0, "a.test. 700 A 198.51.101.9"), "about all": dnstest.Silent} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(q *dns.Msg) *dns.Msg {
				if q.Question[0].Qtype == dns.TypeAAAA {
					return nil
				}
				return v4(q)
			}, withRules(t, rules.Config{DNS64: netip.MustParsePrefix("64:ff9b::/96")}))
			m, _ := r.exchange(dnstest.Question("a.test.", dns.TypeAAAA), forwarder.UDP)
			if name == "about all" {
				if m.Rcode != dns.RcodeServerFailure {
					t.Errorf("reply %v", m)
				}
				return
			}
			if diff := cmp.Diff([]string{"a.test. 600 IN AAAA 64:ff9b::c633:6509"}, section(m.Answer)); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDNS64Reverse asks for the names of addresses that were made, and of others.
func TestDNS64Reverse(t *testing.T) {
	const made = "9.0.5.6.3.3.6.c.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.b.9.f.f.4.6.0.0.ip6.arpa."
	known, prefix := netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("2001:db8:64::/48")
	own48 := reverseOf(t, "2001:db8:64:c000:2:2100::")
	for _, tt := range []struct {
		name, asked string
		prefix      netip.Prefix
		rcode       int
		of          string // the name that servers are asked for
		said, want  []string
	}{
		{"made", made, known, 0, "9.101.51.198.in-addr.arpa.", []string{"9.101.51.198.in-addr.arpa. 60 PTR db.example."}, []string{made + " 600 IN CNAME 9.101.51.198.in-addr.arpa.", "9.101.51.198.in-addr.arpa. 60 IN PTR db.example."}},
		{"around the zero byte", own48, prefix, 0, "33.2.0.192.in-addr.arpa.", []string{"33.2.0.192.in-addr.arpa. 60 PTR db.example."}, []string{own48 + " 600 IN CNAME 33.2.0.192.in-addr.arpa.", "33.2.0.192.in-addr.arpa. 60 IN PTR db.example."}},
		{"no such name", made, known, dns.RcodeNameError, "9.101.51.198.in-addr.arpa.", []string{"---", "in-addr.arpa. 50 SOA ns.test. h.test. 1 2 3 4 50"}, []string{made + " 600 IN CNAME 9.101.51.198.in-addr.arpa."}},
		{"another address", own48, known, 0, own48, []string{own48 + " 60 PTR db.example."}, []string{own48 + " 60 IN PTR db.example."}},
		{"no address", "x." + made[4:], known, 0, "x." + made[4:], []string{"x." + made[4:] + " 60 PTR db.example."}, []string{"x." + made[4:] + " 60 IN PTR db.example."}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, dnstest.Records(t, tt.rcode, tt.said...), withRules(t, rules.Config{DNS64: tt.prefix}))
			ask := dnstest.Question(tt.asked, dns.TypePTR)
			m, _ := r.exchange(ask, forwarder.UDP)
			if diff := cmp.Diff(tt.want, section(m.Answer)); diff != "" || m.Rcode != tt.rcode || m.Question[0].Name != tt.asked {
				t.Errorf("%v; answers (-want +got):\n%s", m, diff)
			}
			if seen := r.server.Seen(); len(seen) != 1 || seen[0].Question[0].Name != tt.of {
				t.Errorf("the servers were asked %v", seen)
			}
			if _, hit := r.exchange(ask, forwarder.UDP); !hit {
				t.Error("it is not kept")
			}
		})
	}
}

func reverseOf(t *testing.T, ip string) string {
	name, err := dns.ReverseAddr(ip)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func TestBadRules(t *testing.T) {
	for name, c := range map[string]rules.Config{
		"rewrite from nothing": {Rewrite: []rules.Rewrite{{From: "a..b", To: "c"}}},
		"answer below nothing": {Answers: []rules.Answer{{Below: []string{"a..b"}}}},
		"record":               {Answers: []rules.Answer{{Records: []string{"A 192.0.2.256"}}}},
		"regexp":               {Answers: []rules.Answer{{Match: "("}}},
		"code":                 {Answers: []rules.Answer{{RCode: 16}}},
		"prefix of IPv4":       {DNS64: netip.MustParsePrefix("192.0.2.0/32")},
		"prefix, bits":         {DNS64: netip.MustParsePrefix("2001:db8::/97")},
		"prefix, zero byte":    {DNS64: netip.MustParsePrefix("2001:db8:0:0:100::/96")},
	} {
		if set, err := rules.New(c); err == nil || set != nil {
			t.Errorf("%s: no error", name)
		}
	}
	if set, err := rules.New(rules.Config{}); set != nil || err != nil {
		t.Errorf("no rules: %v, %v", set, err)
	}
	if err := rules.NewHosts(rules.HostsConfig{}).Update([]byte("192.0.2.1 a\nb.example\n192.0.2.2\n")); err == nil || !strings.Contains(err.Error(), "line 2") || !strings.Contains(err.Error(), "line 3") {
		t.Errorf("bad lines: %v", err)
	}
}

// TestRuledHitAllocatesNothing: rules cost a look at them, no memory.
func TestRuledHitAllocatesNothing(t *testing.T) {
	r := newRig(t, dnstest.Addresses(2), withRules(t, rules.Config{
		Rewrite: []rules.Rewrite{{From: "test", To: "real", Suffix: true}},
		Answers: []rules.Answer{{Below: []string{"fixed.test"}, Records: []string{"60 A 192.0.2.1"}}},
		Hosts:   hostsOf(t, rules.HostsConfig{TTL: time.Minute}, "192.0.2.1 host.test host.real"),
	}))
	for _, name := range []string{"a.test.", "b.example.", "fixed.real.", "host.test."} {
		m := dnstest.Question(name, dns.TypeA)
		r.exchange(m, forwarder.UDP)
		q, dst := dnstest.Pack(t, m), make([]byte, 0, 4096)
		if n := testing.AllocsPerRun(100, func() {
			if _, v := r.Lookup(dst, q, r.peer(0)); v != forwarder.Answered {
				t.Fatalf("verdict %d", v)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
