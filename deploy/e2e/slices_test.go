package e2e

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodens-dns/nodens/deploy/e2e/cluster"
	"github.com/nodens-dns/nodens/topology"
)

// The controller puts at most 100 endpoints into a slice and moves them about.
func TestEndpointsOfSeveralSlices(t *testing.T) {
	s, o := standard(t, cluster.Prefers(corev1.ServiceTrafficDistributionPreferSameNode))
	const many = 120
	for i := range many {
		s.AddReadyPod(fmt.Sprintf("c%d", i), "n3")
	}
	counts := func(node, zone, other int) {
		t.Helper()
		what := fmt.Sprintf("with %d, %d and %d members", node, zone, other)
		o.measure(what, func(table *topology.Table) bool {
			return len(table.Tiers[0]) == node && len(table.Tiers[1]) == zone && len(table.Tiers[2]) == other
		})
	}
	counts(1, 1, 1+many)
	if n := len(s.EndpointSlices()); n < 2 {
		t.Fatalf("only %d slices", n)
	}
	s.Terminate("a1")
	counts(0, 1, 1+many)
	s.AddReadyPod("b1", "n1")
	counts(1, 1, 1+many)
	o.since()
	for i := range many {
		s.Remove(fmt.Sprintf("c%d", i))
	}
	counts(1, 1, 1)
	o.never("a pod that stayed was lost on the way", func(table string) bool { return table[:5] != "b1|a2" })
}

// A roll that changes the number behind a named port has a slice for each.
func TestPodsWithDifferentPorts(t *testing.T) {
	s := stage(t)
	s.AddNode("n1", "za")
	s.AddNode("n2", "zb")
	s.AddService(cluster.NamedTargetPorts)
	ports := func(number int32) []corev1.ContainerPort {
		return []corev1.ContainerPort{
			{Name: "dns", Protocol: corev1.ProtocolUDP, ContainerPort: number},
			{Name: "dns-tcp", Protocol: corev1.ProtocolTCP, ContainerPort: number},
		}
	}
	s.AddReadyPod("old", "n2", ports(5353)...)
	o := observe(t, s, "n1", "za")
	o.expect("||old|")
	s.AddReadyPod("new", "n1", ports(1053)...)
	o.measured("new||old|")
	table, _ := o.latest()
	for _, want := range []struct {
		member topology.Member
		port   uint16
	}{{table.Tiers[0][0], 1053}, {table.Tiers[2][0], 5353}} {
		if want.member.UDP.Port() != want.port || want.member.TCP.Port() != want.port {
			t.Errorf("ports of %s are %v and %v, want %d", want.member.Pod, want.member.UDP, want.member.TCP, want.port)
		}
	}
	s.Terminate("old")
	o.measured("new|||old~")
	s.Remove("old")
	o.measured("new|||")
}

// A slice of somebody else counts as much, and its lack of hints only turns the
// hints of all off.
func TestHandMadeSliceBesideTheControllers(t *testing.T) {
	s, o := standard(t, cluster.Prefers(corev1.ServiceTrafficDistributionPreferSameNode))
	node, zone := s.NodeName("n1"), "zb"
	own := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "by-hand", Labels: map[string]string{discoveryv1.LabelManagedBy: "somebody"}},
		Endpoints: []discoveryv1.Endpoint{
			{Addresses: []string{"192.0.2.1"}, NodeName: &node},
			{Addresses: []string{"192.0.2.2"}, Zone: &zone},
		},
	}
	s.AddSlice(own)
	o.measured("a1 192.0.2.1|a2|a3 192.0.2.2|")
	s.Ready("a1", false) // the controller goes on with its own
	o.measured("192.0.2.1|a2|a3 192.0.2.2|a1!")
	no := false
	own.Endpoints[0].Conditions.Ready = &no
	own.Endpoints[0].Conditions.Serving = &no
	s.UpdateSlice(own)
	o.measured("|a2|a3 192.0.2.2|a1! 192.0.2.1!")
	s.RemoveSlice("by-hand")
	o.measured("|a2|a3|a1!")
}

func TestOnlyTheControllersSlicesAreAllowed(t *testing.T) {
	s := stage(t)
	s.AddNode("n1", "za")
	s.AddService()
	s.AddReadyPod("a1", "n1")
	s.AddSlice(&discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "by-hand"},
		Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.1"}}},
	})
	o := observe(t, s, "n1", "za", func(with *setup) {
		with.watcher.Rules.ManagedBy = []string{"endpointslice-controller.k8s.io"}
	})
	o.expect("a1|||")
	if ignored := o.Status().Ignored; !strings.HasSuffix(ignored.String(), "=1") {
		t.Errorf("ignored %s", ignored.String())
	}
}

