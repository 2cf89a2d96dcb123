package wire_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// Bits of the header's flags.
const (
	qr = 1 << 15
	aa = 1 << 10
	tc = 1 << 9
	rd = 1 << 8
	ra = 1 << 7
	z  = 1 << 6
	ad = 1 << 5
	cd = 1 << 4
)

// ask is the offset of the question's name, as a compression pointer.
const ask = "\xc0\x0c"

// join puts the pieces of a message together.
func join(parts ...[]byte) []byte {
	var msg []byte
	for _, p := range parts {
		msg = append(msg, p...)
	}
	return msg
}

// header is a message header with ID 0xABCD.
func header(flags, qd, an, ns, ar uint16) []byte {
	b := []byte{0xAB, 0xCD}
	for _, v := range []uint16{flags, qd, an, ns, ar} {
		b = binary.BigEndian.AppendUint16(b, v)
	}
	return b
}

// name is the wire form of a plain name.
func name(text string) []byte {
	var b []byte
	for label := range strings.SplitSeq(strings.TrimSuffix(text, "."), ".") {
		if label != "" {
			b = append(append(b, byte(len(label))), label...)
		}
	}
	return append(b, 0)
}

// question is a question of class IN.
func question(text string, qtype uint16) []byte {
	return join(name(text), binary.BigEndian.AppendUint16(nil, qtype), []byte{0, 1})
}

// record is a resource record; owner is in wire form.
func record(owner string, rrtype, class uint16, ttl uint32, data string) []byte {
	b := binary.BigEndian.AppendUint16([]byte(owner), rrtype)
	b = binary.BigEndian.AppendUint16(b, class)
	b = binary.BigEndian.AppendUint32(b, ttl)
	b = binary.BigEndian.AppendUint16(b, uint16(len(data)))
	return append(b, data...)
}

// opt is an OPT record owned by the root.
func opt(size uint16, ttl uint32, data string) []byte {
	return record("\x00", dns.TypeOPT, size, ttl, data)
}

// a is an A record of the question's name.
func a(ttl uint32) []byte {
	return record(ask, dns.TypeA, dns.ClassINET, ttl, "\xc0\x00\x02\x01")
}

// tsig is a TSIG record.
func tsig() []byte {
	data := string(name("hmac-sha256")) + "\x00\x00\x60\x00\x00\x00\x01\x2c\x00\x00\xab\xcd\x00\x00\x00\x00"
	return record(string(name("key")), dns.TypeTSIG, dns.ClassANY, 0, data)
}

// parsed is what miekg/dns makes of msg; the test fails when it cannot read it.
func parsed(t testing.TB, msg []byte) *dns.Msg {
	t.Helper()
	m := new(dns.Msg)
	if err := m.Unpack(msg); err != nil {
		t.Fatalf("unpack % x: %v", msg, err)
	}
	return m
}

// packed is m as bytes, compressed.
func packed(t testing.TB, m *dns.Msg) []byte {
	t.Helper()
	m.Compress = true
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// reply is a reply with the records given as text, answers first; "--" starts
// the next section.
func reply(t testing.TB, qname string, qtype uint16, records ...string) *dns.Msg {
	t.Helper()
	m := new(dns.Msg)
	m.SetQuestion(qname, qtype)
	m.Response, m.RecursionAvailable = true, true
	sections := []*[]dns.RR{&m.Answer, &m.Ns, &m.Extra}
	for _, text := range records {
		if text == "--" {
			sections = sections[1:]
			continue
		}
		rr, err := dns.NewRR(text)
		if err != nil {
			t.Fatal(err)
		}
		*sections[0] = append(*sections[0], rr)
	}
	return m
}

// query is a plain query as a stub resolver sends it.
func query(text string, qtype uint16) []byte {
	return join(header(rd, 1, 0, 0, 0), question(text, qtype))
}

// queryOPT is a query with an OPT record.
func queryOPT(text string, qtype, size uint16, do bool) []byte {
	var ttl uint32
	if do {
		ttl = 1 << 15
	}
	return join(header(rd, 1, 0, 0, 1), question(text, qtype), opt(size, ttl, ""))
}
