package check

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// pod is what a workload of ours makes pods of.
type pod struct {
	name string
	meta metav1.ObjectMeta
	spec corev1.PodSpec
}

// shipped are all objects that somebody may apply, by where they come from: the
// chart with each example for the newest and the oldest Kubernetes, the
// manifests, the overlays, CoreDNS beside it.
func shipped(t *testing.T) map[string][]string {
	t.Helper()
	return shared.shipped(t)
}

func onceShipped() func(*testing.T) map[string][]string {
	var once sync.Once
	var all map[string][]string
	return func(t *testing.T) map[string][]string {
		once.Do(func() { all = collect(t) })
		return all
	}
}

func collect(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for name, values := range examples(t) {
		for _, version := range []string{newest, oldest} {
			objects, hooks := render(t, version, values)
			all["chart/"+name+"/"+version] = append(objects, hooks...)
		}
	}
	for _, folder := range []string{"manifests", "coredns", "cilium"} {
		files, err := filepath.Glob("../" + folder + "/*.yaml")
		if err != nil || len(files) == 0 {
			t.Fatalf("nothing in %s: %v", folder, err)
		}
		for _, file := range files {
			all[folder+"/"+filepath.Base(file)] = documents(t, file)
		}
	}
	for _, folder := range overlays(t) {
		all["kustomize/"+filepath.Base(folder)] = build(t, folder)
	}
	return all
}

