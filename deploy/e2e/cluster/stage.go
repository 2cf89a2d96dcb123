package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Service is the name of the Service of every stage, and the value of the label
// k8s-app of its pods.
const Service = "kube-dns"

// ZoneLabel is the label of a Node that names its zone.
const ZoneLabel = corev1.LabelTopologyZone

// Stage is the part of a cluster that belongs to one test: a namespace, the
// Nodes made here, and addresses that no other stage has. Its methods make one
// request each, unless they say otherwise, and end the test if that fails. They
// are for the goroutine of the test.
type Stage struct {
	// Namespace is the name of the namespace. The names of Nodes begin with it,
	// since Nodes are in none.
	Namespace string

	t       testing.TB
	cluster *Cluster
	number  int64
	nodes   []string

	pods     map[string]*corev1.Pod
	lastAddr int
	resyncs  int
	changed  time.Time
}

// Stage makes a namespace. It is not removed, since nothing here would empty it,
// but its Nodes are when the test ends, and its Services, which the controller
// would otherwise try to write slices for.
func (c *Cluster) Stage(t testing.TB) *Stage {
	t.Helper()
	s := c.stage(t)
	s.Namespace = fmt.Sprintf("stage%d", s.number)
	_, err := c.Admin.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}}, metav1.CreateOptions{})
	s.must("create namespace", err)
	t.Cleanup(s.clean)
	return s
}

// System is a stage in the namespace of the cluster itself, for one test at a time. All
// pods and slices that are there at its end are removed too.
func (c *Cluster) System(t testing.TB) *Stage {
	t.Helper()
	s := c.stage(t)
	s.Namespace = metav1.NamespaceSystem
	t.Cleanup(s.removeSlices)
	t.Cleanup(s.clean)
	t.Cleanup(s.removePods)
	return s
}

func (c *Cluster) stage(t testing.TB) *Stage {
	return &Stage{t: t, cluster: c, number: c.stages.Add(1), pods: make(map[string]*corev1.Pod)}
}

// removePods removes the pods of the namespace at once.
func (s *Stage) removePods() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var now int64
	_ = s.cluster.Admin.CoreV1().Pods(s.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{})
}

// removeSlices does what the garbage collector does when Services are gone.
func (s *Stage) removeSlices() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = s.cluster.Admin.DiscoveryV1().EndpointSlices(s.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
}

// clean removes the Nodes and, when the test failed, tells how things stood.
func (s *Stage) clean() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if s.t.Failed() {
		s.t.Logf("the slices at the end:\n%s", s.Slices(ctx))
	}
	services, err := s.cluster.Admin.CoreV1().Services(s.Namespace).List(ctx, metav1.ListOptions{})
	if err == nil {
		for i := range services.Items {
			_ = s.cluster.Admin.CoreV1().Services(s.Namespace).Delete(ctx, services.Items[i].Name, metav1.DeleteOptions{})
		}
	}
	for _, name := range s.nodes {
		_ = s.cluster.Admin.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
	}
}

// Changed is the time just before the last request that changed something.
func (s *Stage) Changed() time.Time { return s.changed }

// touch notes that a change is about to be requested.
func (s *Stage) touch() { s.changed = time.Now() }

// Slices describes the EndpointSlices of the stage, for people.
func (s *Stage) Slices(ctx context.Context) string {
	list, err := s.cluster.Admin.DiscoveryV1().EndpointSlices(s.Namespace).List(ctx, metav1.ListOptions{Limit: 20})
	if err != nil {
		return err.Error()
	}
	text := ""
	for i := range list.Items {
		slice := &list.Items[i]
		text += fmt.Sprintf("%s %s %v %d endpoints\n", slice.Name, slice.AddressType, slice.Labels, len(slice.Endpoints))
		for n := range min(len(slice.Endpoints), 4) {
			line, _ := json.Marshal(&slice.Endpoints[n])
			text += fmt.Sprintf("    %s\n", line)
		}
	}
	return text
}

// EndpointSlices lists the slices of the Service.
func (s *Stage) EndpointSlices() []discoveryv1.EndpointSlice {
	s.t.Helper()
	list, err := s.cluster.Admin.DiscoveryV1().EndpointSlices(s.Namespace).List(s.t.Context(),
		metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + Service})
	s.must("list slices", err)
	return list.Items
}

// address returns the n-th address of the stage.
func (s *Stage) address(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(64 + s.number), byte(n >> 8), byte(n)})
}

// address6 returns the n-th IPv6 address of the stage.
func (s *Stage) address6(n int) netip.Addr {
	return netip.AddrFrom16([16]byte{0xfd, 0, 0xe2, 0xe0, 0, byte(s.number), 14: byte(n >> 8), 15: byte(n)})
}

func (s *Stage) must(what string, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
}
