package topology_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/nodens-dns/nodens/topology"
)

// naiveRank is Rank said slowly, one full pass per question.
func naiveRank(self topology.Self, all []topology.Endpoint, ignoreHints bool) topology.Tiers {
	var copies [][]topology.Endpoint
	var alive []topology.Endpoint // of each of copies
	for _, e := range all {
		n := slices.IndexFunc(alive, func(o topology.Endpoint) bool { return isCopy(o, e) })
		if n < 0 {
			copies, alive, n = append(copies, nil), append(alive, e), len(copies)
		}
		copies[n] = append(copies[n], e)
		alive[n] = naiveWinner(copies[n])
	}
	ready := filter(alive, func(e topology.Endpoint) bool { return e.Ready })
	usable, draining := ready, false
	if len(ready) == 0 {
		usable = filter(alive, func(e topology.Endpoint) bool { return !e.Ready && e.Serving && e.Terminating })
		draining = len(usable) > 0
	}
	nodeHints := !ignoreHints && len(ready) > 0 &&
		len(filter(ready, func(e topology.Endpoint) bool { return e.ForNodes.List() == nil })) == 0
	zoneHints := !ignoreHints && len(ready) > 0 &&
		len(filter(ready, func(e topology.Endpoint) bool { return e.ForZones.List() == nil })) == 0
	near := func(own, field string, hints topology.Names, count bool) bool {
		if count {
			return own != "" && slices.Contains(hints.List(), own)
		}
		return own != "" && own == field
	}
	isNode := func(e topology.Endpoint) bool { return near(self.Node, e.Node, e.ForNodes, nodeHints) }
	isZone := func(e topology.Endpoint) bool { return near(self.Zone, e.Zone, e.ForZones, zoneHints) }
	rest := filter(alive, func(e topology.Endpoint) bool { return !slices.Contains(usable, e) })
	byNode := func(e topology.Endpoint) bool { return near(self.Node, e.Node, e.ForNodes, false) }
	byZone := func(e topology.Endpoint) bool { return near(self.Zone, e.Zone, e.ForZones, false) }
	return topology.Tiers{
		Node:    servingFirst(filter(usable, isNode)),
		Zone:    servingFirst(filter(usable, func(e topology.Endpoint) bool { return !isNode(e) && isZone(e) })),
		Cluster: servingFirst(filter(usable, func(e topology.Endpoint) bool { return !isNode(e) && !isZone(e) })),
		Last: slices.Concat(filter(rest, byNode),
			filter(rest, func(e topology.Endpoint) bool { return !byNode(e) && byZone(e) }),
			filter(rest, func(e topology.Endpoint) bool { return !byNode(e) && !byZone(e) })),
		LastNode: len(filter(rest, byNode)),
		LastZone: len(filter(rest, func(e topology.Endpoint) bool { return !byNode(e) && byZone(e) })),
		Draining: draining,
	}
}

// isCopy reports whether a question to one would reach the other, or that they are
// one pod.
func isCopy(a, b topology.Endpoint) bool {
	port := func(e topology.Endpoint) uint16 {
		if e.UDPPort != 0 {
			return e.UDPPort
		}
		return e.TCPPort
	}
	return a.Addr == b.Addr && (port(a) == port(b) || a.Pod != "" && a.Pod == b.Pod)
}

func naiveWinner(copies []topology.Endpoint) topology.Endpoint {
	if alive := filter(copies, func(e topology.Endpoint) bool { return !e.Terminating }); len(alive) > 0 {
		copies = alive
	}
	return copies[len(copies)-1]
}

func servingFirst(list []topology.Endpoint) []topology.Endpoint {
	return slices.Concat(filter(list, func(e topology.Endpoint) bool { return e.Serving }),
		filter(list, func(e topology.Endpoint) bool { return !e.Serving }))
}

func filter(list []topology.Endpoint, keep func(topology.Endpoint) bool) []topology.Endpoint {
	var kept []topology.Endpoint
	for _, e := range list {
		if keep(e) {
			kept = append(kept, e)
		}
	}
	return kept
}

// randomEndpoints draws few values of everything, so that things coincide.
func randomEndpoints(r *rand.Rand) []topology.Endpoint {
	places := []string{"", "a", "b", "aa"}
	hinted := r.IntN(3) // 0: none, 1: some, 2: all
	hint := func() topology.Names {
		if hinted == 0 || (hinted == 1 && r.IntN(6) == 0) {
			return topology.Names{}
		}
		names := make([]string, 1+r.IntN(2))
		for i := range names {
			names[i] = places[r.IntN(len(places))]
		}
		return topology.NamesOf(names...)
	}
	port := func() uint16 { // mostly the same
		return []uint16{53, 53, 53, 1053, 0}[r.IntN(5)]
	}
	usual := r.IntN(4) // in one of four worlds nothing is ready
	list := make([]topology.Endpoint, r.IntN(9))
	for i := range list {
		list[i] = topology.Endpoint{
			Addr: netip.AddrFrom4([4]byte{192, 0, 2, byte(r.IntN(6))}), UDPPort: port(), TCPPort: port(), Pod: places[r.IntN(3)],
			Node: places[r.IntN(4)], Zone: places[r.IntN(4)],
			ForNodes: hint(), ForZones: hint(),
			Ready:   usual != 0 && r.IntN(2) == 0,
			Serving: r.IntN(2) == 0, Terminating: r.IntN(2) == 0,
		}
	}
	return list
}

