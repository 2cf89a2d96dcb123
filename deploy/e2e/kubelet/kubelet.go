package kubelet

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/nodens-dns/nodens/bench/container"
	"github.com/nodens-dns/nodens/bench/space"
)

// Config is a node. All fields but Image, Dir, Space and Elsewhere are always required,
// and these unless the node is on paper.
type Config struct {
	Client    kubernetes.Interface // of somebody who may do everything
	Namespace string               // whose pods are looked at
	Node      string               // the name of the Node
	// Paper makes a node whose pods have no containers: they are ready at once, and
	// gone when they are deleted.
	Paper bool
	// Space is the network of the node, and Address the node's address in it.
	Space   space.Space
	Address string
	// Dir takes volumes, and in the folder "host" the files of the node.
	Dir string
	// Image is what a container runs whose image is named nodens.
	Image container.Image
	// Elsewhere tells whether a container of another image has done its work. It is
	// asked at each round.
	Elsewhere func(context.Context, corev1.Container) bool
}

// Kubelet plays the kubelet of one node. It is for the goroutine of the test.
type Kubelet struct {
	t    testing.TB
	cfg  Config
	pods map[types.UID]*pod
}

// New makes one, which has not looked yet.
func New(t testing.TB, cfg Config) *Kubelet {
	return &Kubelet{t, cfg, make(map[types.UID]*pod)}
}

// Sync is one round.
func (k *Kubelet) Sync() {
	k.t.Helper()
	list, err := k.cfg.Client.CoreV1().Pods(k.cfg.Namespace).List(k.t.Context(), metav1.ListOptions{})
	k.must("list pods", err)
	seen := make(map[types.UID]bool)
	for i := range list.Items {
		p := &list.Items[i]
		switch {
		case p.Spec.NodeName == "" && k.takes(p):
			k.bind(p)
		case p.Spec.NodeName == k.cfg.Node && p.OwnerReferences != nil:
			seen[p.UID] = true
			k.play(p)
		}
	}
	for uid, p := range k.pods {
		if !seen[uid] {
			p.kill()
			delete(k.pods, uid)
		}
	}
}

// takes tells whether a pod that is on no node may be on this one. The pods of a
// DaemonSet say which; others need one with containers.
func (k *Kubelet) takes(p *corev1.Pod) bool {
	affinity := p.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return !k.cfg.Paper
	}
	required := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	return slices.ContainsFunc(required.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool {
		return slices.ContainsFunc(term.MatchFields, func(f corev1.NodeSelectorRequirement) bool {
			return f.Key == metav1.ObjectNameField && slices.Contains(f.Values, k.cfg.Node)
		})
	})
}

func (k *Kubelet) bind(p *corev1.Pod) {
	k.t.Helper()
	err := k.cfg.Client.CoreV1().Pods(p.Namespace).Bind(k.t.Context(), &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, UID: p.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: k.cfg.Node},
	}, metav1.CreateOptions{})
	if !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) { // it may just have been deleted
		k.must("bind pod", err)
	}
}

// play brings a pod nearer to what it is meant to be.
func (k *Kubelet) play(object *corev1.Pod) {
	k.t.Helper()
	p := k.pods[object.UID]
	if p == nil {
		p = &pod{k: k}
		k.pods[object.UID] = p
	}
	p.object = object
	switch {
	case object.DeletionTimestamp != nil:
		if p.terminate() {
			k.remove(object)
		}
	case k.cfg.Paper:
		p.tell(corev1.PodRunning, true)
	default:
		p.run()
	}
}

// remove confirms the end of a pod.
func (k *Kubelet) remove(p *corev1.Pod) {
	k.t.Helper()
	var now int64
	err := k.cfg.Client.CoreV1().Pods(p.Namespace).Delete(k.t.Context(), p.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &p.UID},
	})
	if !apierrors.IsNotFound(err) {
		k.must("delete pod", err)
	}
}

// Container is the running container of that name in the pod whose name begins so.
func (k *Kubelet) Container(pod, name string) *container.Container {
	k.t.Helper()
	_, c := k.find(pod, name)
	if c == nil {
		k.t.Fatalf("no container %s runs in a pod %s...", name, pod)
	}
	return c.process
}

// Live asks a container's liveness probe, once.
func (k *Kubelet) Live(pod, name string) error {
	k.t.Helper()
	p, c := k.find(pod, name)
	if c == nil {
		return fmt.Errorf("no container %s runs in a pod %s", name, pod)
	}
	return p.probe(c, c.spec.LivenessProbe)
}

// Alone tells whether there is one pod whose name begins so.
func (k *Kubelet) Alone(pod string) bool {
	n := 0
	for _, p := range k.pods {
		if strings.HasPrefix(p.object.Name, pod) {
			n++
		}
	}
	return n == 1
}

// find is a running container in a pod that is not deleted.
func (k *Kubelet) find(of, name string) (*pod, *contained) {
	for _, p := range k.pods {
		c := p.started[name]
		if strings.HasPrefix(p.object.Name, of) && p.object.DeletionTimestamp == nil && c != nil && c.process != nil && c.process.Running() {
			return p, c
		}
	}
	return nil, nil
}

func (k *Kubelet) must(what string, err error) {
	k.t.Helper()
	if err != nil {
		k.t.Fatalf("%s: %v", what, err)
	}
}

// roundTime is how long a test may wait between two rounds.
const roundTime = 50 * time.Millisecond

// Until makes rounds until a condition holds.
func (k *Kubelet) Until(what string, patience time.Duration, holds func() bool, also ...*Kubelet) {
	k.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(roundTime) {
		k.Sync()
		for _, other := range also {
			other.Sync()
		}
		if holds() {
			return
		}
		if time.Now().After(deadline) {
			k.t.Fatalf("%s: not within %v\n%s", what, patience, k.workloads())
		}
	}
}

// workloads describes the DaemonSets and pods of the namespace, for people.
func (k *Kubelet) workloads() string {
	k.t.Helper()
	sets, err := k.cfg.Client.AppsV1().DaemonSets(k.cfg.Namespace).List(k.t.Context(), metav1.ListOptions{Limit: 10})
	k.must("list DaemonSets", err)
	pods, err := k.cfg.Client.CoreV1().Pods(k.cfg.Namespace).List(k.t.Context(), metav1.ListOptions{Limit: 20})
	k.must("list pods", err)
	var text strings.Builder
	for i := range sets.Items {
		s := &sets.Items[i]
		status, _ := json.Marshal(&s.Status)
		fmt.Fprintf(&text, "DaemonSet %s, generation %d: %s\n", s.Name, s.Generation, status)
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		conditions, _ := json.Marshal(p.Status.Conditions)
		fmt.Fprintf(&text, "pod %s on %q, labels %v, deleted %v: %s %s\n", p.Name, p.Spec.NodeName, p.Labels, p.DeletionTimestamp, p.Status.Phase, conditions)
	}
	return text.String()
}