// What the API lets pass and a resolver cannot be: the rest is used.
func TestSliceWithNonsense(t *testing.T) {
	s := stage(t)
	s.AddNode("n1", "za")
	s.AddService()
	s.AddReadyPod("a1", "n1")
	o := observe(t, s, "n1", "za", func(with *setup) {
		with.watcher.Rules.Own = []netip.AddrPort{netip.MustParseAddrPort("192.0.2.6:53")}
	})
	o.expect("a1|||")
	zero := int32(0)
	s.AddSlice(&discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "fqdn"},
		AddressType: discoveryv1.AddressTypeFQDN,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"dns.example.com"}}},
	})
	s.AddSlice(&discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "no-port"}, Ports: []discoveryv1.EndpointPort{{Port: &zero}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.7"}}},
	})
	s.AddSlice(&discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "own"},
		Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.6"}}},
	})
	s.AddSlice(&discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "odd"},
		Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.8", "192.0.2.9"}}},
	})
	o.measured("a1||192.0.2.8|")
	ignored := o.Status().Ignored
	if got, want := ignored.String(), "other-type=1 no-port=1 own-address=1 extra-address=1"; got != want {
		t.Errorf("ignored %s, want %s", got, want)
	}
}

// The Endpoints of a Service without selector are mirrored into slices.
func TestMirroredEndpoints(t *testing.T) {
	s := stage(t)
	s.AddNode("n1", "za")
	s.AddService(cluster.WithoutSelector)
	o := observe(t, s, "n1", "za")
	s.SetEndpoints("n1", "192.0.2.1", "192.0.2.2")
	o.expect("192.0.2.1 192.0.2.2|||")
	s.SetEndpoints("n1", "192.0.2.2")
	o.measured("192.0.2.2|||")
}

func TestDualStack(t *testing.T) {
	s := stage(t)
	s.AddNode("n1", "za")
	s.AddNode("n2", "zb")
	s.AddService(cluster.DualStack)
	s.AddReadyPod("a1", "n1")
	s.AddReadyPod("a2", "n2")
	four := observe(t, s, "n1", "za")
	six := observe(t, s, "n1", "za", func(with *setup) {
		with.account = s.Account("six")
		with.account.Grant(shippedRules(t, "rbac.yaml"))
		with.watcher.Rules.Families = []topology.Family{topology.IPv6, topology.IPv4}
	})
	both := func(m topology.Member, udp, alt netip.Addr) {
		t.Helper()
		if m.UDP.Addr() != udp || m.AltUDP.Addr() != alt || m.TCP.Addr() != udp || m.AltTCP.Addr() != alt {
			t.Errorf("member %+v, want %v with %v", m, udp, alt)
		}
	}
	complete := func(table *topology.Table) bool {
		return len(table.Tiers[0]) == 1 && len(table.Tiers[2]) == 1 &&
			table.Tiers[0][0].AltUDP.IsValid() && table.Tiers[2][0].AltUDP.IsValid()
	}
	for _, o := range []*observer{four, six} {
		o.until("with both families", patience, complete)
	}
	v4, v6 := s.Addresses("a1")
	table, _ := four.latest()
	both(table.Tiers[0][0], v4, v6)
	table, _ = six.latest()
	both(table.Tiers[0][0], v6, v4)

	s.Terminate("a1")
	four.measured("||a2|a1~")
	six.measured("||a2|a1~")
	s.AddReadyPod("b1", "n1")
	four.until("with both families", patience, complete)
	six.until("with both families", patience, complete)
}

// Pods that are published while they are not ready stay in the tiers.
func TestPublishNotReadyAddresses(t *testing.T) {
	s, o := standard(t, func(service *corev1.Service) { service.Spec.PublishNotReadyAddresses = true })
	s.AddPod("b1", "n1")
	o.measured("a1 b1|a2|a3|")
	s.Ready("b1", true)
	s.Ready("a1", false)
	o.measured("b1 a1|a2|a3|") // who serves comes first
}

// No pod at all: the last ones known stay for a while as they were, and then as
// last resort.
func TestServiceLosesEveryPod(t *testing.T) {
	s := stage(t)
	s.AddNode("n1", "za")
	s.AddService()
	s.AddReadyPod("a1", "n1")
	o := observe(t, s, "n1", "za", func(with *setup) { with.watcher.EmptyHold = 2 * time.Second })
	o.expect("a1|||")
	s.Remove("a1")
	if took := o.expect("|||a1!"); took < 2*time.Second {
		t.Errorf("given up after %v", took)
	}
	s.AddReadyPod("b1", "n1")
	o.measured("b1|||")
}