func overlays(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../kustomize/*/kustomization.yaml")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d overlays: %v", len(files), err)
	}
	for i, file := range files {
		files[i] = filepath.Dir(file)
	}
	return files
}

// build is 'kubectl kustomize'.
func build(t *testing.T, folder string) []string {
	t.Helper()
	result, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatalf("%s: %v", folder, err)
	}
	data, err := result.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return split(t, data)
}

// No field is there that the API does not know, and none twice.
func TestObjectsAreStrict(t *testing.T) {
	for from, texts := range shipped(t) {
		t.Run(from, func(t *testing.T) {
			if len(texts) == 0 {
				t.Fatal("no objects")
			}
			for _, text := range texts {
				decode(t, text)
			}
		})
	}
}

// podsOf are the pods of the workloads among some objects.
func podsOf(t *testing.T, texts []string) []pod {
	t.Helper()
	var all []pod
	for _, text := range texts {
		name, template := templateOf(decode(t, text))
		if template != nil {
			all = append(all, pod{name, template.ObjectMeta, template.Spec})
		}
	}
	return all
}

func templateOf(object runtime.Object) (string, *corev1.PodTemplateSpec) {
	switch w := object.(type) {
	case *appsv1.DaemonSet:
		return w.Name, &w.Spec.Template
	case *appsv1.Deployment:
		return w.Name, &w.Spec.Template
	case *batchv1.Job:
		return w.Name, &w.Spec.Template
	}
	return "", nil
}

func (p *pod) containers() []corev1.Container {
	return append(slices.Clone(p.spec.InitContainers), p.spec.Containers...)
}

// In the host network a port of a container is one of the node. Two pods of one
// node could not have it, so that no update could surge.
func TestNoHostPorts(t *testing.T) {
	for from, texts := range shipped(t) {
		if strings.HasPrefix(from, "coredns/") {
			continue
		}
		for _, p := range podsOf(t, texts) {
			for _, c := range p.containers() {
				if p.spec.HostNetwork && len(c.Ports) > 0 {
					t.Errorf("%s: %s/%s declares ports", from, p.name, c.Name)
				}
			}
		}
	}
}

// What a workload selects are its own pods.
func TestSelectors(t *testing.T) {
	for from, texts := range shipped(t) {
		for _, set := range typed[appsv1.DaemonSet](t, texts) {
			checkSelector(t, from, set.Name, set.Spec.Selector, &set.Spec.Template)
		}
		for _, d := range typed[appsv1.Deployment](t, texts) {
			checkSelector(t, from, d.Name, d.Spec.Selector, &d.Spec.Template)
		}
	}
}

func checkSelector(t *testing.T, from, name string, selector *metav1.LabelSelector, template *corev1.PodTemplateSpec) {
	t.Helper()
	for key, value := range selector.MatchLabels {
		if template.Labels[key] != value {
			t.Errorf("%s: %s selects %s=%s, and its pods have %q", from, name, key, value, template.Labels[key])
		}
	}
}

// A Service, a policy, a budget or a monitor selects the pods of one workload of the file, or
// those of the cluster's CoreDNS where the file has none.
func TestSelectorsOfOthers(t *testing.T) {
	seen := map[string]bool{}
	for from, texts := range shipped(t) {
		check := func(kind, name string, selector *metav1.LabelSelector) {
			seen[kind] = true
			s, err := metav1.LabelSelectorAsSelector(selector)
			if err != nil {
				t.Fatal(err)
			}
			var met []string
			for _, p := range podsOf(t, texts) {
				if s.Matches(labelSet(p.meta.Labels)) {
					met = append(met, p.name)
				}
			}
			if ofCoreDNS := selector.MatchLabels["k8s-app"] == "kube-dns"; len(met) != 1 && (len(met) > 0 || !ofCoreDNS) {
				t.Errorf("%s: %s %s selects the pods of %q", from, kind, name, met)
			}
		}
		for _, s := range typed[corev1.Service](t, texts) {
			check("Service", s.Name, &metav1.LabelSelector{MatchLabels: s.Spec.Selector})
		}
		for _, p := range typed[networkingv1.NetworkPolicy](t, texts) {
			check("NetworkPolicy", p.Name, &p.Spec.PodSelector)
		}
		for _, b := range typed[policyv1.PodDisruptionBudget](t, texts) {
			check("PodDisruptionBudget", b.Name, b.Spec.Selector)
		}
		for _, m := range typed[monitoring.PodMonitor](t, texts) {
			check("PodMonitor", m.Name, &m.Spec.Selector)
		}
		for _, m := range typed[monitoring.ServiceMonitor](t, texts) {
			seen["ServiceMonitor"] = true
			checkServiceMonitor(t, from, m, typed[corev1.Service](t, texts))
		}
	}
	if len(seen) != 5 {
		t.Errorf("seen are only %v", seen)
	}
}

// checkServiceMonitor looks for the one Service that is meant, and for its ports.
func checkServiceMonitor(t *testing.T, from string, m *monitoring.ServiceMonitor, services []*corev1.Service) {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(&m.Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	services = slices.DeleteFunc(services, func(s *corev1.Service) bool { return !selector.Matches(labelSet(s.Labels)) })
	if len(services) != 1 {
		t.Fatalf("%s: %d Services are monitored, want one", from, len(services))
	}
	for _, e := range m.Spec.Endpoints {
		if !slices.ContainsFunc(services[0].Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == e.Port }) {
			t.Errorf("%s: Service %s has no port %s", from, services[0].Name, e.Port)
		}
	}
}

// Two workloads of a file do not take each other's pods.
func TestSelectorsAreApart(t *testing.T) {
	for from, texts := range shipped(t) {
		sets := typed[appsv1.DaemonSet](t, texts)
		for _, set := range sets {
			selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range podsOf(t, texts) {
				if p.name != set.Name && selector.Matches(labelSet(p.meta.Labels)) {
					t.Errorf("%s: %s selects the pods of %s", from, set.Name, p.name)
				}
			}
		}
	}
}

// An update surges, keeps every node served, and waits for each pod.
func TestUpdateSurges(t *testing.T) {
	for from, texts := range shipped(t) {
		if !strings.HasPrefix(from, "chart/") {
			continue
		}
		set := daemon(t, texts)
		rolling := set.Spec.UpdateStrategy.RollingUpdate
		if rolling == nil || rolling.MaxSurge.String() != "10%" || rolling.MaxUnavailable.IntValue() != 0 || set.Spec.MinReadySeconds < 5 {
			t.Errorf("%s: %+v, %d s", from, rolling, set.Spec.MinReadySeconds)
		}
	}
}

// daemon is the DaemonSet of nodens itself.
func daemon(t *testing.T, texts []string) *appsv1.DaemonSet {
	t.Helper()
	for _, set := range typed[appsv1.DaemonSet](t, texts) {
		if set.Spec.Template.Labels["app.kubernetes.io/component"] == "dns" {
			return set
		}
	}
	t.Fatal("no DaemonSet of nodens")
	return nil
}
