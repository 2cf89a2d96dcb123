package dnstest

import (
	"net"
	"testing"

	"github.com/miekg/dns"
)

// Answer makes a server's reply to a query; nil is silence.
type Answer func(q *dns.Msg) *dns.Msg

// Question is a query with RD and a fixed ID.
func Question(name string, qtype uint16) *dns.Msg {
	m := new(dns.Msg).SetQuestion(name, qtype)
	m.Id = 99
	return m
}

// Pack is a message's bytes.
func Pack(t testing.TB, m *dns.Msg) []byte {
	t.Helper()
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Unpack is the message that bytes hold.
func Unpack(t testing.TB, b []byte) *dns.Msg {
	t.Helper()
	m := new(dns.Msg)
	if err := m.Unpack(b); err != nil {
		t.Fatalf("the message does not parse: %v", err)
	}
	return m
}

// Silent answers nothing.
func Silent(*dns.Msg) *dns.Msg { return nil }

// RCode answers with a response code and nothing else.
func RCode(code int) Answer {
	return func(q *dns.Msg) *dns.Msg { return new(dns.Msg).SetRcode(q, code) }
}

// Addresses answers with n IPv4 addresses of TTL 30, whatever the type.
func Addresses(n int) Answer {
	return func(q *dns.Msg) *dns.Msg {
		r := new(dns.Msg).SetReply(q)
		r.Compress = true
		for i := range n {
			r.Answer = append(r.Answer, &dns.A{
				Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 30},
				A:   net.IP{10, 0, byte(i >> 8), byte(i)},
			})
		}
		return r
	}
}

// Records answers with a response code and records given as text, where "---"
// moves on to the next section.
func Records(t testing.TB, code int, records ...string) Answer {
	return func(q *dns.Msg) *dns.Msg {
		r := new(dns.Msg).SetRcode(q, code)
		r.Compress = true
		section := []*[]dns.RR{&r.Answer, &r.Ns, &r.Extra}
		for _, text := range records {
			if text == "---" {
				section = section[1:]
				continue
			}
			*section[0] = append(*section[0], Record(t, text))
		}
		return r
	}
}

// Record is a resource record given as text, with a TTL of 3600 without one.
func Record(t testing.TB, text string) dns.RR {
	rr, err := dns.NewRR(text)
	if err != nil {
		t.Errorf("%q is no record: %v", text, err)
	}
	return rr
}

// Extended is the extended error code of a reply; ok is false without one.
func Extended(m *dns.Msg) (code uint16, ok bool) {
	opt := m.IsEdns0()
	if opt == nil {
		return 0, false
	}
	for _, o := range opt.Option {
		if ede, is := o.(*dns.EDNS0_EDE); is {
			return ede.InfoCode, true
		}
	}
	return 0, false
}
