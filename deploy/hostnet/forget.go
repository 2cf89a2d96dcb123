package hostnet

import (
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// forget deletes the tracked connections from own addresses to what is no target of
// s: a client that keeps its source port would stay with it. TCP connections that
// were established may finish where they are.
func (h *Host) forget(s State) (int, error) {
	deleted := 0
	for _, f := range families() {
		own := f.addrs(s.Own)
		if len(own) == 0 {
			continue
		}
		former := former{own: own, port: s.Port, udp: s.Fallback.UDP, tcp: s.Fallback.TCP}
		n, err := h.nl.ConntrackDeleteFilters(netlink.ConntrackTable, netlink.InetFamily(f.af), former)
		deleted += int(n)
		if err != nil {
			return deleted, explained("tracked connections to former targets cannot be deleted", err)
		}
	}
	return deleted, nil
}

// former matches connections from own addresses to what is no target any more.
type former struct {
	own      []netip.Addr
	port     uint16
	udp, tcp []netip.AddrPort
}

// MatchConntrackFlow implements netlink.CustomConntrackFilter.
func (o former) MatchConntrackFlow(flow *netlink.ConntrackFlow) bool {
	asked, _ := netip.AddrFromSlice(flow.Forward.DstIP)
	if flow.Forward.DstPort != o.port || flow.Zone == zone || !slices.Contains(o.own, asked.Unmap()) {
		return false
	}
	answers, _ := netip.AddrFromSlice(flow.Reverse.SrcIP)
	target := netip.AddrPortFrom(answers.Unmap(), flow.Reverse.SrcPort)
	switch flow.Forward.Protocol {
	case unix.IPPROTO_UDP:
		return !slices.Contains(o.udp, target)
	case unix.IPPROTO_TCP:
		return !slices.Contains(o.tcp, target) && opening(flow)
	}
	return false
}

// opening tells whether a TCP connection still waits for its first answer.
func opening(flow *netlink.ConntrackFlow) bool {
	const synSent = 1 // TCP_CONNTRACK_SYN_SENT
	info, ok := flow.ProtoInfo.(*netlink.ProtoInfoTCP)
	return ok && info.State == synSent
}
