package upstream

import (
	"cmp"
	"hash/fnv"
	"net/netip"
	"slices"
)

// How many ready servers of a zone and of a cluster one node uses, and how many
// of the last resort from other nodes. Few mean few sockets and probes, and
// scores that are made of many replies.
const (
	zoneTargets    = 8
	clusterTargets = 4
	lastTargets    = 8
)

// cutTable leaves each far tier, and the last resort, the servers that this node uses. Each node has
// its own, so that the load of all is spread evenly, and keeps them whatever
// comes and goes beside. Those that are draining stay while they were used:
// they still answer what they have. kept tells these.
func cutTable(table Table, node string, kept func(netip.AddrPort) bool) Table {
	table.Tiers[ZoneTier] = cut(table.Tiers[ZoneTier], zoneTargets, node, kept)
	table.Tiers[ClusterTier] = cut(table.Tiers[ClusterTier], clusterTargets, node, kept)
	table.Last = cutLast(table.Last, node, kept)
	return table
}

// cut keeps most of the members in their order: those with the highest hash of
// node and address, ready ones first.
func cut(members []Member, most int, node string, kept func(netip.AddrPort) bool) []Member {
	if len(members) <= most {
		return members
	}
	used := nearest(members, most, node, func(m *Member) uint8 { return uint8(m.State) })
	return remaining(members, func(m *Member) bool {
		return used[m.addr()] || m.State == Draining && kept(m.addr())
	})
}

// cutLast keeps of the last resort who is on this node or no endpoint at all,
// and of the endpoints elsewhere the nearest, again those with the highest hash
// among equals. All may be there at once: a control plane that loses the nodes
// calls every endpoint not ready.
func cutLast(members []Member, node string, kept func(netip.AddrPort) bool) []Member {
	elsewhere := func(m *Member) bool { return m.Step == ZoneStep || m.Step == ClusterStep }
	far := remaining(members, elsewhere)
	if len(far) <= lastTargets {
		return members
	}
	used := nearest(far, lastTargets, node, func(m *Member) uint8 { return uint8(m.Step) })
	return remaining(members, func(m *Member) bool {
		return !elsewhere(m) || used[m.addr()] || m.State == Draining && kept(m.addr())
	})
}

// nearest are the addresses of so many members: those of the lowest class, and
// in one class those with the highest hash of node and address.
func nearest(members []Member, most int, node string, class func(*Member) uint8) map[netip.AddrPort]bool {
	type place struct {
		class    uint8
		affinity uint64
		addr     netip.AddrPort
	}
	places := make([]place, len(members))
	for i := range members {
		addr := members[i].addr()
		places[i] = place{class(&members[i]), affinity(node, addr), addr}
	}
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(b.affinity, a.affinity), a.addr.Compare(b.addr))
	})
	used := make(map[netip.AddrPort]bool, most)
	for _, p := range places[:min(most, len(places))] {
		used[p.addr] = true
	}
	return used
}

// remaining are the members that stay, in their order.
func remaining(members []Member, stays func(*Member) bool) []Member {
	return slices.DeleteFunc(slices.Clone(members), func(m Member) bool { return !stays(&m) })
}

// affinity is how much a node likes a server: a number that looks random, and is
// always the same.
func affinity(node string, addr netip.AddrPort) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(node)) // it never fails
	_, _ = h.Write(addr.Addr().AsSlice())
	_, _ = h.Write([]byte{byte(addr.Port() >> 8), byte(addr.Port())})
	// The last bytes barely reach the high bits of such a sum: mix them.
	v := h.Sum64()
	v = (v ^ v>>30) * 0xbf58476d1ce4e5b9
	v = (v ^ v>>27) * 0x94d049bb133111eb
	return v ^ v>>31
}
