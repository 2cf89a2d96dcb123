package cluster

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// AddService makes the Service, with the ports that kubeadm gives it. Changes
// are made to it before.
func (s *Stage) AddService(changes ...func(*corev1.Service)) {
	s.t.Helper()
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: Service, Labels: map[string]string{"k8s-app": Service}},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"k8s-app": Service},
			Ports: []corev1.ServicePort{
				{Name: "dns", Protocol: corev1.ProtocolUDP, Port: 53},
				{Name: "dns-tcp", Protocol: corev1.ProtocolTCP, Port: 53},
				{Name: "metrics", Protocol: corev1.ProtocolTCP, Port: 9153},
			},
		},
	}
	for _, change := range changes {
		change(service)
	}
	s.touch()
	_, err := s.cluster.Admin.CoreV1().Services(s.Namespace).Create(s.t.Context(), service, metav1.CreateOptions{})
	s.must("create service", err)
}

// ClusterIPs are the addresses of the Service.
func (s *Stage) ClusterIPs() (list []netip.Addr) {
	s.t.Helper()
	service, err := s.cluster.Admin.CoreV1().Services(s.Namespace).Get(s.t.Context(), Service, metav1.GetOptions{})
	s.must("get service", err)
	for _, ip := range service.Spec.ClusterIPs {
		list = append(list, netip.MustParseAddr(ip))
	}
	return list
}

// Prefers sets the traffic distribution of a Service that is made.
func Prefers(distribution string) func(*corev1.Service) {
	return func(service *corev1.Service) { service.Spec.TrafficDistribution = &distribution }
}

// DualStack asks for both families in a Service that is made.
func DualStack(service *corev1.Service) {
	policy := corev1.IPFamilyPolicyRequireDualStack
	service.Spec.IPFamilyPolicy = &policy
}

// NamedTargetPorts makes a Service find the DNS ports of its pods by the names
// of container ports, which are those of its own ports.
func NamedTargetPorts(service *corev1.Service) {
	for i := range service.Spec.Ports[:2] {
		service.Spec.Ports[i].TargetPort = intstr.FromString(service.Spec.Ports[i].Name)
	}
}

// WithoutSelector makes a Service whose slices somebody else writes.
func WithoutSelector(service *corev1.Service) { service.Spec.Selector = nil }

// SetTrafficDistribution changes it; "" removes it.
func (s *Stage) SetTrafficDistribution(distribution string) {
	s.t.Helper()
	value := "null"
	if distribution != "" {
		value = `"` + distribution + `"`
	}
	s.PatchService(`{"spec":{"trafficDistribution":` + value + `}}`)
}

// Resync makes the controller look at the Service again.
func (s *Stage) Resync() {
	s.t.Helper()
	s.resyncs++
	s.PatchService(fmt.Sprintf(`{"metadata":{"labels":{"resync":"%d"}}}`, s.resyncs))
}

// PatchService changes the Service by a merge patch.
func (s *Stage) PatchService(patch string) {
	s.t.Helper()
	s.touch()
	_, err := s.cluster.Admin.CoreV1().Services(s.Namespace).Patch(s.t.Context(), Service,
		types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	s.must("patch service", err)
}

// AddSlice makes a slice of the Service that its controller does not own. Its
// ports and family are those of the controller's unless they are set.
func (s *Stage) AddSlice(slice *discoveryv1.EndpointSlice) {
	s.t.Helper()
	complete(slice)
	s.touch()
	_, err := s.cluster.Admin.DiscoveryV1().EndpointSlices(s.Namespace).Create(s.t.Context(), slice, metav1.CreateOptions{})
	s.must("create slice", err)
}

// UpdateSlice replaces a slice made by AddSlice.
func (s *Stage) UpdateSlice(slice *discoveryv1.EndpointSlice) {
	s.t.Helper()
	complete(slice)
	s.touch()
	_, err := s.cluster.Admin.DiscoveryV1().EndpointSlices(s.Namespace).Update(s.t.Context(), slice, metav1.UpdateOptions{})
	s.must("update slice", err)
}

// RemoveSlice deletes a slice.
func (s *Stage) RemoveSlice(name string) {
	s.t.Helper()
	s.touch()
	err := s.cluster.Admin.DiscoveryV1().EndpointSlices(s.Namespace).Delete(s.t.Context(), name, metav1.DeleteOptions{})
	s.must("delete slice", err)
}

func complete(slice *discoveryv1.EndpointSlice) {
	if slice.Labels == nil {
		slice.Labels = map[string]string{}
	}
	slice.Labels[discoveryv1.LabelServiceName] = Service
	if slice.AddressType == "" {
		slice.AddressType = discoveryv1.AddressTypeIPv4
	}
	if slice.Ports == nil {
		slice.Ports = dnsPorts()
	}
}

func dnsPorts() []discoveryv1.EndpointPort {
	udp, tcp := corev1.ProtocolUDP, corev1.ProtocolTCP
	names, number := [2]string{"dns", "dns-tcp"}, int32(53)
	return []discoveryv1.EndpointPort{
		{Name: &names[0], Protocol: &udp, Port: &number},
		{Name: &names[1], Protocol: &tcp, Port: &number},
	}
}

// Addresses returns the IPv4 and the IPv6 address of a pod.
func (s *Stage) Addresses(pod string) (four, six netip.Addr) {
	ips := s.pods[pod].Status.PodIPs
	return netip.MustParseAddr(ips[0].IP), netip.MustParseAddr(ips[1].IP)
}
