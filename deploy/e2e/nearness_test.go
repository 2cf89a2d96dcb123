package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodens-dns/nodens/deploy/e2e/cluster"
	"github.com/nodens-dns/nodens/topology"
	"github.com/nodens-dns/nodens/topology/kube"
)

// The field makes the controller write hints; where they agree with the fields
// of the endpoints, no tier changes and nothing is published.
func TestTrafficDistributionChanges(t *testing.T) {
	s, o := standard(t)
	hinted := func(nodes, zones bool) func() bool {
		return func() bool {
			for _, p := range o.Status().Endpoints {
				if p.Endpoint.ForNodes.Has(p.Endpoint.Node) != nodes || p.Endpoint.ForZones.Has(p.Endpoint.Zone) != zones {
					return false
				}
			}
			return true
		}
	}
	waitFor(t, "no hints", patience, hinted(false, false))
	for _, c := range []struct {
		distribution string
		nodes, zones bool
	}{
		{corev1.ServiceTrafficDistributionPreferSameNode, true, true},
		{corev1.ServiceTrafficDistributionPreferSameZone, false, true},
		{corev1.ServiceTrafficDistributionPreferSameNode, true, true},
		{corev1.ServiceTrafficDistributionPreferClose, false, true},
		{"", false, false},
	} {
		s.SetTrafficDistribution(c.distribution)
		waitFor(t, "hints of "+c.distribution, patience, hinted(c.nodes, c.zones))
	}
	if tables := o.since(); len(tables) > 0 {
		t.Errorf("published %q", tables)
	}
}

// Hints that name another place than the fields of the endpoint are final, each
// kind by itself.
func TestHintsDecide(t *testing.T) {
	s := stage(t)
	s.AddNode("n1", "za")
	s.AddService(cluster.WithoutSelector)
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: "hinted"}}
	hint := func(nodes, zones bool) {
		slice.Endpoints = nil
		for i, place := range []struct{ node, zone, forNode, forZone string }{
			{"n1", "za", "n2", "zb"}, {"n2", "zb", "n1", "za"}, {"n3", "zb", "n3", "za"},
		} {
			node, zone := s.NodeName(place.node), place.zone
			hints := &discoveryv1.EndpointHints{}
			if nodes {
				hints.ForNodes = []discoveryv1.ForNode{{Name: s.NodeName(place.forNode)}}
			}
			if zones {
				hints.ForZones = []discoveryv1.ForZone{{Name: place.forZone}}
			}
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
				Addresses: []string{fmt.Sprintf("192.0.2.%d", i+1)}, NodeName: &node, Zone: &zone, Hints: hints,
			})
		}
	}
	hint(false, false)
	s.AddSlice(slice)
	o := observe(t, s, "n1", "za")
	o.expect("192.0.2.1||192.0.2.2 192.0.2.3|")
	for _, c := range []struct {
		nodes, zones bool
		want         string
	}{
		{true, true, "192.0.2.2|192.0.2.3|192.0.2.1|"},   // as for PreferSameNode
		{false, true, "192.0.2.1|192.0.2.2 192.0.2.3||"}, // as for PreferSameZone
		{false, false, "192.0.2.1||192.0.2.2 192.0.2.3|"},
	} {
		hint(c.nodes, c.zones)
		s.UpdateSlice(slice)
		o.measured(c.want)
	}
}

// In automatic mode the controller lends endpoints to zones that have none, and
// such a hint is final, unless hints are to be ignored.
func TestTopologyModeAutoLends(t *testing.T) {
	s := stage(t)
	for node, zone := range map[string]string{"n1": "za", "n2": "zb", "n3": "zc"} {
		s.AddNode(node, zone)
		s.ReadyNode(node, "4")
	}
	s.AddService()
	for _, pod := range []string{"a1", "a2", "a3"} {
		s.AddReadyPod(pod, "n1")
	}
	o := observe(t, s, "n2", "zb")
	blind := observe(t, s, "n2", "zb", func(with *setup) {
		with.account = s.Account("blind")
		with.account.Grant(shippedRules(t, "rbac.yaml"))
		with.watcher.Options.IgnoreHints = true
	})
	o.expect("||a1 a2 a3|")
	blind.expect("||a1 a2 a3|")
	s.PatchService(`{"metadata":{"annotations":{"service.kubernetes.io/topology-mode":"Auto"}}}`)
	s.Resync() // the annotation alone does not have the slices written
	o.measure("with one lent to the zone", func(table *topology.Table) bool {
		return len(table.Tiers[1]) == 1 && len(table.Tiers[2]) == 2
	})
	blind.stays(100 * time.Millisecond)
	s.PatchService(`{"metadata":{"annotations":{"service.kubernetes.io/topology-mode":null}}}`)
	o.measured("||a1 a2 a3|")
}

