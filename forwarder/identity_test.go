package forwarder_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder"
	"github.com/nodens-dns/nodens/forwarder/dnstest"
)

// TestWhoSharesAnAnswer asks twice in different ways: is the second a hit?
func TestWhoSharesAnAnswer(t *testing.T) {
	a := func(change ...func(*dns.Msg)) *dns.Msg {
		m := dnstest.Question("a.test.", dns.TypeA)
		for _, f := range change {
			f(m)
		}
		return m
	}
	typed := func(qtype uint16) *dns.Msg { return dnstest.Question("a.test.", qtype) }
	opt := func(options ...dns.EDNS0) func(*dns.Msg) {
		return func(m *dns.Msg) {
			m.SetEdns0(1400, false)
			m.IsEdns0().Option = options
		}
	}
	do := func(m *dns.Msg) { m.SetEdns0(1232, true) }
	cookie := &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0011223344556677"}
	subnet := &dns.EDNS0_SUBNET{Code: dns.EDNS0SUBNET, Family: 1, SourceNetmask: 24, Address: []byte{198, 51, 100, 0}}
	tests := []struct {
		name          string
		first, second *dns.Msg
		shared        bool
	}{
		{"letter case", a(), dnstest.Question("A.TeSt.", dns.TypeA), true},
		{"EDNS", a(), a(opt()), true},
		{"EDNS first", a(opt()), a(), true},
		{"AD", a(), a(func(m *dns.Msg) { m.AuthenticatedData = true }), true},
		{"RD set first", a(), a(func(m *dns.Msg) { m.RecursionDesired = false }), true},
		{"RD clear first", a(func(m *dns.Msg) { m.RecursionDesired = false }), a(), false},
		{"cookie", a(opt(cookie)), a(opt()), true},
		{"client subnet", a(opt(subnet)), a(opt()), true},
		{"DO", a(), a(do), false},
		{"DO first", a(do), a(), false},
		{"DO twice", a(do), a(do), true},
		{"CD", a(), a(func(m *dns.Msg) { m.CheckingDisabled = true }), false},
		{"type", a(), typed(dns.TypeAAAA), false},
		{"types with one low byte, 1 and 257", a(), typed(dns.TypeCAA), false},
		{"types with one low byte, 28 and 284", typed(dns.TypeAAAA), typed(284), false},
		{"types with one low byte, 1 and 513", a(), typed(513), false},
		{"ANY", typed(dns.TypeANY), a(), false},
		{"ANY and its signatures", typed(dns.TypeANY), typed(dns.TypeRRSIG), false},
		{"name", a(), dnstest.Question("b.test.", dns.TypeA), false},
		{"parent", dnstest.Question("test.", dns.TypeA), a(), false},
		{"bytes above ASCII", dnstest.Question("\\201.test.", dns.TypeA), dnstest.Question("\\233.test.", dns.TypeA), false},
		{"a dot in a label", dnstest.Question("x\\.a.test.", dns.TypeA), dnstest.Question("x.a.test.", dns.TypeA), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, dnstest.Addresses(1)) // which speaks no EDNS, whatever it is asked
			r.exchange(tt.first, forwarder.UDP)
			got, hit := r.exchange(tt.second, forwarder.UDP)
			if hit != tt.shared {
				t.Errorf("shared: %v", hit)
			}
			if got.Question[0] != tt.second.Question[0] || (got.IsEdns0() != nil) != (tt.second.IsEdns0() != nil) {
				t.Errorf("the second got %v", got)
			}
		})
	}
}

func TestClassIsPartOfTheQuestion(t *testing.T) {
	r := newRig(t, dnstest.Addresses(1))
	ch := dnstest.Question("x.test.", dns.TypeA)
	ch.Question[0].Qclass = dns.ClassCHAOS
	for range 2 {
		if got, _ := r.exchange(ch, forwarder.UDP); got.Rcode != dns.RcodeRefused || len(got.Answer) != 0 {
			t.Errorf("class CH got %v", got)
		}
		if got, _ := r.exchange(dnstest.Question("x.test.", dns.TypeA), forwarder.UDP); len(got.Answer) != 1 {
			t.Errorf("class IN got %v", got)
		}
	}
	if r.server.Asked() != 1 {
		t.Errorf("asked %d times", r.server.Asked())
	}
}

