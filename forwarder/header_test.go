package forwarder_test

import (
	"testing"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder"
	"github.com/nodens-dns/nodens/forwarder/dnstest"
)

// kinds are replies of every kind, by what they say.
func kinds(t testing.TB) map[string]dnstest.Answer {
	soa := "test. 60 IN SOA ns.test. root.test. 1 3600 600 86400 60"
	return map[string]dnstest.Answer{
		"answer":   dnstest.Addresses(1),
		"no data":  dnstest.Records(t, 0, "---", soa),
		"no name":  dnstest.Records(t, dns.RcodeNameError, "---", soa),
		"broken":   dnstest.Records(t, 0),
		"SERVFAIL": dnstest.RCode(dns.RcodeServerFailure),
		"silence":  dnstest.Silent,
		"cut": func(q *dns.Msg) *dns.Msg {
			m := dnstest.Addresses(1)(q)
			m.Truncated = true
			return m
		},
	}
}

// allOptions are EDNS options that a client may send, sound or not.
func allOptions() (options []dns.EDNS0) {
	for code, data := range map[uint16]string{
		dns.EDNS0NSID: "", dns.EDNS0SUBNET: "\x00\x01\x18\x00\x0a\x00\x00", dns.EDNS0EXPIRE: "", dns.EDNS0COOKIE: "12345678",
		dns.EDNS0TCPKEEPALIVE: "\x00\x64\x00", dns.EDNS0PADDING: "\x00\x00\x00", dns.EDNS0EDE: "\x00\x06", 65001: "x",
	} {
		options = append(options, &dns.EDNS0_LOCAL{Code: code, Data: []byte(data)})
	}
	return options
}

// TestFlagsOfEveryKind has clients that set all they can and servers that do
// too: what comes back is ours.
func TestFlagsOfEveryKind(t *testing.T) {
	for kind, answer := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			r := newRig(t, func(q *dns.Msg) *dns.Msg {
				m := answer(q)
				if m != nil {
					m.Authoritative, m.AuthenticatedData, m.Zero, m.RecursionAvailable = true, true, true, false
					m.SetEdns0(4096, true)
					m.IsEdns0().Hdr.Ttl |= 0x7fff
					m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_NSID{Code: dns.EDNS0NSID, Nsid: "aa"}}
				}
				return m
			})
			for _, way := range []string{"first", "second"} {
				q := edns(dnstest.Question("a.test.", dns.TypeA), 1232, false)
				q.Zero, q.Authoritative, q.Truncated, q.RecursionAvailable = true, true, true, true
				q.IsEdns0().Hdr.Ttl |= 0x7fff
				q.IsEdns0().Option = allOptions()
				got, _ := r.exchange(q, forwarder.UDP)
				if !got.RecursionAvailable || got.Authoritative || got.Zero || got.AuthenticatedData || got.Truncated != (kind == "cut") {
					t.Errorf("%s: header\n%v", way, got)
				}
				opt := got.IsEdns0()
				if opt == nil || opt.Hdr.Ttl&0xffff != 0 {
					t.Fatalf("%s: OPT %v", way, opt)
				}
				for _, o := range opt.Option {
					if o.Option() != dns.EDNS0EDE {
						t.Errorf("%s: option %v", way, o)
					}
				}
			}
			for _, q := range r.server.Seen() {
				if q.Authoritative || q.Truncated || q.RecursionAvailable || q.Zero || !q.AuthenticatedData || q.IsEdns0().Hdr.Ttl&0x7fff != 0 {
					t.Errorf("the servers got\n%v", q)
				}
			}
		})
	}
}

// TestKeepAA has a route that shows the servers' AA, the same on a miss and a
// hit.
func TestKeepAA(t *testing.T) {
	for _, aa := range []bool{false, true} {
		r := newRig(t, func(q *dns.Msg) *dns.Msg {
			m := dnstest.Addresses(1)(q)
			m.Authoritative = aa
			return m
		}, func(c *forwarder.Config) { c.Routes[0].Policy.KeepAA = true })
		for range 2 {
			if got, _ := r.exchange(dnstest.Question("a.test.", dns.TypeA), forwarder.UDP); got.Authoritative != aa {
				t.Errorf("the server's AA is %v, ours %v", aa, got.Authoritative)
			}
		}
		r.turn(60e9)
		r.server.Script(dnstest.Silent)
		if got, _ := r.exchange(dnstest.Question("a.test.", dns.TypeA), forwarder.UDP); got.Authoritative || len(got.Answer) != 1 {
			t.Errorf("an ended answer is called authoritative: %v", got)
		}
	}
}

