package topology_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/nodens-dns/nodens/topology"
)

// plainValues compares addresses by value.
var plainValues = cmp.Options{cmpopts.EquateEmpty(), cmpopts.EquateComparable(netip.AddrPort{})}

func TestNewTable(t *testing.T) {
	up := topology.Endpoint{UDPPort: 53, TCPPort: 53, Ready: true, Serving: true}
	v4 := func(addr, node, pod string) topology.Endpoint {
		e := up
		e.Addr, e.Node, e.Pod = ip(addr), node, pod
		return e
	}
	down := v4("192.0.2.4", "far", "p4")
	down.Ready, down.Serving = false, false
	leaving := v4("192.0.2.5", "far", "p5")
	leaving.Ready, leaving.Terminating = false, true
	udpOnly := v4("192.0.2.6", "far", "")
	udpOnly.TCPPort = 0
	named := v4("192.0.2.7", "far", "uid-7")
	named.PodName = "kube-system/coredns-7"
	others := []topology.Endpoint{v4("2001:db8::1", "n", "p1"), v4("2001:db8::9", "n", "p9"), v4("2001:db8::6", "n", "")}
	others[0].UDPPort = 5353

	tiers := topology.Rank(topology.Self{Node: "n"}, []topology.Endpoint{
		v4("192.0.2.1", "n", "p1"), v4("192.0.2.2", "far", "p2"), down, leaving, udpOnly, named,
	}, topology.Options{})
	got := topology.NewTable(tiers, others)
	want := topology.Table{
		Tiers: [3][]topology.Member{
			{{Pod: "p1", UDP: ap("192.0.2.1:53"), TCP: ap("192.0.2.1:53"), AltUDP: ap("[2001:db8::1]:5353"), AltTCP: ap("[2001:db8::1]:53")}},
			nil,
			{
				{Pod: "p2", UDP: ap("192.0.2.2:53"), TCP: ap("192.0.2.2:53")},
				{Pod: "192.0.2.6", UDP: ap("192.0.2.6:53")},
				{Pod: "kube-system/coredns-7", UDP: ap("192.0.2.7:53"), TCP: ap("192.0.2.7:53")},
			},
		},
		Last: []topology.Member{
			{Pod: "p4", UDP: ap("192.0.2.4:53"), TCP: ap("192.0.2.4:53"), State: topology.NotReady, Step: topology.StepCluster},
			{Pod: "p5", UDP: ap("192.0.2.5:53"), TCP: ap("192.0.2.5:53"), State: topology.Draining, Step: topology.StepCluster},
		},
	}
	if diff := cmp.Diff(want, got, plainValues); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !got.Equal(&want) {
		t.Error("Equal disagrees with cmp")
	}
}

func TestTableEqual(t *testing.T) {
	base := func() topology.Table {
		return topology.Table{
			Tiers: [3][]topology.Member{{{Pod: "a"}}, nil, {{Pod: "b"}, {Pod: "c"}}},
			Last:  []topology.Member{{Pod: "d", State: topology.NotReady}},
		}
	}
	changes := map[string]func(*topology.Table){
		"step":     func(t *topology.Table) { t.Last[0].Step = topology.StepZone },
		"state":    func(t *topology.Table) { t.Last[0].State = topology.Draining },
		"order":    func(t *topology.Table) { t.Tiers[2][0], t.Tiers[2][1] = t.Tiers[2][1], t.Tiers[2][0] },
		"tier":     func(t *topology.Table) { t.Tiers[1], t.Tiers[0] = t.Tiers[0], nil },
		"draining": func(t *topology.Table) { t.Draining = true },
		"removed":  func(t *topology.Table) { t.Last = nil },
		"address":  func(t *topology.Table) { t.Tiers[0][0].AltTCP = ap("192.0.2.1:53") },
	}
	for name, change := range changes {
		a, b := base(), base()
		change(&b)
		if a.Equal(&b) {
			t.Errorf("%s: still equal", name)
		}
	}
	a, b := base(), base()
	a.Tiers[1] = []topology.Member{}
	if !a.Equal(&b) {
		t.Error("nil and empty tiers differ")
	}
}

func ap(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }
