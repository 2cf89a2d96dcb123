package cluster

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// NodeName is the name that the API knows a Node of the stage by.
func (s *Stage) NodeName(name string) string { return s.Namespace + "-" + name }

// AddNode makes a Node, with the labels that a kubelet gives it; a zone of "" leaves the
// cloud's out.
func (s *Stage) AddNode(name, zone string) {
	s.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.NodeName(name), Labels: map[string]string{
		corev1.LabelOSStable: "linux", corev1.LabelHostname: s.NodeName(name),
	}}}
	if zone != "" {
		node.Labels[ZoneLabel] = zone
	}
	s.touch()
	_, err := s.cluster.Admin.CoreV1().Nodes().Create(s.t.Context(), node, metav1.CreateOptions{})
	s.must("create node", err)
	s.nodes = append(s.nodes, node.Name)
}

// SetZone changes the zone label of a Node; "" removes it.
func (s *Stage) SetZone(name, zone string) {
	s.t.Helper()
	value := "null"
	if zone != "" {
		value = `"` + zone + `"`
	}
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, ZoneLabel, value)
	s.touch()
	_, err := s.cluster.Admin.CoreV1().Nodes().Patch(s.t.Context(), s.NodeName(name),
		types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	s.must("patch node", err)
}

// LoseNode does what the node controller does when a kubelet falls silent: the
// Node's condition becomes Unknown and its pods are marked not ready. It makes
// one request for each pod and one for the Node.
func (s *Stage) LoseNode(name string) {
	s.t.Helper()
	node := s.NodeName(name)
	patch := `{"status":{"conditions":[{"type":"Ready","status":"Unknown","reason":"NodeStatusUnknown"}]}}`
	_, err := s.cluster.Admin.CoreV1().Nodes().Patch(s.t.Context(), node,
		types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	s.must("patch status of node", err)
	for name, pod := range s.pods {
		if pod.Spec.NodeName == node {
			s.Ready(name, false)
		}
	}
}

// RemoveNode deletes a Node object. Its pods stay, as they do until the garbage
// collector of pods has seen it.
func (s *Stage) RemoveNode(name string) {
	s.t.Helper()
	s.touch()
	err := s.cluster.Admin.CoreV1().Nodes().Delete(s.t.Context(), s.NodeName(name), metav1.DeleteOptions{})
	s.must("delete node", err)
}

// ReadyNode does what a kubelet does when its node is up: it says so, and how
// many CPUs there are.
func (s *Stage) ReadyNode(name, cpus string) {
	s.t.Helper()
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":"True"}],"allocatable":{"cpu":%q}}}`, cpus)
	_, err := s.cluster.Admin.CoreV1().Nodes().Patch(s.t.Context(), s.NodeName(name),
		types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	s.must("patch status of node", err)
}
