package upstream

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
)

func pods(n int, state State) (members []Member) {
	for i := range n {
		members = append(members, Member{
			UDP:   netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(state), byte(i >> 8), byte(i)}), 53),
			State: state,
		})
	}
	return members
}

func nobody(netip.AddrPort) bool { return false }

func TestCutSpreadsTheNodes(t *testing.T) {
	const nodes, servers = 2000, 50
	members, used := pods(servers, Ready), map[netip.AddrPort]int{}
	for i := range nodes {
		left := cut(members, zoneTargets, fmt.Sprintf("node-%d", i), nobody)
		if len(left) != zoneTargets {
			t.Fatalf("%d are left", len(left))
		}
		for _, m := range left {
			used[m.UDP]++
		}
	}
	for addr, n := range used { // 320 each, standard deviation 16
		if n < 250 || n > 390 {
			t.Errorf("%v is used by %d nodes", addr, n)
		}
	}
	if len(used) != servers {
		t.Errorf("%d servers are used", len(used))
	}
}

// TestCutKeeps has one of the used servers go: the others stay.
func TestCutKeeps(t *testing.T) {
	members := pods(20, Ready)
	before := cut(members, zoneTargets, "n", nobody)
	gone := before[3].UDP
	var rest []Member
	for _, m := range members {
		if m.UDP != gone {
			rest = append(rest, m)
		}
	}
	after, same := cut(rest, zoneTargets, "n", nobody), 0
	for _, m := range after {
		for _, b := range before {
			if b.UDP == m.UDP {
				same++
			}
		}
	}
	if len(after) != zoneTargets || same != zoneTargets-1 {
		t.Errorf("%d of %d are the same", same, len(after))
	}
}

func TestCutStates(t *testing.T) {
	count := func(members []Member) (n [3]int) {
		for _, m := range members {
			n[m.State]++
		}
		return n
	}
	ready, draining, not := pods(6, Ready), pods(6, Draining), pods(6, NotReady)
	all := append(append(append([]Member(nil), not...), draining...), ready...)
	kept := func(a netip.AddrPort) bool { return a == draining[0].UDP || a == draining[5].UDP }
	if got := count(cut(all, 4, "n", nobody)); got != [3]int{4, 0, 0} {
		t.Errorf("ready ones first: %v", got)
	}
	if got := count(cut(all, 8, "n", nobody)); got != [3]int{6, 2, 0} {
		t.Errorf("then draining ones: %v", got)
	}
	if got := count(cut(all, 4, "n", kept)); got != [3]int{4, 2, 0} {
		t.Errorf("used ones that drain stay: %v", got)
	}
	few := pods(4, NotReady)
	if got := cut(few, 4, "n", nobody); len(got) != 4 {
		t.Errorf("few are cut: %v", got)
	}
	// The order of the table stays.
	left := cut(ready, 3, "n", nobody)
	for i := 1; i < len(left); i++ {
		if left[i].UDP.Compare(left[i-1].UDP) <= 0 {
			t.Errorf("order %v", left)
		}
	}
}

// lastPods are endpoints that are not ready: two of the node, three of its zone,
// the others elsewhere, then what is no endpoint.
func lastPods(n int) []Member {
	members := pods(n, NotReady)
	for i := range members {
		switch {
		case i < 2:
			members[i].Step = NodeStep
		case i < 5:
			members[i].Step = ZoneStep
		default:
			members[i].Step = ClusterStep
		}
	}
	others := pods(3, Ready)
	for i := range others {
		others[i].State, others[i].Step = NotReady, FallbackStep
	}
	others[0].Step = ServiceStep
	return append(members, others...)
}

func TestCutLast(t *testing.T) {
	count := func(members []Member) (n [5]int) {
		for _, m := range members {
			n[m.Step]++
		}
		return n
	}
	members := lastPods(5000)
	if got := count(cutLast(members, "n", nobody)); got != [5]int{2, 3, 5, 1, 2} {
		t.Errorf("by steps %v", got)
	}
	members[4000].State, members[4001].State = Draining, Draining
	kept := func(a netip.AddrPort) bool { return a == members[4000].UDP }
	if got := count(cutLast(members, "n", kept)); got != [5]int{2, 3, 6, 1, 2} {
		t.Errorf("one that is used drains: %v", got)
	}
	if got := cutLast(lastPods(10), "n", nobody); len(got) != 13 {
		t.Errorf("few are cut: %v", got)
	}
}

// TestCutLastKeepsTheTiers has every endpoint become not ready at once: whoever
// was used stays.
func TestCutLastKeepsTheTiers(t *testing.T) {
	members := pods(300, Ready)
	before := cutTable(Table{Tiers: [3][]Member{nil, nil, members}}, "n", nobody).Tiers[ClusterTier]
	last := slices.Clone(members)
	for i := range last {
		last[i].State, last[i].Step = NotReady, ClusterStep
	}
	after := cutTable(Table{Last: last}, "n", nobody).Last
	for _, b := range before {
		if !slices.ContainsFunc(after, func(m Member) bool { return m.UDP == b.UDP }) {
			t.Errorf("%v is gone", b.UDP)
		}
	}
}
