package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A query of a process on the node does not pass what a firewall says of packets that
// come in. So one is sent from a network namespace of the doctor's own, as a pod's
// comes, over a pair of links that is gone afterwards.

// outsideLink is the end of the pair that is on the node.
const outsideLink = "nodens-doctor"

// pair is the addresses of the two ends of the pair, of ranges for documentation, which
// nobody has.
type pair struct{ node, outside netip.Prefix }

func pairOf(at netip.Addr) pair {
	if at.Is4() {
		return pair{netip.MustParsePrefix("198.51.100.253/30"), netip.MustParsePrefix("198.51.100.254/30")}
	}
	return pair{netip.MustParsePrefix("2001:db8:90de::1/126"), netip.MustParsePrefix("2001:db8:90de::2/126")}
}

// outside compares a query from outside with one on the node.
func (v *visit) outside(ctx context.Context) {
	if !v.config.Host.guarded() {
		return
	}
	for _, at := range v.listens() {
		if at.Addr().IsLoopback() || !answersAt(ctx, asked{at, "localhost."}) {
			continue // others tell why
		}
		answered, err := fromOutside(func() bool { return answersAt(ctx, asked{at, "localhost."}) }, at.Addr())
		v.judgeOutside(at, answered, err)
	}
}

func (v *visit) judgeOutside(at netip.AddrPort, answered bool, err error) {
	suspects := ""
	if len(v.firewalls) > 0 {
		suspects = "; look at " + strings.Join(v.firewalls, ", ")
	}
	switch {
	case err != nil:
		v.find(fine, "firewall", fmt.Sprintf("whether one keeps pods from %v was not tried: %v", at, err), "run the doctor as root on the node to try it"+suspects)
	case answered:
		v.find(fine, "firewall", fmt.Sprintf("%v answers a query that comes from outside the node's own processes", at), "")
	default:
		v.find(bad, "firewall", fmt.Sprintf("%v answers on the node, but not a query that comes from outside: pods have no DNS", at), admit(at, v.firewalls)+suspects)
	}
}

// admit is what lets queries in.
func admit(at netip.AddrPort, firewalls []string) string {
	program, family := "iptables", "ipv4"
	if at.Addr().Is6() {
		program, family = "ip6tables", "ipv6"
	}
	all := strings.Join(firewalls, " ")
	switch {
	case strings.Contains(all, "firewalld"):
		return fmt.Sprintf(`firewall-cmd --permanent --add-rich-rule='rule family="%s" destination address="%v" service name="dns" accept' && firewall-cmd --reload`, family, at.Addr())
	case strings.Contains(all, "ufw"):
		return fmt.Sprintf("ufw allow to %v port %d", at.Addr(), at.Port())
	case strings.Contains(all, "Calico"):
		return "set defaultEndpointToHostAction of Calico's FelixConfiguration to Accept or Return, or allow it in a host endpoint policy"
	}
	return fmt.Sprintf("%[1]s -I INPUT -p udp -d %[2]v --dport %[3]d -j ACCEPT; %[1]s -I INPUT -p tcp -d %[2]v --dport %[3]d -j ACCEPT", program, at.Addr(), at.Port())
}

// fromOutside calls ask in a network namespace from which the node is reached at an
// address.
func fromOutside(ask func() bool, at netip.Addr) (answered bool, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread and its namespace end here
		answered, err = leave(ask, at)
	}()
	<-done
	return answered, err
}

// leave takes the thread of the caller to a namespace of its own and asks there.
func leave(ask func() bool, at netip.Addr) (answered bool, err error) {
	node, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return false, err
	}
	defer node.Close()
	onNode, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return false, err
	}
	defer onNode.Close()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return false, fmt.Errorf("no network namespace can be made: %w", err)
	}
	outside, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return false, err
	}
	defer outside.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "eth0"
	if err := outside.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: outsideLink, PeerNamespace: netlink.NsFd(node.Fd())}); err != nil {
		return false, fmt.Errorf("no pair of links can be made: %w", err)
	}
	defer func() {
		if link, found := outside.LinkByName("eth0"); found == nil {
			err = errors.Join(err, outside.LinkDel(link))
		}
	}()
	ends := pairOf(at)
	if err := errors.Join(raise(onNode, outsideLink, ends.node), raise(outside, "eth0", ends.outside), leadTo(outside, ends.node.Addr())); err != nil {
		return false, err
	}
	return ask(), nil
}

// raise gives a link its address and sets it up.
func raise(nl *netlink.Handle, name string, at netip.Prefix) error {
	link, err := nl.LinkByName(name)
	if err != nil {
		return err
	}
	mask := net.CIDRMask(at.Bits(), at.Addr().BitLen())
	address := &netlink.Addr{IPNet: &net.IPNet{IP: at.Addr().AsSlice(), Mask: mask}}
	if at.Addr().Is6() {
		address.Flags = unix.IFA_F_NODAD
	}
	return errors.Join(nl.AddrAdd(link, address), nl.LinkSetUp(link))
}

// leadTo sends everything to the node.
func leadTo(nl *netlink.Handle, node netip.Addr) error {
	link, err := nl.LinkByName("eth0")
	if err != nil {
		return err
	}
	return nl.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: node.AsSlice()})
}