// TestADUnasked has a server that claims AD for everybody.
func TestADUnasked(t *testing.T) {
	r := newRig(t, func(q *dns.Msg) *dns.Msg {
		m := dnstest.Addresses(1)(q)
		m.AuthenticatedData = true
		return m
	})
	for range 2 {
		for _, q := range []*dns.Msg{dnstest.Question("a.test.", dns.TypeA), edns(dnstest.Question("a.test.", dns.TypeA), 1232, false)} {
			if got, _ := r.exchange(q, forwarder.UDP); got.AuthenticatedData {
				t.Errorf("AD for a client that did not ask: %v", got)
			}
		}
	}
}

// TestExtendedErrorGivesWay has an ended answer that fits the client to the
// byte: no record is cut for the extended error.
func TestExtendedErrorGivesWay(t *testing.T) {
	r := newRig(t, dnstest.Addresses(30))
	q := edns(dnstest.Question("a.test.", dns.TypeA), 1232, false)
	whole, _ := r.ask(dnstest.Pack(t, q), forwarder.UDP)
	r.turn(60e9)
	r.server.Script(dnstest.Silent)
	for spare, wantEDE := range map[int]bool{0: false, 5: false, 6: true} {
		q := edns(dnstest.Question("a.test.", dns.TypeA), uint16(len(whole)+spare), false)
		reply, _ := r.ask(dnstest.Pack(t, q), forwarder.UDP)
		m := dnstest.Unpack(t, reply)
		if _, ok := dnstest.Extended(m); ok != wantEDE || m.Truncated || len(m.Answer) != 30 || len(reply) > len(whole)+spare {
			t.Errorf("%d bytes to spare: extended error %v, TC %v, %d answers, %d bytes", spare, ok, m.Truncated, len(m.Answer), len(reply))
		}
	}
}

// TestMinimal has routes that leave out what clients do not use.
func TestMinimal(t *testing.T) {
	sections := func(m *dns.Msg) [3]int { return [3]int{len(m.Answer), len(m.Ns), len(m.Extra)} }
	ask := func(name string, qtype uint16, do bool) *dns.Msg {
		return edns(dnstest.Question(name, qtype), 1232, do)
	}
	tests := []struct {
		name    string
		query   *dns.Msg
		rcode   int
		records []string
		want    [3]int // records of the reply, OPT included
	}{
		{"address", ask("a.test.", dns.TypeA, false), 0, []string{"a.test. 60 IN A 10.0.0.1", "---", "test. 5 IN NS ns.test.", "---", "ns.test. 5 IN A 10.0.0.9"}, [3]int{1, 0, 1}},
		{"address with proof", ask("a.test.", dns.TypeA, true), 0, []string{"a.test. 60 IN A 10.0.0.1", "---", "test. 5 IN NS ns.test."}, [3]int{1, 1, 1}},
		{"service", ask("a.test.", dns.TypeSRV, false), 0, []string{"a.test. 60 IN SRV 0 0 80 b.test.", "---", "---", "b.test. 60 IN A 10.0.0.1"}, [3]int{1, 0, 2}},
		{"binding", ask("a.test.", dns.TypeHTTPS, false), 0, []string{"a.test. 60 IN HTTPS 1 b.test.", "---", "---", "b.test. 60 IN A 10.0.0.1"}, [3]int{1, 0, 2}},
		{"denial", ask("a.test.", dns.TypeA, false), dns.RcodeNameError, []string{"---", "test. 60 IN SOA ns.test. root.test. 1 3600 600 86400 60"}, [3]int{0, 1, 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, dnstest.Records(t, tt.rcode, tt.records...), func(c *forwarder.Config) { c.Routes[0].Policy.Minimal = true })
			for range 2 {
				if got, _ := r.exchange(tt.query, forwarder.UDP); sections(got) != tt.want {
					t.Errorf("want %v records, got %v", tt.want, got)
				}
			}
		})
	}
}

// TestServersExtendedErrors are passed on to those who were waiting, and not
// kept: a while later they may mislead.
func TestServersExtendedErrors(t *testing.T) {
	for rcode, cached := range map[int]uint16{dns.RcodeSuccess: 65535, dns.RcodeServerFailure: dns.ExtendedErrorCodeCachedError} {
		r := newRig(t, func(q *dns.Msg) *dns.Msg {
			m := dnstest.RCode(rcode)(q)
			if rcode == dns.RcodeSuccess {
				m = dnstest.Addresses(1)(q)
			}
			m.SetEdns0(1232, false)
			m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_EDE{InfoCode: dns.ExtendedErrorCodeDNSBogus, ExtraText: "no such text"}}
			return m
		})
		for i, want := range []uint16{dns.ExtendedErrorCodeDNSBogus, cached} {
			got, _ := r.exchange(edns(dnstest.Question("a.test.", dns.TypeA), 1232, false), forwarder.UDP)
			if extended(got) != want || got.Rcode != rcode {
				t.Errorf("query %d: %v", i, got)
			}
		}
		if got, _ := r.exchange(dnstest.Question("b.test.", dns.TypeA), forwarder.UDP); got.IsEdns0() != nil {
			t.Errorf("a client without EDNS got %v", got)
		}
	}
}
