package e2e

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/releaseutil"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// installation is a release of the chart: what 'helm install nodens -n kube-system'
// makes, in its order, and what 'helm uninstall' runs in the end.
type installation struct {
	objects []*unstructured.Unstructured
	after   []*release.Hook // of post-delete, by weight
}

func newInstallation(t *testing.T, values map[string]any) installation {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	chart, err := loader.LoadDir("../chart")
	must(err)
	text, err := shared.cluster.Version()
	must(err)
	version, err := chartutil.ParseKubeVersion(text)
	must(err)
	capabilities := &chartutil.Capabilities{KubeVersion: *version, APIVersions: chartutil.DefaultVersionSet}
	options := chartutil.ReleaseOptions{Name: "nodens", Namespace: metav1.NamespaceSystem, IsInstall: true, Revision: 1}
	all, err := chartutil.ToRenderValues(chart, values, options, capabilities)
	must(err)
	files, err := engine.Engine{Strict: true}.Render(chart, all)
	must(err)
	maps.DeleteFunc(files, func(name, _ string) bool { return strings.HasSuffix(name, ".txt") })
	hooks, sorted, err := releaseutil.SortManifests(files, capabilities.APIVersions, releaseutil.InstallOrder)
	must(err)
	var in installation
	for _, m := range sorted {
		in.objects = append(in.objects, decoded(t, m.Content)...)
	}
	for _, h := range hooks {
		if slices.Contains(h.Events, release.HookPostDelete) {
			in.after = append(in.after, h)
		}
	}
	slices.SortStableFunc(in.after, func(a, b *release.Hook) int { return a.Weight - b.Weight })
	return in
}

// decoded are the objects of a text.
func decoded(t *testing.T, text string) (list []*unstructured.Unstructured) {
	t.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(text)), 4096)
	for {
		one := &unstructured.Unstructured{}
		err := decoder.Decode(&one.Object)
		switch {
		case errors.Is(err, io.EOF):
			return list
		case err != nil:
			t.Fatal(err)
		case len(one.Object) > 0: // not only a comment
			list = append(list, one)
		}
	}
}

// The chart with no values but its own, on a fresh node with the API server of a cluster:
// installed, asked, its daemon killed, updated, uninstalled.
func TestChartInstall(t *testing.T) {
	p := newSite(t)
	before := p.picture()
	a := newApplier(t)
	in := newInstallation(t, nil)
	for _, object := range in.objects {
		a.create(object)
	}
	p.rounds("the DaemonSet is rolled out", func() bool { return p.rolled("nodens") })
	p.answers(ownAddress)
	if err := p.kubelet.Live("nodens", "nodens"); err != nil {
		t.Errorf("the liveness probe: %v", err)
	}
	p.nearestAnswers()
	page := p.metrics(9253)
	for _, series := range [][]string{
		asked("10.1.0.53"),
		{"coredns_dns_requests_total", `server="dns://169.254.20.10:53"`, `zone="cluster.local."`},
		{"nodens_guard_connected"},
	} {
		if !has(page, series...) {
			t.Errorf("no %v:\n%s", series, page)
		}
	}
	if page := p.metrics(9254); !has(page, "nodens_fallback_ready") {
		t.Errorf("no fallback:\n%s", page)
	}

	p.killed()
	p.updated()
	p.uninstalled(a, in)
	p.isAgain(before)
}

// killed lets the kernel have the queries while no daemon runs.
func (p *site) killed() {
	p.t.Helper()
	serve := p.kubelet.Container("nodens", "nodens")
	p.must(syscall.Kill(serve.FirstPID(), syscall.SIGKILL))
	<-serve.Done()
	for _, network := range []string{"udp", "tcp"} {
		p.until("the fallback over "+network, func() bool {
			return p.asks(p.Routed, network, ownAddress, "kubernetes.default.svc.cluster.local.", "10.96.0.1") == nil
		})
	}
	p.until("the fallback is counted", func() bool { return has(p.metrics(9254), "nodens_fallback_packets_total") })
	// While the controller takes the pod for one that does not serve, an update would not
	// wait for its successor.
	p.rounds("the controller knows of the end", func() bool { return !p.rolled("nodens") })
	p.rounds("the daemon is started anew", func() bool { return p.rolled("nodens") })
}

// updated replaces the pod by one that starts beside it.
func (p *site) updated() {
	p.t.Helper()
	old := p.kubelet.Container("nodens", "nodens").ID
	streams := []*stream{p.ask("a pod", p.Routed, ownAddress), p.ask("a pod on the bridge", p.Bridged, ownAddress), p.ask("the node", p.Space, ownAddress)}
	p.change("nodens", "1")
	p.rounds("the DaemonSet is rolled out again", func() bool { return p.rolled("nodens") && p.kubelet.Alone("nodens") })
	p.nothingLost(streams...)
	if now := p.kubelet.Container("nodens", "nodens").ID; now == old {
		p.t.Errorf("%s still runs", old)
	}
	p.answers(ownAddress)
}

// uninstalled does what 'helm uninstall --wait' does.
func (p *site) uninstalled(a *applier, in installation) {
	p.t.Helper()
	for _, object := range slices.Backward(in.objects) {
		a.remove(object)
	}
	p.rounds("the pods are gone", func() bool { return p.gone("nodens") })
	var hooked []*unstructured.Unstructured
	for _, h := range in.after {
		for _, object := range decoded(p.t, h.Manifest) {
			hooked = append(hooked, object)
			a.create(object)
			if object.GetKind() == "Job" {
				p.rounds("the Job "+object.GetName(), func() bool { return p.succeeded(object.GetName()) })
			}
		}
	}
	for _, object := range hooked {
		a.remove(object)
	}
	p.rounds("the pods of the clean-up are gone", func() bool {
		return !slices.ContainsFunc(hooked, func(o *unstructured.Unstructured) bool { return !p.gone(o.GetName()) })
	})
}

func (p *site) succeeded(job string) bool {
	p.t.Helper()
	j, err := shared.cluster.Admin.BatchV1().Jobs(p.s.Namespace).Get(p.t.Context(), job, metav1.GetOptions{})
	p.must(err)
	for _, c := range j.Status.Conditions {
		if c.Type == batchv1.JobFailed && c.Status == "True" {
			p.t.Fatalf("the Job %s has failed: %s", job, c.Message)
		}
	}
	return j.Status.Succeeded > 0
}
