package rules

import (
	"bytes"
	"context"
	"net/netip"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

// reverse asks for the names of an address. One that was made is an alias of the
// IPv4 address in it, whose names are asked for (RFC 6147 section 5.3.1).
func (d *dns64) reverse(ctx context.Context, g Group, dst []byte, q *wire.Query) (wire.Reply, error) {
	ip, ok := d.extract(q.Name())
	if !ok {
		return g.Exchange(ctx, dst, q)
	}
	target, err := dns.ReverseAddr(ip.String())
	if err != nil {
		return g.Exchange(ctx, dst, q)
	}
	name, _ := wire.AppendName(nil, target)
	old, err := asked(q, name, wire.TypePTR)
	if err != nil {
		return wire.Reply{}, err
	}
	v4, err := g.Exchange(ctx, dst, &old)
	if err != nil {
		return v4, err
	}
	var m dns.Msg
	if err := m.Unpack(v4.Msg); err != nil {
		return wire.Reply{}, err
	}
	m.Question[0].Name = string(wire.AppendText(nil, q.Name()))
	if m.Rcode == dns.RcodeSuccess || m.Rcode == dns.RcodeNameError {
		head := dns.RR_Header{Name: m.Question[0].Name, Rrtype: dns.TypeCNAME, Class: dns.ClassINET, Ttl: withoutSOA}
		m.Answer = append([]dns.RR{&dns.CNAME{Hdr: head, Target: target}}, m.Answer...)
	}
	m.AuthenticatedData = false
	return packed(&m, &v4)
}

// extract is the IPv4 address in one that was made, by its name for asking
// backwards: a label for each half byte, the last first (RFC 3596 section 2.5).
func (d *dns64) extract(name []byte) (netip.Addr, bool) {
	const digits, end = 32, "\x03ip6\x04arpa\x00"
	var buf [wire.MaxName]byte
	name = wire.AppendFolded(buf[:0], name)
	if len(name) != 2*digits+len(end) || string(name[2*digits:]) != end {
		return netip.Addr{}, false
	}
	var a [16]byte
	for i := range digits {
		value := bytes.IndexByte([]byte("0123456789abcdef"), name[2*i+1])
		if name[2*i] != 1 || value < 0 {
			return netip.Addr{}, false
		}
		a[15-i/2] |= byte(value) << (4 * (i % 2))
	}
	if !d.prefix.Contains(netip.AddrFrom16(a)) {
		return netip.Addr{}, false
	}
	var v4 [4]byte
	at := d.prefix.Bits() / 8
	for i := range v4 {
		if at == 8 {
			at++
		}
		v4[i] = a[at]
		at++
	}
	return netip.AddrFrom4(v4), true
}
