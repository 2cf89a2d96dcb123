package load

import (
	"fmt"
	"net"
	"net/netip"
)

// CheckLocal is an error for a target that is not this machine.
func CheckLocal(target netip.Addr) error {
	target = target.Unmap()
	if target.IsLoopback() {
		return nil
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return fmt.Errorf("load: read this machine's addresses: %w", err)
	}
	for _, a := range addrs {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr().Unmap() == target.WithZone("") {
			return nil
		}
	}
	return fmt.Errorf("load: %v is not an address of this machine: allow remote targets if you own it", target)
}