func TestRankAgreesWithNaiveTwin(t *testing.T) {
	places := []string{"", "a", "b", "c"}
	for seed := range uint64(10_000) {
		r := rand.New(rand.NewPCG(seed, 7))
		list := randomEndpoints(r)
		self := topology.Self{Node: places[r.IntN(4)], Zone: places[r.IntN(4)]}
		o := topology.Options{IgnoreHints: r.IntN(4) == 0}
		got, want := topology.Rank(self, list, o), naiveRank(self, list, o.IgnoreHints)
		equal := cmp.Options{cmpopts.EquateEmpty(), cmpopts.EquateComparable(topology.Endpoint{})}
		if diff := cmp.Diff(want, got, equal); diff != "" {
			t.Fatalf("seed %d, self %+v, %+v (-naive +got):\n%s", seed, self, o, diff)
		}
		checkExplain(t, self, list, o, got)
	}
}

// TestPortsOfOneAddress: pods that share the address of their node are endpoints of
// their own, at ports of their own.
func TestPortsOfOneAddress(t *testing.T) {
	list := []topology.Endpoint{
		{Addr: ip("192.0.2.1"), UDPPort: 53, TCPPort: 53, Node: "n", Ready: true, Serving: true},
		{Addr: ip("192.0.2.1"), UDPPort: 1053, TCPPort: 1053, Node: "n", Ready: true, Serving: true},
		{Addr: ip("192.0.2.1"), UDPPort: 53, Node: "n", Terminating: true}, // a ghost of the first
		{Addr: ip("192.0.2.1"), TCPPort: 1053, Node: "n", Terminating: true},
		{Addr: ip("192.0.2.2"), UDPPort: 53, Pod: "moved", Node: "n", Ready: true, Serving: true},
		{Addr: ip("192.0.2.2"), UDPPort: 1053, Pod: "moved", Node: "n", Ready: true, Serving: true},
	}
	node := topology.Rank(topology.Self{Node: "n"}, list, topology.Options{}).Node
	if want := []topology.Endpoint{list[0], list[1], list[5]}; !slices.Equal(node, want) {
		t.Errorf("%+v, want %+v", node, want)
	}
}

func TestReadyWithoutServingComesLast(t *testing.T) {
	list := []topology.Endpoint{
		{Addr: ip("192.0.2.1"), Node: "n", Ready: true},
		{Addr: ip("192.0.2.2"), Node: "n", Ready: true, Serving: true},
		{Addr: ip("192.0.2.3"), Node: "n", Ready: true, Terminating: true},
		{Addr: ip("192.0.2.4"), Node: "n", Ready: true, Serving: true},
	}
	got := addrs(topology.Rank(topology.Self{Node: "n"}, list, topology.Options{}).Node)
	want := []string{"192.0.2.2", "192.0.2.4", "192.0.2.1", "192.0.2.3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestLastHoldsWhoeverIsInNoTier: nobody who is known is forgotten, whatever
// the mode, and nobody is listed twice.
func TestLastHoldsWhoeverIsInNoTier(t *testing.T) {
	list := []topology.Endpoint{
		{Addr: ip("192.0.2.1"), Node: "far"},
		{Addr: ip("192.0.2.2"), Node: "n", Serving: true, Terminating: true},
		{Addr: ip("192.0.2.3"), Node: "n", Ready: true, Serving: true},
	}
	tiers := topology.Rank(topology.Self{Node: "n"}, list, topology.Options{})
	if diff := cmp.Diff([]string{"192.0.2.2", "192.0.2.1"}, addrs(tiers.Last)); diff != "" {
		t.Error(diff)
	}
}

func TestNames(t *testing.T) {
	n := topology.NamesOf("a", "bc", "")
	for name, want := range map[string]bool{"a": true, "bc": true, "b": false, "c": false, "": false, "abc": false} {
		if n.Has(name) != want {
			t.Errorf("Has(%q) = %v", name, !want)
		}
	}
	if diff := cmp.Diff([]string{"a", "bc", ""}, n.List()); diff != "" {
		t.Error(diff)
	}
	if topology.NamesOf("").Empty() || !topology.NamesOf().Empty() || topology.NamesOf().List() != nil {
		t.Error("a list is empty when it has no names, not when its names are empty")
	}
}

func ip(s string) netip.Addr { return netip.MustParseAddr(s) }

// bigWorld is n endpoints on n nodes in three zones, all hinted.
func bigWorld(n int) []topology.Endpoint {
	list := make([]topology.Endpoint, n)
	for i := range list {
		node, zone := fmt.Sprintf("node-%d", i), fmt.Sprintf("zone-%d", i%3)
		list[i] = topology.Endpoint{
			Addr: netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), UDPPort: 53, TCPPort: 53,
			Node: node, Zone: zone, ForNodes: topology.NamesOf(node), ForZones: topology.NamesOf(zone),
			Pod: fmt.Sprintf("pod-%d", i), Ready: true, Serving: true,
		}
	}
	return list
}

func BenchmarkRank5000(b *testing.B) {
	list := bigWorld(5000)
	self := topology.Self{Node: "node-7", Zone: "zone-1"}
	b.ReportAllocs()
	for b.Loop() {
		tiers := topology.Rank(self, list, topology.Options{})
		if len(tiers.Node) != 1 {
			b.Fatal("lost the local endpoint")
		}
	}
}
