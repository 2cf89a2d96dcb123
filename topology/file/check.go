package file

import "net/netip"

// check reports everything in a slice that an API server would have refused.
// What it would take and we cannot use is not a mistake: the Watcher ignores
// and counts it.
func (s *endpointSlice) check(fail func(format string, args ...any)) {
	if s.Metadata.Name == "" {
		fail("metadata.name is missing")
	}
	switch s.AddressType {
	case "IPv4", "IPv6", "FQDN":
	default:
		fail("addressType is %q; want IPv4, IPv6 or FQDN", s.AddressType)
	}
	s.checkPorts(fail)
	if s.AddressType == "FQDN" {
		return
	}
	for i := range s.Endpoints {
		for n, text := range s.Endpoints[i].Addresses {
			s.checkAddress(i, n, text, fail)
		}
	}
}

func (s *endpointSlice) checkPorts(fail func(format string, args ...any)) {
	seen := make(map[string]bool, len(s.Ports))
	for i, p := range s.Ports {
		name := value(p.Name)
		if seen[name] {
			fail("ports[%d].name %q is not unique", i, name)
		}
		seen[name] = true
		switch value(p.Protocol) {
		case "", "UDP", "TCP", "SCTP":
		default:
			fail("ports[%d].protocol is %q; want UDP, TCP or SCTP", i, *p.Protocol)
		}
		if n := value(p.Port); n < 0 || n > 65535 {
			fail("ports[%d].port is %d; want 1 to 65535", i, n)
		}
	}
}

func (s *endpointSlice) checkAddress(i, n int, text string, fail func(format string, args ...any)) {
	addr, err := netip.ParseAddr(text)
	switch {
	case err != nil:
		fail("endpoints[%d].addresses[%d] %q is not an IP address", i, n, text)
	case addr.Is4() != (s.AddressType == "IPv4"):
		fail("endpoints[%d].addresses[%d] %s is not of addressType %s", i, n, addr, s.AddressType)
	}
}
