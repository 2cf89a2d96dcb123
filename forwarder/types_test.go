package forwarder_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder"
	"github.com/nodens-dns/nodens/forwarder/dnstest"
)

// TestOpaqueTypes passes on what nobody here can read, byte for byte.
func TestOpaqueTypes(t *testing.T) {
	for _, record := range []string{
		`a.test. 60 IN TYPE666 \# 5 c00c0102ff`,
		`a.test. 60 IN TYPE65280 \# 0`,
		`a.test. 60 IN TYPE1234 \# 3 c0c0c0`,
		`a.test. 60 IN HTTPS 1 . alpn="h2,h3" ipv4hint="10.0.0.1"`,
		`a.test. 60 IN SVCB 0 other.test.`,
		`a.test. 60 IN NSEC b.test. A RRSIG NSEC`,
		`a.test. 60 IN CAA 0 issue "ca.test"`,
		`a.test. 60 IN DNSKEY 257 3 8 AAAA`,
	} {
		rr := dnstest.Record(t, record)
		r := newRig(t, dnstest.Records(t, 0, record))
		for _, wantHit := range []bool{false, true} {
			got, hit := r.exchange(dnstest.Question("a.test.", rr.Header().Rrtype), forwarder.UDP)
			if hit != wantHit || len(got.Answer) != 1 || got.Answer[0].String() != rr.String() {
				t.Errorf("%s: hit %v, %v", record, hit, got.Answer)
			}
		}
	}
}

// TestMalformedOpaqueData has data whose inner lengths lie: they are none of
// our business.
func TestMalformedOpaqueData(t *testing.T) {
	query := dnstest.Question("a.test.", dns.TypeSVCB)
	for _, qtype := range []uint16{dns.TypeSVCB, dns.TypeHTTPS, dns.TypeNSEC, dns.TypeNSEC3, dns.TypeLOC, dns.TypeTXT, dns.TypeRRSIG} {
		data := []byte{0, 1, 0xC0, 12, 0xff, 0xff, 0xff, 0xff}
		query.Question[0].Qtype = qtype
		r := newRig(t, nil)
		r.server.ScriptBytes(func(q []byte) []byte {
			b := bytes.Clone(q[:12+8+4])
			b[2] |= 0x80
			b[7], b[11] = 1, 0
			b = append(b, 0xC0, 12, byte(qtype>>8), byte(qtype), 0, 1, 0, 0, 0, 60, 0, byte(len(data)))
			return append(b, data...)
		})
		for range 2 {
			reply, _ := r.ask(dnstest.Pack(t, query), forwarder.UDP)
			if !bytes.HasSuffix(reply, data) || reply[3]&15 != 0 {
				t.Errorf("type %d: % x", qtype, reply)
			}
		}
		if r.server.Asked() != 1 {
			t.Errorf("type %d: asked %d times", qtype, r.server.Asked())
		}
	}
}

// TestANYIsItsOwnAnswer keeps it for 10 s and builds nothing from it.
func TestANYIsItsOwnAnswer(t *testing.T) {
	r := newRig(t, dnstest.Records(t, 0, "a.test. 300 IN A 10.0.0.1", "a.test. 300 IN MX 1 b.test.", "a.test. 300 IN NS ns.test."))
	any := dnstest.Question("a.test.", dns.TypeANY)
	for _, wantHit := range []bool{false, true} {
		if got, hit := r.exchange(any, forwarder.UDP); hit != wantHit || len(got.Answer) != 3 {
			t.Errorf("hit %v, %v", hit, got)
		}
	}
	for _, qtype := range []uint16{dns.TypeA, dns.TypeMX, dns.TypeRRSIG} {
		if _, hit := r.exchange(dnstest.Question("a.test.", qtype), forwarder.UDP); hit {
			t.Errorf("type %d is answered from ANY", qtype)
		}
	}
	r.turn(10 * time.Second)
	if _, hit := r.exchange(any, forwarder.UDP); hit {
		t.Error("kept over 10 s")
	}
}

