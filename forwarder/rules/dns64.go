package rules

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

// dns64 makes IPv6 addresses of IPv4 ones, for clients that reach the IPv4 world
// through a translator (RFC 6147).
type dns64 struct {
	prefix netip.Prefix
	all    bool
	// known says that the prefix is the one of all networks, which stands for
	// addresses of the Internet only (RFC 6052 section 3.1).
	known bool
}

// without is the TTL of what is made when nobody says how long the absence of
// IPv6 addresses holds, in seconds (RFC 6147 section 5.1.7).
const withoutSOA = 600

func newDNS64(prefix netip.Prefix, all bool) (*dns64, error) {
	switch prefix.Bits() {
	case 32, 40, 48, 56, 64, 96:
	default:
		return nil, fmt.Errorf("dns64: prefix %s has %d bits; choose 32, 40, 48, 56, 64 or 96", prefix, prefix.Bits())
	}
	a := prefix.Masked().Addr().As16()
	if !prefix.Addr().Is6() || a[8] != 0 {
		return nil, fmt.Errorf("dns64: prefix %s is not one of IPv6 with bits 64 to 71 zero; write such as 64:ff9b::/96", prefix)
	}
	return &dns64{prefix: prefix.Masked(), all: all, known: prefix.Masked() == netip.MustParsePrefix("64:ff9b::/96")}, nil
}

// silentA is how long servers that did not answer for IPv6 addresses may take to
// answer for IPv4 ones: the client has waited for the whole budget already.
const silentA = time.Second

// exchange asks q's question. A client that checks signatures itself gets what
// the servers say (RFC 6147 section 5.5).
func (d *dns64) exchange(ctx context.Context, g Group, dst []byte, q *wire.Query) (wire.Reply, error) {
	switch {
	case q.Class != wire.ClassIN || q.DO && q.CD():
	case q.Type == wire.TypePTR:
		return d.reverse(ctx, g, dst, q)
	case q.Type == wire.TypeAAAA:
		return d.forward(ctx, g, dst, q)
	}
	return g.Exchange(ctx, dst, q)
}

// forward asks for IPv6 addresses, and makes some where there are none. No answer
// is as good as a failure, which is as good as none (RFC 6147 sections 5.1.2 and
// 5.1.3).
func (d *dns64) forward(ctx context.Context, g Group, dst []byte, q *wire.Query) (wire.Reply, error) {
	reply, err := g.Exchange(ctx, dst, q)
	if err != nil {
		soon, cancel := context.WithTimeout(ctx, silentA)
		defer cancel()
		if made, ok := d.fromIPv4(soon, g, q, withoutSOA); ok {
			return made, nil
		}
		return reply, err
	}
	if reply.TC || reply.RCode == wire.NXDomain {
		return reply, nil
	}
	usable, mapped := count(&reply)
	switch {
	case d.all, usable == 0:
	case mapped == 0:
		return reply, nil
	default:
		return unmapped(&reply)
	}
	if made, ok := d.fromIPv4(ctx, g, q, absence(&reply)); ok {
		return made, nil
	}
	return reply, nil
}

// fromIPv4 asks for IPv4 addresses, and makes q's reply of them; ok is false when
// there are none.
func (d *dns64) fromIPv4(ctx context.Context, g Group, q *wire.Query, most uint32) (reply wire.Reply, ok bool) {
	old, err := asked(q, q.Name(), wire.TypeA)
	if err != nil {
		return reply, false
	}
	v4, err := g.Exchange(ctx, nil, &old)
	if err != nil || v4.TC || v4.RCode != wire.NoError {
		return reply, false
	}
	made, ok := d.make(&v4, most)
	if !ok {
		return reply, false
	}
	reply, err = packed(made, &v4)
	reply.Made = true
	return reply, err == nil
}

// absence is how long it holds that there are no IPv6 addresses, in seconds.
func absence(r *wire.Reply) uint32 {
	least := uint32(withoutSOA)
	var m dns.Msg
	if m.Unpack(r.Msg) != nil {
		return least
	}
	for _, rr := range m.Ns {
		if soa, is := rr.(*dns.SOA); is {
			least = soa.Hdr.Ttl
		}
	}
	return least
}

// count tells how many of the IPv6 addresses of a reply are of use, and how many
// only stand for an IPv4 address, ::ffff:0:0/96, which no network carries (RFC
// 6147 section 5.1.4).
func count(r *wire.Reply) (usable, mapped int) {
	var rr wire.Record
	for c := r.Records(); c.Next(&rr) && rr.Section == wire.Answer; {
		switch {
		case rr.Type != wire.TypeAAAA:
		case isMapped(r.Msg[rr.Data:rr.End]):
			mapped++
		default:
			usable++
		}
	}
	return usable, mapped
}

func isMapped(data []byte) bool {
	a, ok := netip.AddrFromSlice(data)
	return ok && a.Is4In6()
}

// unmapped is a reply without the addresses that are of no use.
func unmapped(r *wire.Reply) (wire.Reply, error) {
	var m dns.Msg
	if err := m.Unpack(r.Msg); err != nil {
		return wire.Reply{}, err
	}
	kept := m.Answer[:0]
	for _, rr := range m.Answer {
		if v6, ok := rr.(*dns.AAAA); ok && isMapped(v6.AAAA) {
			continue
		}
		kept = append(kept, rr)
	}
	m.Answer, m.AuthenticatedData = kept, false
	return packed(&m, r)
}

// make puts IPv6 addresses in place of the IPv4 ones of a reply; ok is false
// when there are none to make. They hold no longer than most seconds.
func (d *dns64) make(v4 *wire.Reply, most uint32) (made *dns.Msg, ok bool) {
	var m dns.Msg
	if m.Unpack(v4.Msg) != nil {
		return nil, false
	}
	m.Question[0].Qtype = dns.TypeAAAA
	m.AuthenticatedData, m.Ns, m.Extra = false, nil, nil
	kept := m.Answer[:0]
	for _, rr := range m.Answer {
		switch rr := rr.(type) {
		case *dns.A:
			a, fits := d.embed(rr.A)
			if !fits {
				continue
			}
			ok = true
			head := rr.Hdr
			head.Rrtype, head.Ttl = dns.TypeAAAA, min(head.Ttl, most)
			kept = append(kept, &dns.AAAA{Hdr: head, AAAA: a.AsSlice()})
		case *dns.RRSIG:
		default:
			kept = append(kept, rr)
		}
	}
	m.Answer = kept
	return &m, ok
}

// embed puts an IPv4 address behind the prefix, around the byte that is always 0
// (RFC 6052 section 2.2).
func (d *dns64) embed(v4 []byte) (netip.Addr, bool) {
	ip, ok := netip.AddrFromSlice(v4)
	ip = ip.Unmap()
	if !ok || !ip.Is4() || d.known && !global(ip) {
		return netip.Addr{}, false
	}
	out, at := d.prefix.Addr().As16(), d.prefix.Bits()/8
	for _, b := range ip.AsSlice() {
		if at == 8 {
			at++
		}
		out[at] = b
		at++
	}
	return netip.AddrFrom16(out), true
}

// global says that an address is one of the Internet.
func global(ip netip.Addr) bool {
	shared := netip.PrefixFrom(netip.AddrFrom4([4]byte{100, 64}), 10) // RFC 6598
	return ip.IsGlobalUnicast() && !ip.IsPrivate() && !shared.Contains(ip) && ip.As4()[0] != 0
}
