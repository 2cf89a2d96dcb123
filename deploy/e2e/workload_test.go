package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/nodens-dns/nodens/bench/load"
	"github.com/nodens-dns/nodens/bench/names"
	"github.com/nodens-dns/nodens/bench/space"
)

// applier makes and deletes objects of any kind, as kubectl and Helm do.
type applier struct {
	t      *testing.T
	client dynamic.Interface
	groups []*restmapper.APIGroupResources
}

func newApplier(t *testing.T) *applier {
	t.Helper()
	groups, err := restmapper.GetAPIGroupResources(shared.cluster.Admin.Discovery())
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(shared.cluster.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	return &applier{t, client, groups}
}

func (a *applier) of(object *unstructured.Unstructured) dynamic.ResourceInterface {
	a.t.Helper()
	kind := object.GroupVersionKind()
	mapping, err := restmapper.NewDiscoveryRESTMapper(a.groups).RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		a.t.Fatal(err)
	}
	if object.GetNamespace() == "" {
		return a.client.Resource(mapping.Resource)
	}
	return a.client.Resource(mapping.Resource).Namespace(object.GetNamespace())
}

// create makes an object, in which nothing may be unknown. It is gone after the test.
func (a *applier) create(object *unstructured.Unstructured) {
	a.t.Helper()
	_, err := a.of(object).Create(a.t.Context(), object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		a.t.Fatalf("%s %s: %v", object.GetKind(), object.GetName(), err)
	}
	a.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		background := metav1.DeletePropagationBackground
		_ = a.of(object).Delete(ctx, object.GetName(), metav1.DeleteOptions{PropagationPolicy: &background})
	})
}

// remove deletes an object and, in place of the garbage collector, the pods of it.
func (a *applier) remove(object *unstructured.Unstructured) {
	a.t.Helper()
	background := metav1.DeletePropagationBackground
	err := a.of(object).Delete(a.t.Context(), object.GetName(), metav1.DeleteOptions{PropagationPolicy: &background})
	if err != nil && !apierrors.IsNotFound(err) {
		a.t.Fatalf("%s %s: %v", object.GetKind(), object.GetName(), err)
	}
	if kind := object.GetKind(); kind == "DaemonSet" || kind == "Job" {
		removePods(a.t, object.GetNamespace(), object.GetName())
	}
}

