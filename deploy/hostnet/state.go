package hostnet

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Mode is how clients reach us.
type Mode uint8

const (
	// None wants nothing of the host: no link, no table.
	None Mode = iota
	// LinkLocal listens on addresses of our own, which the kubelet hands to pods.
	LinkLocal
	// Service listens on the cluster addresses of the DNS Service as well. Where no
	// socket of ours takes a packet for them, kube-proxy does what it always did.
	Service
)

func (m Mode) String() string {
	switch m {
	case None:
		return "none"
	case LinkLocal:
		return "link-local"
	case Service:
		return "service"
	}
	return fmt.Sprintf("mode %d", uint8(m))
}

// The defaults of a State.
const (
	DefaultLink = "nodens"
	DefaultPort = 53
)

// MaxTargets is how many targets a fallback uses per protocol and family.
const MaxTargets = 16

// State is what the host should look like. It is a plain value: the order of its
// lists does not matter, except that of the targets, which decides who gets which
// client.
type State struct {
	// Mode says how clients reach us. Default: None.
	Mode Mode
	// Link names the link that holds the addresses, 1 to 15 bytes. Default: DefaultLink.
	Link string
	// Own lists the addresses that only we use. Neither IPv6 link-local nor loopback.
	Own []netip.Addr
	// Service lists the cluster addresses of the DNS Service, in Service mode only.
	Service []netip.Addr
	// Port is where we listen, UDP and TCP. Default: DefaultPort.
	Port uint16
	// Tracked keeps connection tracking on for UDP, for policy engines that drop what
	// they see no connection for. Default: off, a query costs no entry.
	Tracked bool
	// Fallback is who answers for the own addresses while no socket of ours does.
	Fallback Fallback
	// Exempt tells our own upstream packets: they are never brought back to us.
	Exempt Exempt
	// ProbeMark is the packet mark of a local probe, which reaches the socket whatever
	// the sets say. 0: no probe has that right.
	ProbeMark uint32
}

// Fallback lists servers per protocol, of both families: addresses of pods, never
// of a Service, because a packet is translated once per hook. Per family the first
// MaxTargets are used. Nearest makes such lists.
type Fallback struct {
	UDP []netip.AddrPort
	TCP []netip.AddrPort
}

// Exempt tells packets born on this node by who sent them.
type Exempt struct {
	// UIDs lists users whose sockets are exempt. Not 0 where anything else runs as root.
	UIDs []uint32
	// Marks lists packet marks that are exempt.
	Marks []uint32
}

// filled returns s with defaults in place, its lists sorted, families apart from
// v4-in-v6 forms, and what its mode has no use for removed.
func (s State) filled() State {
	if s.Link == "" {
		s.Link = DefaultLink
	}
	if s.Port == 0 {
		s.Port = DefaultPort
	}
	s.Own, s.Service = sorted(s.Own), sorted(s.Service)
	s.Fallback.UDP, s.Fallback.TCP = unmapped(s.Fallback.UDP), unmapped(s.Fallback.TCP)
	if s.Mode != Service {
		s.Service = nil
	}
	if s.Mode == None {
		s.Own = nil
	}
	return s
}

// listen returns every address we listen on, sorted.
func (s State) listen() []netip.Addr {
	return sorted(slices.Concat(s.Own, s.Service))
}

// ProbeSource is the address that a probe over TCP has to come from to reach an address
// of a Service: any other connection from here to it is led to an own address, beside
// kube-proxy's rules. Not valid: there is none.
func (s State) ProbeSource(service netip.Addr) netip.Addr {
	for _, a := range sorted(s.Own) {
		if s.ProbeMark != 0 && a.Is4() == service.Unmap().Is4() {
			return a
		}
	}
	return netip.Addr{}
}

// Validate returns every mistake in s, or nil.
func (s State) Validate() error {
	s = s.filled()
	var errs []error
	if s.Mode > Service {
		errs = append(errs, fmt.Errorf("%v is unknown: use link-local, service or none", s.Mode))
	}
	if len(s.Link) > 15 || strings.ContainsAny(s.Link, "/:% \t\n") || s.Link == "." || s.Link == ".." {
		errs = append(errs, fmt.Errorf("link name %q: the kernel takes 1 to 15 bytes without blanks, slashes, colons and percent signs, and no dots alone", s.Link))
	}
	if s.Mode != None && len(s.listen()) == 0 {
		errs = append(errs, fmt.Errorf("mode %v without a listen address: name one", s.Mode))
	}
	for _, a := range s.listen() {
		if reason := unfitListen(a); reason != "" {
			errs = append(errs, fmt.Errorf("listen address %v is %s: choose another", a, reason))
		}
	}
	for _, t := range slices.Concat(s.Fallback.UDP, s.Fallback.TCP) {
		if reason := unfitTarget(t, s.listen()); reason != "" {
			errs = append(errs, fmt.Errorf("fallback target %v is %s: leave it out", t, reason))
		}
	}
	return errors.Join(errs...)
}

func unfitListen(a netip.Addr) string {
	switch {
	case !a.IsValid() || a.IsUnspecified():
		return "no address"
	case a.IsMulticast():
		return "multicast"
	case a.IsLoopback():
		return "loopback, which pods cannot reach"
	case a.Is6() && a.IsLinkLocalUnicast():
		return "IPv6 link-local, which needs a zone in every resolv.conf"
	}
	return ""
}

// unfitTarget says why packets may not be sent to t, or "".
func unfitTarget(t netip.AddrPort, own []netip.Addr) string {
	a := t.Addr().Unmap()
	switch {
	case !a.IsValid() || a.IsUnspecified():
		return "no address"
	case t.Port() == 0:
		return "without a port"
	case a.IsMulticast():
		return "multicast"
	case a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "broadcast"
	case a.IsLoopback():
		return "loopback"
	case a.IsLinkLocalUnicast():
		return "link-local"
	case slices.Contains(own, a):
		return "an address of ours"
	}
	return ""
}

func sorted(addrs []netip.Addr) []netip.Addr {
	out := make([]netip.Addr, 0, len(addrs))
	for _, a := range addrs {
		out = append(out, a.Unmap())
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}

func unmapped(targets []netip.AddrPort) []netip.AddrPort {
	out := make([]netip.AddrPort, 0, len(targets))
	for _, t := range targets {
		out = append(out, netip.AddrPortFrom(t.Addr().Unmap(), t.Port()))
	}
	return out
}
