package hostnet

import (
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// answerTime is how long a target may take for its part of a TCP handshake that began
// before the table changed. The handshake must not be forgotten while it is answered:
// its next packet would go to another target, which refuses it.
const answerTime = 100 * time.Millisecond

// forget deletes the TCP handshakes from own addresses with what is no target of s, so
// that the client's next try reaches one. Connections that were established may finish
// where they are. UDP needs no deletion, in which answers on their way would be lost: its
// queries are tracked in a zone of the targets.
func (h *Host) forget(s State) (int, error) {
	former := former{own: s.Own, port: s.Port, tcp: s.Fallback.TCP}
	const failed = "handshakes with former targets cannot be deleted"
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

// former matches handshakes from own addresses with what is no target any more.
type former struct {
	own  []netip.Addr
	port uint16
	tcp  []netip.AddrPort
}

// families are those of the own addresses.
func (o former) families() []family {
	return slices.DeleteFunc(families(), func(f family) bool { return len(f.addrs(o.own)) == 0 })
}

// MatchConntrackFlow implements netlink.CustomConntrackFilter.
func (o former) MatchConntrackFlow(flow *netlink.ConntrackFlow) bool {
	if flow.Forward.Protocol != unix.IPPROTO_TCP || flow.Forward.DstPort != o.port || !opening(flow) {
		return false
	}
	asked, _ := netip.AddrFromSlice(flow.Forward.DstIP)
	answers, _ := netip.AddrFromSlice(flow.Reverse.SrcIP)
	target := netip.AddrPortFrom(answers.Unmap(), flow.Reverse.SrcPort)
	return slices.Contains(o.own, asked.Unmap()) && !slices.Contains(o.tcp, target)
}

// opening tells whether a TCP connection still waits for its first answer.
func opening(flow *netlink.ConntrackFlow) bool {
	const synSent = 1 // TCP_CONNTRACK_SYN_SENT
	info, ok := flow.ProtoInfo.(*netlink.ProtoInfoTCP)
	return ok && info.State == synSent
}