// removePods deletes the pods that are of a workload.
func removePods(t *testing.T, namespace, owner string) {
	t.Helper()
	pods := shared.cluster.Admin.CoreV1().Pods(namespace)
	list, err := pods.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		for _, o := range list.Items[i].OwnerReferences {
			if o.Name != owner {
				continue
			}
			// The Job controller, which would do it, may have lost its Job already.
			_, _ = pods.Patch(t.Context(), list.Items[i].Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			if err := pods.Delete(t.Context(), list.Items[i].Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
		}
	}
}

// gone tells whether a workload has no pods left.
func (p *site) gone(owner string) bool {
	p.t.Helper()
	list, err := shared.cluster.Admin.CoreV1().Pods(p.s.Namespace).List(p.t.Context(), metav1.ListOptions{})
	p.must(err)
	for i := range list.Items {
		for _, o := range list.Items[i].OwnerReferences {
			if o.Name == owner {
				return false
			}
		}
	}
	return true
}

// complete tells whether every pod of a DaemonSet is there, of its present form.
func complete(d *appsv1.DaemonSet) bool {
	s := d.Status
	return s.ObservedGeneration >= d.Generation && s.DesiredNumberScheduled == 2 &&
		s.UpdatedNumberScheduled == s.DesiredNumberScheduled && s.NumberAvailable == s.DesiredNumberScheduled
}

// rolled tells whether a DaemonSet is complete.
func (p *site) rolled(name string) bool {
	p.t.Helper()
	d, err := shared.cluster.Admin.AppsV1().DaemonSets(p.s.Namespace).Get(p.t.Context(), name, metav1.GetOptions{})
	p.must(err)
	return complete(d)
}

// rolledOut stands for the container of another image: kubectl, which waits for a
// DaemonSet, and else one that never ends.
func rolledOut(ctx context.Context, c corev1.Container) bool {
	if len(c.Args) < 3 || c.Args[0] != "rollout" || c.Args[1] != "status" {
		return false
	}
	namespace := metav1.NamespaceDefault
	for _, arg := range c.Args[3:] {
		if value, ok := strings.CutPrefix(arg, "--namespace="); ok {
			namespace = value
		}
	}
	d, err := shared.cluster.Admin.AppsV1().DaemonSets(namespace).Get(ctx, strings.TrimPrefix(c.Args[2], "daemonset/"), metav1.GetOptions{})
	return err == nil && complete(d)
}

// change patches the template of a DaemonSet, so that it rolls.
func (p *site) change(daemonSet, value string) {
	p.t.Helper()
	patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"turn":%q}}}}}`, value)
	_, err := shared.cluster.Admin.AppsV1().DaemonSets(p.s.Namespace).Patch(p.t.Context(), daemonSet,
		types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	p.must(err)
}

// stream is a load under way at an address of the node. Every query is one datagram, of
// which each is accounted for.
type stream struct {
	p    *site
	name string
	run  *load.Run
	got  *load.Report
	end  context.CancelFunc
	done sync.WaitGroup
	// dropped is what dropped said at the start.
	dropped uint64
}

// ask starts a load of names that every server knows.
func (p *site) ask(name string, from space.Space, at string) *stream {
	p.t.Helper()
	mix, err := names.NewMix(names.Config{List: []names.Listed{
		{Name: "kubernetes", Namespace: "default", V4: netip.MustParseAddr("10.96.0.1")},
		{Name: "kube-dns", Namespace: "kube-system", V4: netip.MustParseAddr(clusterAddress)},
	}, TTL: 30})
	p.must(err)
	flat := mix.Flat(1)
	st := &stream{p: p, name: name, dropped: p.dropped()}
	from.In(p.t, func() (err error) {
		st.run, err = load.New(load.Config{
			Target: netip.AddrPortFrom(netip.MustParseAddr(at), 53), AllowRemote: true, Transport: load.UDP, FreshPorts: true,
			Source: func(int) load.Source { return flat },
			Stages: []load.Stage{load.Steady("begin", 200, 0)},
			Enter:  func() error { return unix.Setns(from.FD(), unix.CLONE_NEWNET) },
		})
		return err
	})
	ctx, cancel := context.WithCancel(context.Background())
	st.end = cancel
	st.done.Go(func() { st.got, _ = st.run.Run(ctx) }) // its only error is being run twice
	p.t.Cleanup(func() { cancel(); st.done.Wait() })
	return st
}

// stop ends it, and says what became of the queries.
func (st *stream) stop() load.Counts {
	st.p.t.Helper()
	st.end()
	st.done.Wait()
	c := st.got.Total
	st.p.t.Logf("%s: %d queries, %d lost, %d wrong, %d SERVFAIL, %d late; %d overflowed, left %v late (p99)", st.name, c.Sent, c.Lost, c.Wrong,
		c.ServFail, c.Late, st.got.Generator.Overflow, st.got.Generator.Lag.P99.Round(time.Millisecond))
	for _, text := range st.got.Examples {
		st.p.t.Log(text)
	}
	return c
}

// nothingLost ends streams, and expects that no query was lost, unless the machine was too
// busy with other things to tell: then queries left late.
func (p *site) nothingLost(streams ...*stream) {
	p.t.Helper()
	dropped := p.dropped() - streams[0].dropped
	var late, worst time.Duration
	for _, st := range streams {
		st.stop()
		lag := st.got.Generator.Lag
		late, worst = max(late, lag.P99), max(worst, lag.Max)
	}
	for _, st := range streams {
		c := st.got.Total
		lost := c.Lost + c.Wrong + c.ServFail + c.Truncated
		switch {
		case c.Sent == 0:
			p.t.Errorf("%s asked nothing", st.name)
		case c.Wrong == 0 && (late > 100*time.Millisecond || worst > 500*time.Millisecond):
			p.t.Logf("not judged, queries left up to %v late: %s, %d of %d lost", worst, st.name, lost, c.Sent)
		case lost > st.got.Generator.Overflow+dropped:
			p.t.Errorf("%s: %+v, want nothing lost, wrong or failed", st.name, c)
		}
	}
}

// dropped is how many datagrams the kernel dropped because a receive buffer was full: of
// a CoreDNS that had no CPU.
func (p *site) dropped() (sum uint64) {
	p.t.Helper()
	for _, s := range []space.Space{p.Space, p.Bridged, p.Routed, p.Answers, p.FarAnswers} {
		s.In(p.t, func() error {
			data, err := os.ReadFile("/proc/thread-self/net/snmp")
			sum += space.UDPCounter(string(data), "RcvbufErrors")
			return err
		})
	}
	return sum
}
