package wire_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

// spot is a record as miekg/dns walks over it.
type spot struct {
	at, fixed, end int // offsets of the owner, the fixed fields, after the RDATA
	section        int
	hdr            dns.RR_Header
	broken         bool // its RDATA, of a type that is checked, cannot be read
}

// walk reads the records of msg with miekg/dns, one after the other, until one
// is cut off; counted tells whether all that the header counts are there.
func walk(msg []byte) (spots []spot, counted bool) {
	off := 12
	for range binary.BigEndian.Uint16(msg[4:]) {
		_, next, err := dns.UnpackDomainName(msg, off)
		if err != nil || next+4 > len(msg) {
			return nil, false
		}
		off = next + 4
	}
	for section := range 3 {
		for range binary.BigEndian.Uint16(msg[6+2*section:]) {
			name, fixed, err := dns.UnpackDomainName(msg, off)
			if err != nil || fixed+10 > len(msg) {
				return spots, false
			}
			h := dns.RR_Header{
				Name: name, Rrtype: binary.BigEndian.Uint16(msg[fixed:]), Class: binary.BigEndian.Uint16(msg[fixed+2:]),
				Ttl: binary.BigEndian.Uint32(msg[fixed+4:]), Rdlength: binary.BigEndian.Uint16(msg[fixed+8:]),
			}
			end := fixed + 10 + int(h.Rdlength)
			if end > len(msg) {
				return spots, false
			}
			s := spot{at: off, fixed: fixed, end: end, section: section, hdr: h}
			if s.checked() {
				_, _, err = dns.UnpackRR(msg, off)
				s.broken = err != nil
			}
			spots = append(spots, s)
			off = end
		}
	}
	return spots, true
}

// checked is whether our parser looks into RDATA of this type.
func (s spot) checked() bool {
	switch s.hdr.Rrtype {
	case dns.TypeA:
		return s.hdr.Class == dns.ClassINET
	case dns.TypeAAAA, dns.TypeNS, dns.TypeCNAME, dns.TypePTR, dns.TypeDNAME, dns.TypeMX, dns.TypeSRV, dns.TypeSOA:
		return true
	}
	return false
}

// names are the offsets of the names in the record that our parser reads.
func (s spot) names(msg []byte) []int {
	data := s.fixed + 10
	switch s.hdr.Rrtype {
	case dns.TypeNS, dns.TypeCNAME, dns.TypePTR, dns.TypeDNAME:
		return []int{s.at, data}
	case dns.TypeMX:
		return []int{s.at, data + 2}
	case dns.TypeSRV:
		return []int{s.at, data + 6}
	case dns.TypeSOA:
		if _, rname, err := dns.UnpackDomainName(msg[:s.end], data); err == nil {
			return []int{s.at, data, rname}
		}
		return []int{s.at, data}
	}
	return []int{s.at}
}

// complete is whether the RDATA of a checked type has all its fields: miekg/dns
// takes RDATA that ends between two of them, or none at all, as updates do.
func (s spot) complete(msg []byte) bool {
	names, tail := s.names(msg), 0
	switch s.hdr.Rrtype {
	case dns.TypeA, dns.TypeAAAA:
		return s.hdr.Rdlength > 0
	case dns.TypeSOA:
		tail = 20
		if len(names) < 3 {
			return false
		}
	}
	_, end, err := dns.UnpackDomainName(msg[:s.end], names[len(names)-1])
	return err == nil && end+tail == s.end
}

// oddPointer is a slow reading of the rules on pointers that are ours alone: it
// reports whether a name in one of the records breaks one. In queries only owners
// matter, and nothing is changed later.
func oddPointer(msg []byte, spots []spot, isReply bool) bool {
	solid := make([]bool, len(msg)+1)
	steps := 0
	for _, s := range spots {
		end := s.fixed + 10
		if s.hdr.Rrtype == dns.TypeA || s.hdr.Rrtype == dns.TypeAAAA {
			end = s.end
		}
		names := s.names(msg)
		if oddName(msg, names[0], solid, &steps) {
			return true
		}
		if !isReply {
			continue
		}
		for i := s.fixed; i < end; i++ {
			solid[i] = true
		}
		for _, at := range names[1:] {
			if oddName(msg, at, solid, &steps) {
				return true
			}
		}
	}
	return steps > wire.MaxExpansion
}