// TestChaos answers the names that were given texts, and refuses all others.
func TestChaos(t *testing.T) {
	r := newRig(t, dnstest.Addresses(1), func(c *forwarder.Config) {
		c.Chaos = map[string]string{"version.bind.": "nodens 1", "ID.server": "node-7"}
	})
	for name, want := range map[string]string{
		"version.bind.": "nodens 1", "VERSION.bind.": "nodens 1", "id.server.": "node-7",
		"hostname.bind.": "", "bind.": "", "x.version.bind.": "",
	} {
		for _, qtype := range []uint16{dns.TypeTXT, dns.TypeA} {
			m := edns(dnstest.Question(name, qtype), 1232, false)
			m.Question[0].Qclass = dns.ClassCHAOS
			got, hit := r.exchange(m, forwarder.UDP)
			if want == "" || qtype != dns.TypeTXT {
				if got.Rcode != dns.RcodeRefused || len(got.Answer) != 0 || !hit {
					t.Errorf("%s: got %v", name, got)
				}
				continue
			}
			txt, ok := got.Answer[0].(*dns.TXT)
			if !ok || !hit || txt.Txt[0] != want || txt.Hdr.Class != dns.ClassCHAOS || txt.Hdr.Ttl != 0 || got.IsEdns0() == nil {
				t.Errorf("%s: got %v", name, got)
			}
		}
		if got, _ := r.exchange(dnstest.Question(name, dns.TypeTXT), forwarder.UDP); got.Rcode == dns.RcodeRefused {
			t.Errorf("%s in class IN is refused", name)
		}
	}
	bad := map[string]string{"a..b": "x", "ok.": strings.Repeat("x", 256)}
	if _, err := forwarder.New(forwarder.Config{Chaos: bad}); err == nil || strings.Count(err.Error(), "chaos:") != 2 {
		t.Errorf("error %v", err)
	}
}

