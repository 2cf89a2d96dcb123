package topology

import (
	"net/netip"
	"slices"
)

// Family is an address family.
type Family uint8

// The families.
const (
	IPv4 Family = iota
	IPv6
)

// String returns the API's name of the family.
func (f Family) String() string {
	if f == IPv6 {
		return "IPv6"
	}
	return "IPv4"
}

func familyOf(addr netip.Addr) Family {
	if addr.Is4() {
		return IPv4
	}
	return IPv6
}

// Rules says which slices are ours and which of their ports speak DNS.
type Rules struct {
	// Namespace and Service name the DNS Service, e.g. kube-system and
	// kube-dns. Slices of others are ignored. Default "": any.
	Namespace string
	Service   string

	// ManagedBy lists the allowed values of the managed-by label; whoever may
	// write slices in the namespace could otherwise insert a resolver.
	// Default none: every value, and no value, is allowed, as for kube-proxy.
	ManagedBy []string

	// UDPPort and TCPPort are the preferred port names. Defaults "dns" and
	// "dns-tcp". If no port has the name, protocol and number decide.
	UDPPort string
	TCPPort string

	// Own are the addresses we listen on ourselves: an endpoint there is ignored.
	// Default none.
	Own []netip.AddrPort

	// Families lists the wanted address families, the preferred one first; the
	// other gives alternate addresses. A family that is not listed is ignored.
	// Default IPv4, IPv6.
	Families []Family
}

func (r Rules) withDefaults() Rules {
	if r.UDPPort == "" {
		r.UDPPort = "dns"
	}
	if r.TCPPort == "" {
		r.TCPPort = "dns-tcp"
	}
	if len(r.Families) == 0 {
		r.Families = []Family{IPv4, IPv6}
	}
	r.ManagedBy = slices.Clone(r.ManagedBy)
	r.Own = slices.Clone(r.Own)
	r.Families = slices.Clone(r.Families)
	return r
}

// maxEndpoints is how many endpoints the API allows in a slice.
const maxEndpoints = 1000

// own reports whether we listen at one of the ports of an address.
func (r *Rules) own(addr netip.Addr, ports ...uint16) bool {
	return slices.ContainsFunc(ports, func(port uint16) bool {
		return slices.Contains(r.Own, netip.AddrPortFrom(addr, port))
	})
}

// Project turns a slice into the endpoints it stands for and counts what it
// leaves out. It is a pure function. All endpoints are of one family.
func Project(s *Slice, rules Rules) ([]Endpoint, Ignored) {
	rules = rules.withDefaults()
	var ignored Ignored
	family, kind, ok := rules.admit(s)
	if !ok {
		ignored[kind]++
		return nil, ignored
	}
	udp, tcp := rules.ports(s.Ports)
	if udp == 0 && tcp == 0 {
		ignored[NoPort]++
		return nil, ignored
	}
	known := s.Endpoints[:min(len(s.Endpoints), maxEndpoints)]
	ignored[TooMany] += len(s.Endpoints) - len(known)
	endpoints := make([]Endpoint, 0, len(known))
	for i := range known {
		from := &known[i]
		addr, ok := address(from, family, s.AllowLoopback, &ignored)
		if !ok {
			continue
		}
		if rules.own(addr, udp, tcp) {
			ignored[OwnAddress]++
			continue
		}
		e := endpoint(from)
		e.Addr, e.UDPPort, e.TCPPort = addr, udp, tcp
		endpoints = append(endpoints, e)
	}
	return endpoints, ignored
}

// admit tells the family of a slice that is ours and has endpoints, or the kind
// of thing it is instead.
func (r *Rules) admit(s *Slice) (Family, Kind, bool) {
	family := IPv4
	switch {
	case r.Namespace != "" && s.Namespace != r.Namespace:
		return 0, OtherNamespace, false
	case r.Service != "" && s.Service != r.Service:
		return 0, OtherService, false
	case len(r.ManagedBy) > 0 && !slices.Contains(r.ManagedBy, s.ManagedBy):
		return 0, OtherController, false
	case s.AddressType == IPv6.String():
		family = IPv6
	case s.AddressType != IPv4.String():
		return 0, OtherType, false
	}
	if !slices.Contains(r.Families, family) {
		return 0, OtherFamily, false
	}
	if len(s.Endpoints) == 0 {
		return 0, Placeholder, false
	}
	return family, 0, true
}

// ports chooses the UDP and the TCP port, 0 for none. The UDP port is the one
// with the preferred name, else the only one, else number 53; two others are
// ambiguous. The TCP port is the one with the preferred name, else the one with
// the number of the UDP port.
func (r *Rules) ports(list []Port) (udp, tcp uint16) {
	var found, fallback uint16
	count := 0
	for _, p := range list {
		number, ok := p.usable("UDP")
		if !ok {
			continue
		}
		count++
		found = number
		if p.Name == r.UDPPort && udp == 0 {
			udp = number
		}
		if number == 53 {
			fallback = number
		}
	}
	switch {
	case udp != 0:
	case count == 1:
		udp = found
	default:
		udp = fallback
	}
	return udp, r.tcpPort(list, udp)
}

func (r *Rules) tcpPort(list []Port, udp uint16) uint16 {
	var twin uint16
	for _, p := range list {
		number, ok := p.usable("TCP")
		switch {
		case !ok:
		case p.Name == r.TCPPort:
			return number
		case number == udp:
			twin = number
		}
	}
	return twin
}

// usable returns the number of a port that exists and is of the protocol.
func (p *Port) usable(protocol string) (uint16, bool) {
	own := p.Protocol
	if own == "" {
		own = "TCP"
	}
	if own != protocol || p.Number < 1 || p.Number > 65535 {
		return 0, false
	}
	return uint16(p.Number), true
}

// address parses the first address of an endpoint.
func address(e *SliceEndpoint, family Family, loopback bool, ignored *Ignored) (netip.Addr, bool) {
	if len(e.Addresses) == 0 {
		ignored[NoAddress]++
		return netip.Addr{}, false
	}
	ignored[ExtraAddress] += len(e.Addresses) - 1
	addr, err := netip.ParseAddr(e.Addresses[0])
	if err != nil || !reachable(addr, family, loopback) {
		ignored[BadAddress]++
		return netip.Addr{}, false
	}
	return addr, true
}

// reachable reports whether addr is a unicast address of the family that means
// the same on every node. Link-local addresses do not; one of them is likely
// our own listen address.
func reachable(addr netip.Addr, family Family, loopback bool) bool {
	if addr.Zone() != "" || addr.Is4In6() || familyOf(addr) != family {
		return false
	}
	if addr.IsLoopback() {
		return loopback
	}
	return addr.IsGlobalUnicast()
}

// endpoint copies what does not depend on the slice.
func endpoint(from *SliceEndpoint) Endpoint {
	e := Endpoint{
		Node:        from.Node,
		Zone:        from.Zone,
		ForNodes:    NamesOf(from.ForNodes...),
		ForZones:    NamesOf(from.ForZones...),
		Pod:         from.TargetUID,
		Ready:       from.Ready == nil || *from.Ready,
		Serving:     from.Serving == nil || *from.Serving,
		Terminating: from.Terminating != nil && *from.Terminating,
	}
	if from.TargetName != "" {
		e.PodName = key{from.TargetNamespace, from.TargetName}.String()
	}
	if e.Pod == "" {
		e.Pod = e.PodName
	}
	return e
}
