package hostnet

// Counter is packets and bytes since the table was first made.
type Counter struct {
	Packets uint64
	Bytes   uint64
}

// Counts says how much no socket of ours took. For UDP it counts packets, and for
// TCP the first packet of each connection. Where a fallback has no target they are
// lost, in Service mode kube-proxy has those for the Service.
type Counts struct {
	UDP4, TCP4, UDP6, TCP6 Counter
}

// named returns the counter of that name in the table.
func (c *Counts) named(name string) Counter {
	if at := c.at(name); at != nil {
		return *at
	}
	return Counter{}
}

func (c *Counts) at(name string) *Counter {
	switch name {
	case counterName(udp(), ipv4()):
		return &c.UDP4
	case counterName(tcp(), ipv4()):
		return &c.TCP4
	case counterName(udp(), ipv6()):
		return &c.UDP6
	case counterName(tcp(), ipv6()):
		return &c.TCP6
	}
	return nil
}