// TestManyCookiesOneQuestion has clients that differ in options alone.
func TestManyCookiesOneQuestion(t *testing.T) {
	r := newRig(t, dnstest.Addresses(1))
	for i := range 100 {
		m := edns(dnstest.Question("a.test.", dns.TypeA), 1232, false)
		m.IsEdns0().Option = []dns.EDNS0{
			&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: fmt.Sprintf("%016x", i)},
			&dns.EDNS0_SUBNET{Code: dns.EDNS0SUBNET, Family: 1, SourceNetmask: 24, Address: []byte{198, 51, byte(i), 0}},
		}
		if got, _ := r.exchange(m, forwarder.UDP); len(got.IsEdns0().Option) != 0 {
			t.Fatalf("options come back: %v", got)
		}
	}
	if r.server.Asked() != 1 {
		t.Errorf("asked %d times", r.server.Asked())
	}
	if opt := r.server.Seen()[0].IsEdns0(); opt == nil || len(opt.Option) != 0 || opt.UDPSize() != 1232 {
		t.Errorf("the servers got %v", opt)
	}
}

// TestSignaturesComeWithDO has a server that signs for those who want it.
func TestSignaturesComeWithDO(t *testing.T) {
	sig := "a.test. 60 IN RRSIG A 8 2 60 20010101000000 20000101000000 1 test. AAAA" // ended long ago
	r := newRig(t, func(q *dns.Msg) *dns.Msg {
		if q.IsEdns0().Do() {
			return dnstest.Records(t, 0, "a.test. 60 IN A 10.0.0.1", sig)(q)
		}
		return dnstest.Records(t, 0, "a.test. 60 IN A 10.0.0.1")(q)
	})
	for range 2 {
		plain, _ := r.exchange(dnstest.Question("a.test.", dns.TypeA), forwarder.UDP)
		opt, _ := r.exchange(edns(dnstest.Question("a.test.", dns.TypeA), 1232, false), forwarder.UDP)
		signed, _ := r.exchange(edns(dnstest.Question("a.test.", dns.TypeA), 1232, true), forwarder.UDP)
		got := []int{len(plain.Answer), len(opt.Answer), len(signed.Answer)}
		if diff := cmp.Diff([]int{1, 1, 2}, got); diff != "" {
			t.Errorf("records for plain, EDNS, DO (-want +got):\n%s", diff)
		}
	}
	if r.server.Asked() != 2 {
		t.Errorf("asked %d times", r.server.Asked())
	}
}

// TestChainsAreWhole has one name asked for by itself and behind an alias.
func TestChainsAreWhole(t *testing.T) {
	r := newRig(t, func(q *dns.Msg) *dns.Msg {
		if q.Question[0].Name == "t.test." {
			return dnstest.Records(t, 0, "t.test. 300 IN A 10.0.0.9")(q)
		}
		return dnstest.Records(t, 0, "alias.test. 300 IN CNAME t.test.", "t.test. 10 IN A 10.0.0.1")(q)
	})
	r.exchange(dnstest.Question("t.test.", dns.TypeA), forwarder.UDP)
	for _, wantHit := range []bool{false, true, false} {
		got, hit := r.exchange(dnstest.Question("alias.test.", dns.TypeA), forwarder.UDP)
		if len(got.Answer) != 2 || hit != wantHit {
			t.Errorf("hit %v: %v", hit, got.Answer)
		}
		r.turn(5500 * time.Millisecond)
	}
}

// TestOnlyTheAnswerAnswers has records about other names ride along.
func TestOnlyTheAnswerAnswers(t *testing.T) {
	r := newRig(t, dnstest.Records(t, 0,
		"x.test. 60 IN A 10.0.0.1", "y.test. 60 IN A 203.0.113.6", "---",
		"test. 60 IN NS y.test.", "---", "y.test. 60 IN A 203.0.113.6"))
	got, _ := r.exchange(dnstest.Question("x.test.", dns.TypeA), forwarder.UDP)
	if len(got.Answer) != 2 || len(got.Ns) != 1 || len(got.Extra) != 1 {
		t.Errorf("the reply is not passed on whole: %v", got)
	}
	r.server.Script(dnstest.Silent)
	for _, qtype := range []uint16{dns.TypeA, dns.TypeNS} {
		for _, name := range []string{"y.test.", "test."} {
			if got, _ := r.exchange(dnstest.Question(name, qtype), forwarder.UDP); got.Rcode != dns.RcodeServerFailure {
				t.Errorf("%s got %v", name, got)
			}
		}
	}
}
