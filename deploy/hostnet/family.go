package hostnet

import (
	"net/netip"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"
)

// family is what differs between IPv4 and IPv6 in a rule.
type family struct {
	digit   string // ends the names of what exists once per family
	ip      string // as nft spells it
	nfproto byte
	af      uint8
	bits    int
	src     uint32 // offset of the source address in the network header
	dst     uint32
	icmp    byte // protocol number
	icmpIs  string
	typ     nftables.SetDatatype
}

func ipv4() family {
	return family{
		digit: "4", ip: "ip", nfproto: unix.NFPROTO_IPV4, af: unix.AF_INET, bits: 32, src: 12, dst: 16,
		icmp: unix.IPPROTO_ICMP, icmpIs: "icmp", typ: nftables.TypeIPAddr,
	}
}

func ipv6() family {
	return family{
		digit: "6", ip: "ip6", nfproto: unix.NFPROTO_IPV6, af: unix.AF_INET6, bits: 128, src: 8, dst: 24,
		icmp: unix.IPPROTO_ICMPV6, icmpIs: "icmpv6", typ: nftables.TypeIP6Addr,
	}
}

func families() []family { return []family{ipv4(), ipv6()} }

func (f family) size() uint32 { return uint32(f.bits / 8) }

// holds tells whether a is of the family; v4-in-v6 forms are IPv6 here.
func (f family) holds(a netip.Addr) bool { return a.IsValid() && a.BitLen() == f.bits }

func (f family) addrs(all []netip.Addr) []netip.Addr {
	var out []netip.Addr
	for _, a := range all {
		if f.holds(a) {
			out = append(out, a)
		}
	}
	return out
}

// targets returns the first MaxTargets of the family.
func (f family) targets(all []netip.AddrPort) []netip.AddrPort {
	var out []netip.AddrPort
	for _, t := range all {
		if f.holds(t.Addr()) && len(out) < MaxTargets {
			out = append(out, t)
		}
	}
	return out
}

// proto is what differs between UDP and TCP in a rule.
type proto struct {
	name   string
	number byte
}

func udp() proto { return proto{name: "udp", number: unix.IPPROTO_UDP} }
func tcp() proto { return proto{name: "tcp", number: unix.IPPROTO_TCP} }
