package main

import (
	"net"
	"net/netip"
	"slices"
)

// unusable says why no server can be at address, or nothing when one can.
func unusable(address netip.AddrPort) string {
	switch ip := address.Addr(); {
	case ip.IsUnspecified():
		return "which stands for every address"
	case ip.IsMulticast(), ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "which is a group of hosts"
	case address.Port() == 0:
		return "which has no port"
	}
	return ""
}

// ownListen is the listen address that a query sent to server would arrive at.
// own are the addresses of this machine's interfaces.
func ownListen(listen []netip.AddrPort, server netip.AddrPort, own []netip.Addr) (netip.AddrPort, bool) {
	for _, l := range listen {
		if covers(l, server, own) {
			return l, true
		}
	}
	return netip.AddrPort{}, false
}

// covers tells whether listening at listen takes what is sent to address. A
// wildcard takes what is sent to any address of the machine; an IPv6 one takes
// IPv6 only.
func covers(listen, address netip.AddrPort, own []netip.Addr) bool {
	if listen.Port() != address.Port() || listen.Port() == 0 { // port 0 will be any
		return false
	}
	if listen.Addr() == address.Addr() {
		return true
	}
	return listen.Addr().IsUnspecified() &&
		listen.Addr().Is4() == address.Addr().Is4() &&
		(address.Addr().IsUnspecified() || address.Addr().IsLoopback() || slices.Contains(own, address.Addr()))
}

// ownPorts are the listen addresses, a wildcard as what it stands for on this
// machine.
func ownPorts(listen []netip.AddrPort, own []netip.Addr) []netip.AddrPort {
	var list []netip.AddrPort
	for _, l := range listen {
		list = append(list, l)
		for _, a := range own {
			if server := netip.AddrPortFrom(a, l.Port()); server != l && covers(l, server, own) {
				list = append(list, server)
			}
		}
	}
	return list
}

// interfaceAddrs are the addresses of this machine now; none when the system
// does not tell.
func interfaceAddrs() []netip.Addr {
	found, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var own []netip.Addr
	for _, f := range found {
		if prefix, err := netip.ParsePrefix(f.String()); err == nil {
			own = append(own, prefix.Addr().Unmap())
		}
	}
	return own
}
