package cache_test

import (
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/cache"
)

const (
	soaLong  = "test. 3600 IN SOA ns.test. root.test. 1 3600 600 86400 5"
	soaShort = "test. 5 IN SOA ns.test. root.test. 1 3600 600 86400 3600"
	soaHuge  = "test. 3600 IN SOA ns.test. root.test. 1 3600 600 86400 3600"
)

func TestPolicy(t *testing.T) {
	tests := []struct {
		name    string
		qtype   uint16
		rcode   int
		change  func(m *dns.Msg, p *cache.Policy)
		records []string
		kind    cache.Kind
		life    time.Duration // 0: not kept
	}{
		{name: "one address", records: []string{"a.test. 60 IN A 10.0.0.1"}, life: 60 * time.Second},
		{name: "the least TTL of an RRset", records: []string{"a.test. 60 IN A 10.0.0.1", "a.test. 20 IN A 10.0.0.2"}, life: 20 * time.Second},
		{name: "the CNAME's TTL counts", records: []string{"a.test. 5 IN CNAME b.test.", "b.test. 300 IN A 10.0.0.1"}, life: 5 * time.Second},
		{name: "authority counts", records: []string{"a.test. 100 IN A 10.0.0.1", "---", "test. 10 IN NS ns.test."}, life: 10 * time.Second},
		{name: "additional counts", records: []string{"a.test. 100 IN A 10.0.0.1", "---", "---", "x.test. 7 IN A 10.0.0.9"}, life: 7 * time.Second},
		{name: "OPT does not count", records: []string{"a.test. 100 IN A 10.0.0.1"}, life: 100 * time.Second, change: func(m *dns.Msg, _ *cache.Policy) { m.SetEdns0(1232, true) }},
		{name: "capped", records: []string{"a.test. 86400 IN A 10.0.0.1"}, life: time.Hour},
		{name: "top bit set counts as 0", records: []string{"a.test. 60 IN A 10.0.0.1"}, change: func(m *dns.Msg, _ *cache.Policy) { m.Answer[0].Header().Ttl = 1 << 31 }},
		{name: "TTL 0 is not kept", records: []string{"a.test. 0 IN A 10.0.0.1"}},
		{name: "MinTTL raises", records: []string{"a.test. 5 IN A 10.0.0.1"}, life: time.Minute, change: func(_ *dns.Msg, p *cache.Policy) { p.MinTTL = time.Minute }},
		{name: "MinTTL leaves negatives alone", rcode: dns.RcodeNameError, records: []string{"---", soaLong}, kind: cache.NXDomain, life: 5 * time.Second, change: func(_ *dns.Msg, p *cache.Policy) { p.MinTTL = time.Minute }},
		{name: "NXDOMAIN by MINIMUM", rcode: dns.RcodeNameError, records: []string{"---", soaLong}, kind: cache.NXDomain, life: 5 * time.Second},
		{name: "NXDOMAIN by the SOA's TTL", rcode: dns.RcodeNameError, records: []string{"---", soaShort}, kind: cache.NXDomain, life: 5 * time.Second},
		{name: "NXDOMAIN by the cap", rcode: dns.RcodeNameError, records: []string{"---", soaHuge}, kind: cache.NXDomain, life: 30 * time.Second},
		{name: "NXDOMAIN without SOA is not kept", rcode: dns.RcodeNameError, kind: cache.NXDomain},
		{name: "NXDOMAIN behind a CNAME", rcode: dns.RcodeNameError, records: []string{"a.test. 3 IN CNAME b.test.", "---", soaLong}, kind: cache.NXDomain, life: 3 * time.Second},
		{name: "NODATA", records: []string{"---", soaLong}, kind: cache.NoData, life: 5 * time.Second},
		{name: "NODATA behind a CNAME", records: []string{"a.test. 300 IN CNAME b.test.", "---", soaLong}, kind: cache.NoData, life: 5 * time.Second},
		{name: "YXDOMAIN is not kept", rcode: dns.RcodeYXDomain, records: []string{"test. 300 IN DNAME long.test."}, kind: cache.NoData},
		{name: "YXDOMAIN by its SOA", rcode: dns.RcodeYXDomain, records: []string{"test. 300 IN DNAME long.test.", "---", soaLong}, kind: cache.NoData, life: 5 * time.Second},
		{name: "NODATA without SOA is not kept", kind: cache.NoData},
		{name: "CNAME alone is not kept", records: []string{"a.test. 300 IN CNAME b.test."}, kind: cache.NoData},
		{name: "CNAME asked for", qtype: dns.TypeCNAME, records: []string{"a.test. 300 IN CNAME b.test."}, life: 300 * time.Second},
		{name: "another name's address is no answer", records: []string{"b.test. 300 IN A 10.0.0.1"}, kind: cache.NoData},
		{name: "chain in any order", records: []string{"c.test. 9 IN A 10.0.0.1", "b.test. 9 IN CNAME c.test.", "a.test. 9 IN CNAME b.test."}, life: 9 * time.Second},
		{name: "chain that loops", records: []string{"a.test. 9 IN CNAME b.test.", "b.test. 9 IN CNAME a.test."}, kind: cache.NoData},
		{name: "ANY at most 10 s", qtype: dns.TypeANY, records: []string{"a.test. 300 IN MX 1 b.test."}, life: 10 * time.Second},
		{name: "truncated is not kept", records: []string{"a.test. 60 IN A 10.0.0.1"}, change: func(m *dns.Msg, _ *cache.Policy) { m.Truncated = true }},
		{name: "another class is not kept", records: []string{"a.test. 60 CH TXT \"x\""}, qtype: dns.TypeTXT, change: func(m *dns.Msg, _ *cache.Policy) { m.Question[0].Qclass = dns.ClassCHAOS }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			qtype, p := tt.qtype, policy()
			if qtype == 0 {
				qtype = dns.TypeA
			}
			m := message(t, "a.test.", qtype, tt.rcode, tt.records...)
			if tt.change != nil {
				tt.change(m, p)
			}
			e, keep := entry(t, m, p, 0)
			if e.Kind() != tt.kind {
				t.Errorf("kind %d, want %d", e.Kind(), tt.kind)
			}
			if keep != (tt.life > 0) {
				t.Fatalf("kept: %v, want a life of %v", keep, tt.life)
			}
			if keep && e.Left(0) != tt.life {
				t.Errorf("kept for %v, want %v", e.Left(0), tt.life)
			}
		})
	}
}

func TestNoAnswer(t *testing.T) {
	tests := []struct {
		name    string
		rcode   int
		records []string
		kind    cache.Kind
	}{
		{name: "SERVFAIL", rcode: dns.RcodeServerFailure, kind: cache.Failure},
		{name: "REFUSED", rcode: dns.RcodeRefused, kind: cache.Failure},
		{name: "NOTIMP with records", rcode: dns.RcodeNotImplemented, records: []string{"a.test. 9 IN A 10.0.0.1"}, kind: cache.Failure},
		{name: "referral", records: []string{"---", "test. 300 IN NS ns.test."}, kind: cache.Lame},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := parse(t, message(t, "a.test.", dns.TypeA, tt.rcode, tt.records...))
			e, kind, keep := cache.NewEntry([]byte("k"), &r, policy(), 0, 0)
			if e != nil || kind != tt.kind || keep {
				t.Errorf("entry %v, kind %d, kept %v; want none of kind %d", e, kind, keep, tt.kind)
			}
		})
	}
}
