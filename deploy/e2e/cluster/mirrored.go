//lint:file-ignore SA1019 Endpoints are deprecated, and are still mirrored into slices.

package cluster

import (
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SetEndpoints makes or replaces the Endpoints object of the Service, which is
// the way of people and controllers that know no slices.
func (s *Stage) SetEndpoints(node string, addresses ...string) {
	s.t.Helper()
	name := s.NodeName(node)
	object := &corev1.Endpoints{
		ObjectMeta: metav1.ObjectMeta{Name: Service},
		Subsets: []corev1.EndpointSubset{{
			Ports: []corev1.EndpointPort{
				{Name: "dns", Protocol: corev1.ProtocolUDP, Port: 53},
				{Name: "dns-tcp", Protocol: corev1.ProtocolTCP, Port: 53},
			},
		}},
	}
	for _, address := range addresses {
		object.Subsets[0].Addresses = append(object.Subsets[0].Addresses,
			corev1.EndpointAddress{IP: address, NodeName: &name})
	}
	client := s.cluster.Admin.CoreV1().Endpoints(s.Namespace)
	s.touch()
	_, err := client.Update(s.t.Context(), object, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = client.Create(s.t.Context(), object, metav1.CreateOptions{})
	}
	s.must("set endpoints", err)
}
