package upstream

import (
	"cmp"
	"hash/fnv"
	"net/netip"
	"slices"
)

// How many ready servers of a zone and of a cluster one node uses. Few mean few
// sockets and probes, and scores that are made of many replies.
const (
	zoneTargets    = 8
	clusterTargets = 4
)

// cutTiers leaves each far tier the servers that this node uses. Each node has
// its own, so that the load of all is spread evenly, and keeps them whatever
// comes and goes beside. Those that are draining stay while they were used:
// they still answer what they have. kept tells these.
func cutTiers(table Table, node string, kept func(netip.AddrPort) bool) Table {
	table.Tiers[ZoneTier] = cut(table.Tiers[ZoneTier], zoneTargets, node, kept)
	table.Tiers[ClusterTier] = cut(table.Tiers[ClusterTier], clusterTargets, node, kept)
	return table
}

// cut keeps most of the members in their order: those with the highest hash of
// node and address, ready ones first.
func cut(members []Member, most int, node string, kept func(netip.AddrPort) bool) []Member {
	if len(members) <= most {
		return members
	}
	sorted := slices.Clone(members)
	slices.SortStableFunc(sorted, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.State, b.State), cmp.Compare(affinity(node, b.addr()), affinity(node, a.addr())))
	})
	used := map[netip.AddrPort]bool{}
	for i, m := range sorted {
		if i < most || m.State == Draining && kept(m.addr()) {
			used[m.addr()] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(members), func(m Member) bool { return !used[m.addr()] })
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