func TestDeny(t *testing.T) {
	r := newRig(t, dnstest.Addresses(1), func(c *forwarder.Config) {
		c.Deny = []string{"local.", "10.in-addr.arpa", "resolver.arpa.", "svc.denied."}
		own := c.Routes[0]
		own.Zones = []string{"svc.denied.", "own.local."}
		c.Routes = append(c.Routes, own)
	})
	for name, want := range map[string]int{
		"printer.local.": dns.RcodeNameError, "local.": dns.RcodeNameError, "1.0.0.10.in-addr.arpa.": dns.RcodeNameError,
		"a.own.local.": 0, "a.svc.denied.": 0, "11.in-addr.arpa.": 0, "xlocal.": 0,
		"_dns.resolver.arpa.": dns.RcodeNameError, // one's own list replaces the default
	} {
		got, _ := r.exchange(dnstest.Question(name, dns.TypeA), forwarder.UDP)
		if got.Rcode != want || (len(got.Ns) == 1) != (want != 0) {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestResolverAddressesAreUnknown(t *testing.T) {
	r := newRig(t, dnstest.Addresses(1))
	got, hit := r.exchange(dnstest.Question("_dns.resolver.arpa.", dns.TypeSVCB), forwarder.UDP)
	if !hit || got.Rcode != 0 || len(got.Answer) != 0 || len(got.Ns) != 1 {
		t.Errorf("got %v", got)
	}
}

func TestRefuseSnooping(t *testing.T) {
	r := newRig(t, dnstest.Addresses(1), func(c *forwarder.Config) { c.RefuseSnooping = true })
	with, without := dnstest.Question("a.test.", dns.TypeA), dnstest.Question("a.test.", dns.TypeA)
	without.RecursionDesired = false
	r.exchange(with, forwarder.UDP)
	if got, hit := r.exchange(without, forwarder.UDP); got.Rcode != dns.RcodeRefused || !hit {
		t.Errorf("without RD: %v", got)
	}
	if got, _ := r.exchange(with, forwarder.UDP); len(got.Answer) != 1 {
		t.Errorf("with RD: %v", got)
	}
}

// TestSharedDenial has one type's denial answer another's question as its own.
func TestSharedDenial(t *testing.T) {
	no := dnstest.Records(t, dns.RcodeNameError, "---", "test. 5 IN SOA ns.test. root.test. 1 3600 600 86400 5")
	r := newRig(t, no, func(c *forwarder.Config) { c.Routes[0].Policy.ShareNXDomain = true })
	r.exchange(dnstest.Question("n.test.", dns.TypeAAAA), forwarder.UDP)
	for _, q := range []*dns.Msg{
		dnstest.Question("N.test.", dns.TypeA), edns(dnstest.Question("n.test.", dns.TypeSRV), 1232, false),
	} {
		got, hit := r.exchange(q, forwarder.UDP)
		if !hit || got.Rcode != dns.RcodeNameError || got.Question[0] != q.Question[0] || len(got.Ns) != 1 {
			t.Errorf("hit %v, %v", hit, got)
		}
	}
	for name, q := range map[string]*dns.Msg{
		"below it": dnstest.Question("x.n.test.", dns.TypeA),
		"with DO":  edns(dnstest.Question("n.test.", dns.TypeA), 1232, true),
	} {
		if _, hit := r.exchange(q, forwarder.UDP); hit {
			t.Errorf("a question %s shares the denial", name)
		}
	}
	r.turn(5 * time.Second)
	if _, hit := r.exchange(dnstest.Question("n.test.", dns.TypeA), forwarder.UDP); hit {
		t.Error("the denial does not end")
	}
}

// TestChainsThatLeadNowhere relays loops and long chains as they are, and asks
// nobody for more.
func TestChainsThatLeadNowhere(t *testing.T) {
	var long []string
	for i := range 100 {
		long = append(long, fmt.Sprintf("c%d.test. 60 IN CNAME c%d.test.", i, i+1))
	}
	for name, records := range map[string][]string{
		"c0.test.": long,
		"a.test.":  {"a.test. 60 IN CNAME b.test.", "b.test. 60 IN CNAME a.test."},
		"s.test.":  {"s.test. 60 IN CNAME s.test."},
	} {
		r := newRig(t, dnstest.Records(t, 0, records...))
		got, _ := r.exchange(dnstest.Question(name, dns.TypeA), forwarder.TCP)
		if diff := cmp.Diff(len(records), len(got.Answer)); diff != "" || r.server.Asked() != 1 {
			t.Errorf("%s: asked %d times, records %s", name, r.server.Asked(), diff)
		}
	}
}

// TestReferralIsNotFollowed has a server name a hundred others.
func TestReferralIsNotFollowed(t *testing.T) {
	records := []string{"---"}
	for i := range 100 {
		records = append(records, fmt.Sprintf("test. 60 IN NS ns%d.victim.test.", i))
	}
	r := newRig(t, dnstest.Records(t, 0, records...))
	if got, _ := r.exchange(dnstest.Question("a.test.", dns.TypeA), forwarder.UDP); got.Rcode != dns.RcodeServerFailure || r.server.Asked() != 1 {
		t.Errorf("asked %d times, got %v", r.server.Asked(), got)
	}
}

// TestHugeSignedReply is passed on without looking at its signatures, and not
// kept.
func TestHugeSignedReply(t *testing.T) {
	var records []string
	for i := range 100 {
		records = append(records, fmt.Sprintf("a.test. 60 IN DNSKEY 257 3 8 %s", strings.Repeat("AAAA", 60+i%3)))
	}
	for range 200 {
		records = append(records, "a.test. 60 IN RRSIG DNSKEY 8 2 60 20300101000000 20200101000000 1 test. "+strings.Repeat("AAAA", 40))
	}
	r := newRig(t, dnstest.Records(t, 0, records...))
	for range 2 {
		got, hit := r.exchange(edns(dnstest.Question("a.test.", dns.TypeDNSKEY), 1232, true), forwarder.TCP)
		if hit || len(got.Answer) != len(records) {
			t.Errorf("hit %v, %d records", hit, len(got.Answer))
		}
	}
}

// TestWitness: every loop answers for itself, and nobody counts it.
func TestWitness(t *testing.T) {
	r := newRig(t, dnstest.Addresses(1), func(c *forwarder.Config) {
		c.Witness, c.WitnessText = "socket.Nodens.", func(stripe int) string { return fmt.Sprintf("loop %d", stripe) }
	})
	m := dnstest.Question("Socket.nodens.", dns.TypeTXT)
	m.Question[0].Qclass = dns.ClassCHAOS
	query, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	for stripe := range uint8(2) {
		data, verdict := r.Lookup(make([]byte, 0, 4096), query, forwarder.Peer{Stripe: stripe})
		reply := new(dns.Msg)
		if err := reply.Unpack(data); err != nil || verdict != forwarder.Answered {
			t.Fatalf("verdict %v, %v", verdict, err)
		}
		if txt, ok := reply.Answer[0].(*dns.TXT); !ok || txt.Txt[0] != fmt.Sprintf("loop %d", stripe) || reply.Question[0].Name != "Socket.nodens." {
			t.Errorf("loop %d: %v", stripe, reply)
		}
	}
	for _, z := range r.Stats().Zones {
		if z.Responses != (forwarder.ZoneCounts{}).Responses {
			t.Errorf("a witness is counted: %+v", z.Responses)
		}
	}
	if _, err := forwarder.New(forwarder.Config{Witness: "a..b", Stripes: 1, WitnessText: func(int) string { return "" }}); err == nil || !strings.Contains(err.Error(), "witness:") {
		t.Errorf("error %v", err)
	}
}
