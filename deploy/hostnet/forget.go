package hostnet

import (
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// answerTime is how long a target may take to answer what it was sent before the
// table changed. An entry must not be forgotten while it is answered: the answer of
// UDP would not find its way back, and the next packet of a TCP handshake would go to
// another target, which refuses it.
const answerTime = 100 * time.Millisecond

// forget deletes the tracked connections from own addresses to what is no target of
// s: a client that keeps its source port would stay with it. TCP connections that
// were established may finish where they are. The table that is in force makes no
// such connections, so after a while those that are left wait for nothing that will
// come.
func (h *Host) forget(s State) (int, error) {
	former := former{own: s.Own, port: s.Port, udp: s.Fallback.UDP, tcp: s.Fallback.TCP}
	const failed = "tracked connections to former targets cannot be deleted"
	any, err := h.anyFlow(former)
	if err != nil || !any {
		return 0, explained(failed, err)
	}
	time.Sleep(answerTime)
	deleted := 0
	for _, f := range former.families() {
		n, err := h.nl.ConntrackDeleteFilters(netlink.ConntrackTable, netlink.InetFamily(f.af), former)
		deleted += int(n)
		if err != nil {
			return deleted, explained(failed, err)
		}
	}
	return deleted, nil
}

// anyFlow tells whether there is a connection to forget.
func (h *Host) anyFlow(former former) (bool, error) {
	for _, f := range former.families() {
		flows, err := h.nl.ConntrackTableList(netlink.ConntrackTable, netlink.InetFamily(f.af))
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(flows, former.MatchConntrackFlow) {
			return true, nil
		}
	}
	return false, nil
}

// former matches connections from own addresses to what is no target any more.
type former struct {
	own      []netip.Addr
	port     uint16
	udp, tcp []netip.AddrPort
}

// families are those of the own addresses.
func (o former) families() []family {
	return slices.DeleteFunc(families(), func(f family) bool { return len(f.addrs(o.own)) == 0 })
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
