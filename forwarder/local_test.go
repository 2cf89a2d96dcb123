package forwarder_test

import (
	"testing"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder"
	"github.com/nodens-dns/nodens/forwarder/dnstest"
)

// TestAnsweredWithoutAServer lists what never leaves the node.
func TestAnsweredWithoutAServer(t *testing.T) {
	class := func(c uint16) *dns.Msg {
		m := dnstest.Question("version.bind.", dns.TypeTXT)
		m.Question[0].Qclass = c
		return m
	}
	opcode := func(op int) *dns.Msg {
		m := dnstest.Question("a.test.", dns.TypeSOA)
		m.Opcode = op
		return m
	}
	tests := []struct {
		name   string
		query  *dns.Msg
		rcode  int
		answer string // data of the first answer record
	}{
		{"localhost A", dnstest.Question("localhost.", dns.TypeA), 0, "127.0.0.1"},
		{"localhost AAAA", dnstest.Question("LocalHost.", dns.TypeAAAA), 0, "::1"},
		{"below localhost", dnstest.Question("a.b.localhost.", dns.TypeA), 0, "127.0.0.1"},
		{"localhost MX", dnstest.Question("localhost.", dns.TypeMX), 0, ""},
		{"invalid", dnstest.Question("x.invalid.", dns.TypeA), dns.RcodeNameError, ""},
		{"onion", dnstest.Question("x.onion.", dns.TypeA), dns.RcodeNameError, ""},
		{"class CH", class(dns.ClassCHAOS), dns.RcodeRefused, ""},
		{"class ANY", class(dns.ClassANY), dns.RcodeRefused, ""},
		{"type 0", dnstest.Question("a.test.", 0), dns.RcodeFormatError, ""},
		{"type OPT", dnstest.Question("a.test.", dns.TypeOPT), dns.RcodeFormatError, ""},
		{"type TSIG", dnstest.Question("a.test.", dns.TypeTSIG), dns.RcodeFormatError, ""},
		{"AXFR", dnstest.Question("a.test.", dns.TypeAXFR), dns.RcodeRefused, ""},
		{"IXFR", dnstest.Question("a.test.", dns.TypeIXFR), dns.RcodeRefused, ""},
		{"MAILA", dnstest.Question("a.test.", dns.TypeMAILA), dns.RcodeNotImplemented, ""},
		{"NOTIFY", opcode(dns.OpcodeNotify), dns.RcodeNotImplemented, ""},
		{"UPDATE", opcode(dns.OpcodeUpdate), dns.RcodeNotImplemented, ""},
	}
	for _, tt := range tests {
		for _, withOPT := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				r := newRig(t, dnstest.Addresses(1))
				m := tt.query.Copy()
				if withOPT {
					m.SetEdns0(4096, true)
				}
				got, hit := r.exchange(m, forwarder.UDP)
				if !hit || r.server.Asked() != 0 {
					t.Error("not answered at once")
				}
				if got.Rcode != tt.rcode || got.Opcode != m.Opcode || got.Question[0] != m.Question[0] {
					t.Errorf("got %v", got)
				}
				if (got.IsEdns0() != nil) != withOPT {
					t.Errorf("OPT: %v", got)
				}
				checkData(t, got, tt.answer)
			})
		}
	}
}

func checkData(t *testing.T, m *dns.Msg, data string) {
	t.Helper()
	switch {
	case data != "":
		if len(m.Answer) != 1 || dns.Field(m.Answer[0], 1) != data || !m.Authoritative {
			t.Errorf("got %v", m)
		}
	case len(m.Answer) != 0:
		t.Errorf("unexpected answer in %v", m)
	case m.Authoritative && (len(m.Ns) != 1 || m.Ns[0].Header().Rrtype != dns.TypeSOA || !dns.IsSubDomain(m.Ns[0].Header().Name, m.Question[0].Name)):
		t.Errorf("a negative answer without a SOA above the name: %v", m)
	}
}

func TestRoutes(t *testing.T) {
	named := func(name string) *dnstest.Group {
		return dnstest.NewGroup(func(q *dns.Msg) *dns.Msg {
			m := dnstest.Addresses(1)(q)
			m.Answer[0] = &dns.TXT{Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeTXT, Class: dns.ClassINET, Ttl: 5}, Txt: []string{name}}
			return m
		})
	}
	r := newRig(t, nil, func(c *forwarder.Config) {
		base := c.Routes[0]
		c.Routes = nil
		for zones, name := range map[string]string{"cluster.local": "cluster", "Corp.Example.": "corp", "a.corp.example": "deep", ".": "rest", "invalid.": "own"} {
			base.Zones, base.Group = []string{zones}, named(name)
			c.Routes = append(c.Routes, base)
		}
	})
	tests := []struct {
		name  string
		qtype uint16
		want  string
	}{
		{"web.default.svc.cluster.local.", dns.TypeTXT, "cluster"},
		{"CLUSTER.LOCAL.", dns.TypeTXT, "cluster"},
		{"xcluster.local.", dns.TypeTXT, "rest"},
		{"corp.example.", dns.TypeTXT, "corp"},
		{"b.corp.example.", dns.TypeTXT, "corp"},
		{"x.a.Corp.example.", dns.TypeTXT, "deep"},
		{"a.corp.example.", dns.TypeDS, "corp"},
		{"corp.example.", dns.TypeDS, "rest"},
		{"example.", dns.TypeTXT, "rest"},
		{".", dns.TypeTXT, "rest"},
		{".", dns.TypeDS, "rest"},
		{"x.invalid.", dns.TypeTXT, "own"},
	}
	for _, tt := range tests {
		got, _ := r.exchange(dnstest.Question(tt.name, tt.qtype), forwarder.UDP)
		if len(got.Answer) != 1 || got.Answer[0].(*dns.TXT).Txt[0] != tt.want {
			t.Errorf("%s %s: got %v, want %q", tt.name, dns.TypeToString[tt.qtype], got.Answer, tt.want)
		}
	}
}

func TestNoRoute(t *testing.T) {
	r := newRig(t, dnstest.Addresses(1), func(c *forwarder.Config) { c.Routes[0].Zones = []string{"cluster.local."} })
	got, hit := r.exchange(edns(dnstest.Question("example.", dns.TypeA), 1232, false), forwarder.UDP)
	if !hit || got.Rcode != dns.RcodeServerFailure || extended(got) != dns.ExtendedErrorCodeNotAuthoritative {
		t.Errorf("got %v", got)
	}
}

func TestBadRoutes(t *testing.T) {
	for name, routes := range map[string][]forwarder.Route{
		"twice":     {{Zones: []string{"a.", "A"}, Group: dnstest.NewGroup(nil), MaxInFlight: 1}},
		"no name":   {{Zones: []string{"a..b"}, Group: dnstest.NewGroup(nil), MaxInFlight: 1}},
		"no zones":  {{Group: dnstest.NewGroup(nil), MaxInFlight: 1}},
		"no bound":  {{Zones: []string{"a."}, Group: dnstest.NewGroup(nil)}},
		"no server": {{Zones: []string{"a."}, MaxInFlight: 1}},
	} {
		if _, err := forwarder.New(forwarder.Config{Routes: routes}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
