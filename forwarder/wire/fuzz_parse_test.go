package wire_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

// seedQueries are messages that the fuzz targets on queries start from.
func seedQueries() [][]byte {
	q := question("a.test", dns.TypeA)
	return [][]byte{
		nil,
		query("WwW.a.test", dns.TypeAAAA),
		queryOPT("a.test", dns.TypeA, 4096, true),
		join(header(rd, 1, 0, 0, 2), q, opt(1232, 0, "\x00\x0a\x00\x0812345678\x00\x03\x00\x00"), tsig()),
		join(header(rd, 1, 0, 1, 0), question("a.test", dns.TypeIXFR), record(ask, dns.TypeSOA, 1, 0, "\x00\x00"+strings.Repeat("\x00", 20))),
		join(header(rd, 1, 0, 0, 1), q, opt(512, 1<<16, "")),
		join(header(5<<11, 1, 1, 1, 1), q, a(0), a(0), opt(512, 0, "")),
		join(header(qr|rd, 1, 0, 0, 0), q),
		join(header(rd, 1, 0, 0, 0), []byte("\x01a\xc0\x0c"+inA)),
		join(header(rd, 1, 0, 0, 0), longName(255), []byte(inA), []byte("junk")),
	}
}

// FuzzParseQuery holds the parser against miekg/dns.
func FuzzParseQuery(f *testing.F) {
	for _, seed := range seedQueries() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, msg []byte) {
		if len(msg) > wire.MaxMessage {
			return
		}
		q, fault := wire.ParseQuery(msg)
		want, m := faultOf(msg)
		if fault != want {
			t.Fatalf("fault %d, want %d, for % x", fault, want, msg)
		}
		if fault == wire.Sound {
			compareQuery(t, &q, m)
		}
	})
}

// faultOf is the fault that ParseQuery should find, by what miekg/dns reads.
func faultOf(msg []byte) (wire.Fault, *dns.Msg) {
	if len(msg) < 12 || msg[2]&0x80 != 0 {
		return wire.Ignore, nil
	}
	if msg[2]>>3&15 != 0 {
		return wire.UnknownOpcode, nil
	}
	m := new(dns.Msg)
	if binary.BigEndian.Uint16(msg[4:]) != 1 || m.Unpack(msg[:12:12]) != nil {
		return wire.Malformed, nil
	}
	spots, counted := walk(msg)
	if !counted || pointerIn(msg, 12) || oddPointer(msg, spots, false) {
		return wire.Malformed, nil // difference: no pointer in a question, none ahead
	}
	qname, end, _ := dns.UnpackDomainName(msg, 12)
	m.Question = []dns.Question{{Name: qname, Qtype: binary.BigEndian.Uint16(msg[end:]), Qclass: binary.BigEndian.Uint16(msg[end+2:])}}
	opts, others := 0, 0
	for i, s := range spots {
		switch {
		case s.section == 0:
			return wire.Malformed, m
		case s.section == 1 && m.Question[0].Qtype == dns.TypeIXFR && i == 0:
			// difference: its RDATA is not read
		case s.section == 1:
			return wire.Malformed, m
		case s.hdr.Rrtype == dns.TypeOPT:
			o, ok := readOPT(msg, s)
			if !ok || opts > 0 {
				return wire.Malformed, m
			}
			opts++
			m.Extra = append(m.Extra, o)
		case (s.hdr.Rrtype == dns.TypeTSIG || s.hdr.Rrtype == dns.TypeSIG) && i == len(spots)-1:
			others++ // difference: its RDATA is not read
		default:
			return wire.Malformed, m
		}
	}
	if opts+others > 2 {
		return wire.Malformed, m
	}
	if o := m.IsEdns0(); o != nil && o.Version() != 0 {
		return wire.UnknownVersion, m
	}
	return wire.Sound, m
}

// readOPT reads an OPT with miekg/dns, its options as opaque ones: what they
// hold is no concern of a server that ignores them. More than 32 are refused.
func readOPT(msg []byte, s spot) (*dns.OPT, bool) {
	if msg[s.at] != 0 {
		return nil, false // difference: a pointer to a zero byte is no root
	}
	plain := bytes.Clone(msg[s.at:s.end])
	n := 0
	for off := 11; off+4 <= len(plain); n++ {
		binary.BigEndian.PutUint16(plain[off:], dns.EDNS0LOCALSTART)
		off += 4 + int(binary.BigEndian.Uint16(plain[off+2:]))
	}
	rr, _, err := dns.UnpackRR(plain, 0)
	if err != nil || n > 32 {
		return nil, false
	}
	o, ok := rr.(*dns.OPT)
	return o, ok
}

func pointerIn(msg []byte, off int) bool {
	for off < len(msg) && msg[off] != 0 && msg[off] < 0xC0 {
		off += 1 + int(msg[off])
	}
	return off < len(msg) && msg[off] >= 0xC0
}

func compareQuery(t *testing.T, q *wire.Query, m *dns.Msg) {
	t.Helper()
	want := m.Question[0]
	text, _, err := dns.UnpackDomainName(q.Name(), 0)
	if err != nil || text != want.Name || uint16(q.Type) != want.Qtype || uint16(q.Class) != want.Qclass {
		t.Fatalf("got %s %d %d (%v), want %v", text, q.Type, q.Class, err, want)
	}
	if q.ID != m.Id || q.RD() != m.RecursionDesired || q.AD() != m.AuthenticatedData || q.CD() != m.CheckingDisabled {
		t.Fatalf("ID %x, RD %t, AD %t, CD %t; want %s", q.ID, q.RD(), q.AD(), q.CD(), m.MsgHdr.String())
	}
	o := m.IsEdns0()
	if q.EDNS != (o != nil) {
		t.Fatalf("EDNS %t, want %v", q.EDNS, o)
	}
	size, do := uint16(512), false
	if o != nil {
		size, do = max(512, o.UDPSize()), o.Do()
	}
	if q.UDPSize != size || q.DO != do {
		t.Fatalf("size %d, DO %t; want %d, %t", q.UDPSize, q.DO, size, do)
	}
}

// FuzzParseReply holds the parser against miekg/dns.
func FuzzParseReply(f *testing.F) {
	for _, seed := range seedReplies(f) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, msg []byte) {
		r, err := wire.ParseReply(msg)
		if want := refused(msg); (err != nil) != want {
			t.Fatalf("got %v, want refused %t, for % x", err, want, msg)
		}
		if err == nil {
			compareReply(t, &r, msg)
		}
	})
}

// refused is whether ParseReply should refuse msg, by what miekg/dns reads.
func refused(msg []byte) bool {
	if len(msg) < 12 || len(msg) > 65535 || msg[2]&0x80 == 0 || binary.BigEndian.Uint16(msg[4:]) != 1 || pointerIn(msg, 12) {
		return true
	}
	if _, end, err := dns.UnpackDomainName(msg, 12); err != nil || end+4 > len(msg) {
		return true
	}
	return msg[2]&0x02 == 0 && !whole(msg) // difference: a truncated reply may break off anywhere
}

// whole is whether the records of a reply are sound.
func whole(msg []byte) bool {
	spots, counted := walk(msg)
	// Differences: counts must hold; pointers lead backwards and not into what
	// is no name.
	if !counted || oddPointer(msg, spots, true) {
		return false
	}
	opts := 0
	for _, s := range spots {
		if s.hdr.Rrtype == dns.TypeOPT {
			opts++
			if opts > 1 || s.section != 2 || msg[s.at] != 0 {
				return false // difference: miekg/dns takes OPT records anywhere
			}
		}
		// Differences: RDATA of other types is opaque to us, and that of types
		// that are not must be complete.
		if s.checked() && (s.broken || !s.complete(msg)) {
			return false
		}
	}
	return true
}

func compareReply(t *testing.T, r *wire.Reply, msg []byte) {
	t.Helper()
	rcode := int(msg[3] & 15)
	var spots []spot
	if whole(msg) {
		spots, _ = walk(msg)
	}
	qname, end, _ := dns.UnpackDomainName(msg, 12)
	text := string(wire.AppendText(nil, msg[12:end]))
	if back, _, err := dns.UnpackDomainName(msg, r.Name()); err != nil || back != qname || !dns.IsFqdn(text) {
		t.Fatalf("name %s and %s, want %s", back, text, qname)
	}
	if uint16(r.Type) != binary.BigEndian.Uint16(msg[end:]) || uint16(r.Class) != binary.BigEndian.Uint16(msg[end+2:]) {
		t.Fatalf("type %d, class %d", r.Type, r.Class)
	}
	patched := bytes.Clone(msg)
	c := r.Records()
	var rr wire.Record
	for i, s := range spots {
		if !c.Next(&rr) || rr.Owner != s.at || rr.End != s.end || rr.Data != s.fixed+10 || int(rr.Section) != s.section ||
			uint16(rr.Type) != s.hdr.Rrtype || uint16(rr.Class) != s.hdr.Class || rr.TTL != s.hdr.Ttl {
			t.Fatalf("record %d: got %+v, want %+v", i, rr, s)
		}
		if s.hdr.Rrtype == dns.TypeOPT {
			rcode |= int(s.hdr.Ttl>>24) << 4
		}
		wire.SetTTL(patched, rr.TTLAt, uint32(i)*0x01010101)
	}
	if c.Next(&rr) {
		t.Fatalf("a record too many: %+v", rr)
	}
	if int(r.RCode) != rcode {
		t.Fatalf("rcode %d, want %d", r.RCode, rcode)
	}
	// Read again, the TTLs are those that were written, and all else is as before.
	again, _ := walk(patched)
	for i, s := range spots {
		s.hdr.Ttl = uint32(i) * 0x01010101
		if i >= len(again) || again[i] != s {
			t.Fatalf("record %d after writing TTLs: got %+v, want %+v", i, again[i], s)
		}
	}
}
