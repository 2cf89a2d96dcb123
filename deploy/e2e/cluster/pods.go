package cluster

import (
	"encoding/json"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// AddPod makes a pod of the Service on a node, as it is when its containers run
// and its first probe has not succeeded: it has addresses, of both families,
// and is not ready. Ports are the container ports that named target ports of
// the Service resolve to. It makes two requests.
func (s *Stage) AddPod(name, node string, ports ...corev1.ContainerPort) {
	s.t.Helper()
	s.lastAddr++
	s.AddPodAt(name, node, s.address(s.lastAddr), s.address6(s.lastAddr), ports...)
}

// AddPodAt is AddPod with addresses that something real has.
func (s *Stage) AddPodAt(name, node string, four, six netip.Addr, ports ...corev1.ContainerPort) {
	s.t.Helper()
	s.create(name, node, ports)
	made := s.pods[name]
	made.Status.PodIP = four.String()
	made.Status.PodIPs = []corev1.PodIP{{IP: four.String()}, {IP: six.String()}}
	s.patchStatus(name, map[string]any{
		"phase":  corev1.PodRunning,
		"podIP":  s.pods[name].Status.PodIP,
		"podIPs": s.pods[name].Status.PodIPs,
		// A condition without a time would differ from itself when read again.
		"conditions": []corev1.PodCondition{ready(false)},
	})
}

// AddReadyPod is AddPod and Ready.
func (s *Stage) AddReadyPod(name, node string, ports ...corev1.ContainerPort) {
	s.t.Helper()
	s.AddPod(name, node, ports...)
	s.Ready(name, true)
}

func (s *Stage) create(name, node string, ports []corev1.ContainerPort) {
	s.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"k8s-app": Service}},
		Spec: corev1.PodSpec{
			NodeName:   s.NodeName(node),
			Containers: []corev1.Container{{Name: "dns", Image: "none", Ports: ports}},
		},
	}
	s.touch()
	made, err := s.cluster.Admin.CoreV1().Pods(s.Namespace).Create(s.t.Context(), pod, metav1.CreateOptions{})
	s.must("create pod", err)
	s.pods[name] = made
}

// Ready does what the kubelet does when a pod's readiness probe turns.
func (s *Stage) Ready(name string, yes bool) {
	s.t.Helper()
	s.patchStatus(name, map[string]any{"conditions": []corev1.PodCondition{ready(yes)}})
}

// Fail does what the kubelet does at a graceful shutdown of its node: the pod is
// over, and therefore not ready, without ever having been deleted.
func (s *Stage) Fail(name string) {
	s.t.Helper()
	s.patchStatus(name, map[string]any{
		"phase": corev1.PodFailed, "reason": "Terminated",
		"conditions": []corev1.PodCondition{ready(false)},
	})
}

// Terminate deletes a pod as people and controllers do. No kubelet confirms it,
// so the pod stays, terminating, until Remove.
func (s *Stage) Terminate(name string) {
	s.t.Helper()
	s.delete(name, nil)
}

// Remove deletes a pod at once, as the kubelet does at the end of a termination
// and as a forced deletion does without one.
func (s *Stage) Remove(name string) {
	s.t.Helper()
	var now int64
	s.delete(name, &now)
	delete(s.pods, name)
}

func (s *Stage) delete(name string, grace *int64) {
	s.t.Helper()
	s.touch()
	err := s.cluster.Admin.CoreV1().Pods(s.Namespace).Delete(s.t.Context(), name,
		metav1.DeleteOptions{GracePeriodSeconds: grace})
	s.must("delete pod", err)
}

func (s *Stage) patchStatus(name string, status map[string]any) {
	s.t.Helper()
	patch, err := json.Marshal(map[string]any{"status": status})
	s.must("encode the status of a pod", err)
	s.touch()
	_, err = s.cluster.Admin.CoreV1().Pods(s.Namespace).Patch(s.t.Context(), name,
		types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	s.must("patch status of pod", err)
}

func ready(yes bool) corev1.PodCondition {
	status := corev1.ConditionFalse
	if yes {
		status = corev1.ConditionTrue
	}
	return corev1.PodCondition{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.Now()}
}