func oddName(msg []byte, at int, solid []bool, steps *int) bool {
	jumped := false
	limit := len(msg)
	for start, off := at, at; off < len(msg); {
		*steps++
		n, width := int(msg[off]), 1
		switch {
		case n >= 0xC0:
			width = 2
		case n > 0:
			width = 1 + n
		}
		for i := off; jumped && i < off+width && i < len(msg); i++ {
			if solid[i] {
				return true
			}
		}
		if n == 0 {
			return off+1 > limit
		}
		if n >= 0xC0 && off+1 >= len(msg) {
			return false
		}
		off += width
		if off > limit {
			return true
		}
		if n >= 0xC0 {
			to := (n&0x3F)<<8 | int(msg[off-1])
			if to < 12 || to >= start {
				return true
			}
			limit, off, start, jumped = start, to, to, true
		}
	}
	return false
}

// seedReplies are replies that every fuzz target on replies starts from.
func seedReplies(t testing.TB) [][]byte {
	many := []string{}
	for range 40 {
		many = append(many, "svc.ns.test. 30 A 192.0.2.1")
	}
	withOPT := reply(t, "a.test.", dns.TypeA, "a.test. 60 A 192.0.2.1", "a.test. 60 RRSIG A 8 2 60 20300101000000 20200101000000 1 test. AAAA")
	withOPT.SetEdns0(1232, true)
	withOPT.AuthenticatedData = true
	negative := reply(t, "x.test.", dns.TypeAAAA, "--", "test. 300 SOA ns.test. root.test. 1 2 3 4 5")
	negative.Rcode = dns.RcodeNameError
	messages := []*dns.Msg{
		withOPT, negative,
		reply(t, "svc.ns.test.", dns.TypeA, many...),
		reply(t, "www.test.", dns.TypeA, "www.test. 300 CNAME a.test.", "a.test. 10 A 192.0.2.1", "a.test. 10 A 192.0.2.2"),
		reply(t, "_x._tcp.test.", dns.TypeSRV, "_x._tcp.test. 5 SRV 0 0 53 a.test.", "--", "--", "a.test. 5 A 192.0.2.1", "a.test. 5 AAAA 2001:db8::1"),
		reply(t, "test.", dns.TypeMX, "test. 5 MX 10 mail.test.", "--", "test. 5 NS ns.test.", "--", "mail.test. 5 A 192.0.2.1"),
		reply(t, "4.3.2.1.in-addr.arpa.", dns.TypePTR, "4.3.2.1.in-addr.arpa. 5 PTR a.test."),
		reply(t, "a.d.test.", dns.TypeA, "d.test. 5 DNAME e.test.", "a.d.test. 5 CNAME a.e.test.", "a.e.test. 5 A 192.0.2.1"),
		reply(t, "t.test.", dns.TypeTXT, `t.test. 5 TXT "`+strings.Repeat("x", 250)+`" "`+strings.Repeat("y", 250)+`"`),
		reply(t, "h.test.", dns.TypeHTTPS, `h.test. 5 HTTPS 1 . alpn="h2" ipv4hint="192.0.2.1"`),
	}
	seeds := [][]byte{
		answerTo(tc, 2, 0, 1, a(300), a(300)[:9]),
		answerTo(0, 1, 0, 2, a(300), opt(1232, 0, ""), tsig()),
		answerTo(0, 2, 0, 0, a(0), record("\xc0\x1e", dns.TypeA, 1, 0, "abcd")),
		answerTo(0, 1, 0, 0, record("\xc0\x18", dns.TypeA, 1, 0, "abcd")),
		header(qr, 0, 0, 0, 0),
	}
	for _, m := range messages {
		seeds = append(seeds, packed(t, m))
	}
	return seeds
}