// The zones of endpoints come with the slices. They are as old as the last time
// the controller looked at the Service, which a label of a Node does not cause.
func TestZoneLabelChanges(t *testing.T) {
	s := stage(t)
	s.AddNode("n1", "")
	s.AddNode("n2", "za")
	s.AddNode("n3", "")
	s.AddService()
	s.AddReadyPod("a1", "n1")
	s.AddReadyPod("a2", "n2")
	s.AddReadyPod("a3", "n3")
	o := observe(t, s, "n1", "") // it is not told, so it learns from a1
	o.expect("a1||a2 a3|")
	relabel := func(node, zone string) func() {
		return func() { s.SetZone(node, zone); s.Resync() }
	}
	o.play([]step{
		{relabel("n1", "za"), "a1|a2|a3|"},
		{relabel("n3", "za"), "a1|a2 a3||"},
		{relabel("n1", "zb"), "a1||a2 a3|"},
		{relabel("n2", "zb"), "a1|a2|a3|"},
		{relabel("n2", ""), "a1||a2 a3|"},
		{relabel("n3", "zb"), "a1|a3|a2|"},
	})
}

// The zone of a node without a pod is read from its Node object, where that is
// allowed.
func TestZoneOfTheNodeObject(t *testing.T) {
	s := stage(t)
	s.AddNode("n1", "za")
	s.AddNode("n2", "za")
	s.AddNode("n3", "zb")
	s.AddService()
	s.AddReadyPod("a2", "n2")
	s.AddReadyPod("a3", "n3")
	o := observe(t, s, "n1", "")
	o.expect("||a2 a3|")

	account := s.Account("reader")
	client := kube.NewClient(kube.API{Server: shared.cluster.URL(), CAFile: shared.cluster.CAFile(), TokenFile: account.TokenFile})
	start := time.Now()
	reader, err := kube.NewNode(kube.NodeConfig{
		Client: client, Name: s.NodeName("n1"), Every: 100 * time.Millisecond,
		Now:     func() time.Duration { return time.Since(start) },
		Publish: func(zone string) { o.Relocate(topology.Self{Node: s.NodeName("n1"), Zone: zone}) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- reader.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		client.Close()
	}()

	waitFor(t, "a refusal", patience, func() bool { return reader.Status().Fault == kube.Forbidden })
	account.GrantEverywhere(shippedRules(t, "rbac-node.yaml"))
	o.expect("|a2|a3|")
	s.SetZone("n1", "zb")
	o.expect("|a3|a2|")
	s.SetZone("n1", "")
	o.expect("||a2 a3|")
	waitFor(t, "no fault", patience, func() bool { return reader.Status().Fault == kube.None })
}

// The Service is looked for by its label where it has another name, and the
// copy that node-local caches ask through is not taken for it.
func TestServiceIsFoundByItsLabel(t *testing.T) {
	s := stage(t)
	s.AddNode("n1", "za")
	named := func(name string) func(*corev1.Service) {
		return func(service *corev1.Service) { service.Name = name }
	}
	s.AddService(named("rke2-coredns-rke2-coredns"))
	s.AddService(named("kube-dns-upstream"))
	s.AddReadyPod("a1", "n1")
	o := observe(t, s, "n1", "za", func(with *setup) { with.source.SearchEvery = 200 * time.Millisecond })
	o.expect("a1|||")
	status := o.source.Status()
	if !status.Found || status.Service != "rke2-coredns-rke2-coredns" {
		t.Errorf("follows %s, found %v", status.Service, status.Found)
	}
	s.Ready("a1", false)
	o.measured("|||a1!")
	s.Ready("a1", true)
	o.measured("a1|||")
}

// Many changes of one pod, for the time they take.
func TestChangesReachTheTiersSoon(t *testing.T) {
	s, o := standard(t, cluster.Prefers(corev1.ServiceTrafficDistributionPreferSameNode))
	for range 60 {
		s.Ready("a1", false)
		o.measure("without a1", o.is("|a2|a3|a1!"))
		s.Ready("a1", true)
		o.measure("with a1", o.is("a1|a2|a3|"))
	}
}
