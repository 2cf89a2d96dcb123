package forwarder_test

import (
	"testing"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder"
	"github.com/nodens-dns/nodens/forwarder/dnstest"
)

// probe is a query of the kind that surveys of name servers send.
type probe struct {
	name   string
	change func(m *dns.Msg)
	rcode  int
	opt    bool // in the reply
	do     bool
}

// withEDNS puts an OPT of a version into a query, with options.
func withEDNS(version uint8, size uint16, options ...dns.EDNS0) func(*dns.Msg) {
	return func(m *dns.Msg) {
		m.SetEdns0(size, false)
		m.IsEdns0().SetVersion(version)
		m.IsEdns0().Option = options
	}
}

// asDO sets DO behind another change.
func asDO(change func(*dns.Msg)) func(*dns.Msg) {
	return func(m *dns.Msg) {
		change(m)
		m.IsEdns0().SetDo()
	}
}

// ednsFlags sets all flags of the OPT but DO.
func ednsFlags(m *dns.Msg) {
	m.SetEdns0(1232, false)
	m.IsEdns0().Hdr.Ttl |= 0x7fff
}

func probes() []probe {
	unknown := &dns.EDNS0_LOCAL{Code: 100}
	nsid := &dns.EDNS0_NSID{Code: dns.EDNS0NSID}
	cookie := &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0011223344556677"}
	expire := &dns.EDNS0_EXPIRE{Code: dns.EDNS0EXPIRE, Empty: true}
	subnet := &dns.EDNS0_SUBNET{Code: dns.EDNS0SUBNET, Family: 1, SourceNetmask: 0, Address: []byte{0, 0, 0, 0}}
	const badVers, notImp = dns.RcodeBadVers, dns.RcodeNotImplemented
	all := []probe{
		{"plain", func(*dns.Msg) {}, 0, false, false},
		{"aa", func(m *dns.Msg) { m.Authoritative = true }, 0, false, false},
		{"ad", func(m *dns.Msg) { m.AuthenticatedData = true }, 0, false, false},
		{"cd", func(m *dns.Msg) { m.CheckingDisabled = true }, 0, false, false},
		{"ra", func(m *dns.Msg) { m.RecursionAvailable = true }, 0, false, false},
		{"without rd", func(m *dns.Msg) { m.RecursionDesired = false }, 0, false, false},
		{"tc", func(m *dns.Msg) { m.Truncated = true }, 0, false, false},
		{"z", func(m *dns.Msg) { m.Zero = true }, 0, false, false},
		{"a code", func(m *dns.Msg) { m.Rcode = dns.RcodeRefused }, 0, false, false},
		{"opcode 15", func(m *dns.Msg) { m.Opcode = 15 }, notImp, false, false},
		{"opcode 15 with flags", func(m *dns.Msg) { m.Opcode, m.AuthenticatedData, m.CheckingDisabled = 15, true, true }, notImp, false, false},
		{"edns", withEDNS(0, 4096), 0, true, false},
		{"edns 512", withEDNS(0, 512), 0, true, false},
		{"do", asDO(withEDNS(0, 4096)), 0, true, true},
		{"do and cd", func(m *dns.Msg) { asDO(withEDNS(0, 4096))(m); m.CheckingDisabled = true }, 0, true, true},
		{"edns flags", ednsFlags, 0, true, false},
		{"edns flags and do", asDO(ednsFlags), 0, true, true},
		{"unknown option", withEDNS(0, 4096, unknown), 0, true, false},
		{"nsid", withEDNS(0, 4096, nsid), 0, true, false},
		{"cookie", withEDNS(0, 4096, cookie), 0, true, false},
		{"expire", withEDNS(0, 4096, expire), 0, true, false},
		{"subnet", withEDNS(0, 4096, subnet), 0, true, false},
		{"options", withEDNS(0, 4096, nsid, cookie, expire, subnet, unknown), 0, true, false},
		{"edns 1", withEDNS(1, 4096), badVers, true, false},
		{"edns 1, unknown option", withEDNS(1, 4096, unknown), badVers, true, false},
		{"edns 1, do", asDO(withEDNS(1, 4096)), badVers, true, true},
		{"edns 1, nsid", withEDNS(1, 4096, nsid), badVers, true, false},
		{"edns 1, cookie", withEDNS(1, 4096, cookie), badVers, true, false},
		{"edns 1, expire", withEDNS(1, 4096, expire), badVers, true, false},
		{"edns 1, subnet", withEDNS(1, 4096, subnet), badVers, true, false},
		{"edns 255, options", withEDNS(255, 4096, nsid, cookie), badVers, true, false},
	}
	return all
}

// TestProbes sends the probes of surveys over both transports, the answers of
// servers and those from memory: noise is ignored and not repeated.
func TestProbes(t *testing.T) {
	for _, p := range probes() {
		for _, proto := range []forwarder.Proto{forwarder.UDP, forwarder.TCP} {
			r := newRig(t, dnstest.Addresses(1))
			for _, way := range []string{"miss", "hit"} {
				q := dnstest.Question("a.test.", dns.TypeA)
				p.change(q)
				got, _ := r.exchange(q, proto)
				opt := got.IsEdns0()
				if got.Rcode != p.rcode || len(got.Answer) > 0 != (p.rcode == 0) || (opt != nil) != p.opt || got.Opcode != q.Opcode {
					t.Errorf("%s, %s: %v", p.name, way, got)
				}
				if got.Zero || got.Authoritative || got.Truncated || got.RecursionDesired != q.RecursionDesired || got.CheckingDisabled != q.CheckingDisabled {
					t.Errorf("%s, %s: header %v", p.name, way, got.MsgHdr)
				}
				if opt != nil && (opt.Version() != 0 || opt.Do() != p.do || opt.Hdr.Ttl&0x7fff != 0 || len(opt.Option) > 0) {
					t.Errorf("%s, %s: %v", p.name, way, opt)
				}
			}
		}
	}
}

// TestEveryType asks for each type that is known and some that are not, of a
// server that has no record of it.
func TestEveryType(t *testing.T) {
	types := []uint16{666, 1000, 65280, 65534}
	for qtype := range dns.TypeToString {
		switch qtype {
		case dns.TypeNone, dns.TypeOPT, dns.TypeTKEY, dns.TypeTSIG, dns.TypeIXFR, dns.TypeAXFR, dns.TypeMAILA, dns.TypeMAILB,
			dns.TypeReserved, dns.TypeANY:
		default:
			types = append(types, qtype)
		}
	}
	if len(types) < 65 {
		t.Fatalf("%d types", len(types))
	}
	for _, qtype := range types {
		denies := dnstest.Records(t, 0, "---", "test. 60 IN SOA ns.test. host.test. 1 60 60 60 60")
		r := newRig(t, denies)
		for _, wantHit := range []bool{false, true} {
			got, hit := r.exchange(dnstest.Question("a.test.", qtype), forwarder.UDP)
			if got.Rcode != 0 || len(got.Ns) != 1 || got.Question[0].Qtype != qtype || hit != wantHit {
				t.Errorf("%s: hit %v, %v", dns.Type(qtype), hit, got)
			}
		}
		if r.server.Asked() != 1 {
			t.Errorf("%s: %d questions", dns.Type(qtype), r.server.Asked())
		}
	}
}
