package check

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

func labelSet(of map[string]string) labels.Set { return of }

// violations are what keeps a pod from a level of the Pod Security Standards.
func violations(t *testing.T, level api.Level, p pod) []string {
	t.Helper()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	at := api.LevelVersion{Level: level, Version: api.LatestVersion()}
	var reasons []string
	for _, result := range evaluator.EvaluatePod(at, &p.meta, &p.spec) {
		if !result.Allowed {
			reasons = append(reasons, result.ForbiddenReason)
		}
	}
	slices.Sort(reasons)
	return reasons
}

// With the pod network nothing is asked for that the strictest level forbids.
func TestNonePassesRestricted(t *testing.T) {
	for _, version := range []string{newest, oldest} {
		objects, hooks := render(t, version, map[string]any{"mode": "none", "ciliumLocalRedirectPolicy": map[string]any{"enabled": true}})
		pods := podsOf(t, append(objects, hooks...))
		if len(pods) != 1 {
			t.Fatalf("%d workloads, want one", len(pods))
		}
		if faults := violations(t, api.LevelRestricted, pods[0]); len(faults) > 0 {
			t.Errorf("%s: %q", version, faults)
		}
	}
}

// The other modes are privileged, for these reasons and no others.
func TestWhyPrivileged(t *testing.T) {
	want := []string{"hostPath volumes", "host namespaces", "non-default capabilities"}
	slices.Sort(want)
	for mode, values := range map[string]map[string]any{
		"link-local": {}, "service": {"mode": "service", "config": map[string]any{"dnsServer": "10.96.0.10"}},
	} {
		objects, _ := render(t, newest, values)
		set := daemon(t, objects)
		p := pod{set.Name, set.Spec.Template.ObjectMeta, set.Spec.Template.Spec}
		if got := violations(t, api.LevelBaseline, p); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", mode, got, want)
		}
		// Without guard and what belongs to it nothing but the network of the host is left.
		p.spec.InitContainers, p.spec.Volumes = nil, slices.DeleteFunc(p.spec.Volumes, func(v corev1.Volume) bool { return v.HostPath != nil })
		if got := violations(t, api.LevelRestricted, p); !slices.Equal(got, []string{"host namespaces"}) {
			t.Errorf("%s without guard: %q", mode, got)
		}
	}
}

// What runs once on every node needs the same as guard; what only asks the API server
// needs no power, and where it comes before the pod network, that of the host.
func TestWhyOthersArePrivileged(t *testing.T) {
	strong := []string{"host namespaces", "hostPath volumes", "non-default capabilities"}
	want := map[string][]string{"cleanup": strong, "preflight": strong, "migration": strong, "taint": {"host namespaces"}, "cleanup-wait": nil}
	on := map[string]any{"enabled": true}
	objects, hooks := render(t, newest, map[string]any{"preflight": on, "migration": on, "startupTaint": on})
	seen := map[string]bool{}
	for _, p := range podsOf(t, append(objects, hooks...)) {
		component := p.meta.Labels["app.kubernetes.io/component"]
		if component == "dns" {
			continue
		}
		seen[component] = true
		level := api.LevelBaseline
		if len(want[component]) == 0 {
			level = api.LevelRestricted
		}
		if got := violations(t, level, p); !slices.Equal(got, want[component]) {
			t.Errorf("%s: %q, want %q", component, got, want[component])
		}
	}
	if len(seen) != len(want) {
		t.Errorf("seen are %v only", seen)
	}
}

// The process that reads what strangers send has no power over the network, and
// the one that has it reads no such thing. It holds the token only where it follows the
// endpoints for it: in the pod of the other.
func TestPowersAreApart(t *testing.T) {
	for from, texts := range shipped(t) {
		if !strings.HasPrefix(from, "chart/") && !strings.HasPrefix(from, "manifests/") {
			continue
		}
		for _, p := range podsOf(t, texts) {
			for _, c := range p.containers() {
				checkPowers(t, from, p, c)
			}
		}
	}
}

func checkPowers(t *testing.T, from string, p pod, c corev1.Container) {
	t.Helper()
	at := from + ": " + p.name + "/" + c.Name
	s := c.SecurityContext
	if s == nil || s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
		t.Errorf("%s does not drop all capabilities", at)
		return
	}
	if s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
		t.Errorf("%s may escalate, or write to its root", at)
	}
	uid := s.RunAsUser
	if uid == nil && p.spec.SecurityContext != nil {
		uid = p.spec.SecurityContext.RunAsUser
	}
	root := uid == nil || *uid == 0
	strong := slices.Contains(s.Capabilities.Add, "NET_ADMIN")
	if root != strong {
		t.Errorf("%s: root %t, NET_ADMIN %t", at, root, strong)
	}
	hasToken := slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "token" })
	if strong && hasToken && c.Name != "guard" {
		t.Errorf("%s has both power and a token", at)
	}
}

// The file of CoreDNS in its image asks for NET_BIND_SERVICE, at whatever port it listens:
// without that in the container's set the kernel does not start it.
func TestCoreDNSMayStart(t *testing.T) {
	seen := 0
	for from, texts := range shipped(t) {
		for _, p := range podsOf(t, texts) {
			for _, c := range p.containers() {
				if !strings.Contains(c.Image, "/coredns:") {
					continue
				}
				seen++
				if s := c.SecurityContext; s == nil || s.Capabilities == nil || !slices.Contains(s.Capabilities.Add, "NET_BIND_SERVICE") {
					t.Errorf("%s: %s/%s is not given NET_BIND_SERVICE", from, p.name, c.Name)
				}
			}
		}
	}
	if seen < 5 {
		t.Errorf("%d containers of CoreDNS are shipped", seen)
	}
}

// The clean-up runs when the release's own priority class is gone.
func TestCleanupHasItsPriorityClass(t *testing.T) {
	_, hooks := render(t, newest, map[string]any{"priorityClass": map[string]any{"create": true}})
	var there []string
	for _, class := range typed[schedulingv1.PriorityClass](t, hooks) {
		there = append(there, class.Name)
	}
	for _, set := range typed[appsv1.DaemonSet](t, hooks) {
		if want := set.Spec.Template.Spec.PriorityClassName; !slices.Contains(there, want) {
			t.Errorf("%s has the class %q of %q", set.Name, want, there)
		}
	}
	if len(there) != 1 {
		t.Errorf("classes of the clean-up are %q", there)
	}
}

// Who does not ask the API server has no token for it.
func TestTokens(t *testing.T) {
	for from, texts := range shipped(t) {
		if !strings.HasPrefix(from, "chart/") {
			continue
		}
		set := daemon(t, texts)
		spec := set.Spec.Template.Spec
		if spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken {
			t.Errorf("%s: every container gets a token", from)
		}
		has := slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Projected != nil })
		if want := !strings.Contains(from, "no-rbac"); has != want {
			t.Errorf("%s: token %t, want %t", from, has, want)
		}
	}
}

// What the service accounts of the chart may do with all of it switched on, and nothing
// beside: nobody may change anything but taint a node.
func TestRights(t *testing.T) {
	on := map[string]any{"enabled": true}
	objects, hooks := render(t, newest, map[string]any{
		"preflight": on, "migration": on, "startupTaint": on, "rbac": map[string]any{"readNode": true},
	})
	texts := append(objects, hooks...)
	got := map[string][]rbacv1.PolicyRule{}
	for _, r := range typed[rbacv1.Role](t, texts) {
		got["Role "+r.Name] = r.Rules
	}
	for _, r := range typed[rbacv1.ClusterRole](t, texts) {
		got["ClusterRole "+r.Name] = r.Rules
	}
	want := map[string]string{
		"Role nodens-endpointslices": "list,watch endpointslices.discovery.k8s.io",
		"Role nodens-cleanup":        "get,list,watch daemonsets.apps",
		"Role nodens-taint":          "get,list,watch pods.",
		"ClusterRole nodens-node":    "get nodes.",
		"ClusterRole nodens-taint":   "get,patch nodes.",
	}
	for name, rules := range got {
		if text := says(rules); text != want[name] {
			t.Errorf("%s allows %s, want %q", name, text, want[name])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d Roles, want %d", len(got), len(want))
	}
	for _, object := range append(documents(t, "../manifests/rbac.yaml"), documents(t, "../manifests/rbac-node.yaml")...) {
		switch r := decode(t, object).(type) {
		case *rbacv1.Role:
			if text := says(r.Rules); text != want["Role "+r.Name] {
				t.Errorf("deploy/manifests: %s allows %s", r.Name, text)
			}
		case *rbacv1.ClusterRole:
			if text := says(r.Rules); text != want["ClusterRole "+r.Name] {
				t.Errorf("deploy/manifests: %s allows %s", r.Name, text)
			}
		}
	}
	alone, _ := render(t, newest, nil)
	if roles, cluster := typed[rbacv1.Role](t, alone), typed[rbacv1.ClusterRole](t, alone); len(roles) != 1 || len(cluster) != 0 {
		t.Errorf("the default has %d Roles and %d ClusterRoles, want the one for EndpointSlices", len(roles), len(cluster))
	}
}

// says is what rules allow, each as verbs and resource.group.
func says(rules []rbacv1.PolicyRule) string {
	var all []string
	for _, r := range rules {
		all = append(all, strings.Join(r.Verbs, ",")+" "+strings.Join(r.Resources, ",")+"."+strings.Join(r.APIGroups, ","))
	}
	return strings.Join(all, "; ")
}

// A new node waits for DNS: its taint goes once the pod of nodens there is ready, and not
// before. Nothing that this takes is kept away by the taint, and none of it is forbidden.
func TestStartupTaint(t *testing.T) {
	objects, _ := render(t, newest, map[string]any{"startupTaint": map[string]any{"enabled": true}})
	at := slices.IndexFunc(podsOf(t, objects), func(p pod) bool { return p.name == "nodens-taint" })
	if at < 0 {
		t.Fatal("nothing removes the taint")
	}
	remover, daemon := podsOf(t, objects)[at], daemon(t, objects).Spec.Template
	for name, list := range map[string][]corev1.Toleration{"nodens": daemon.Spec.Tolerations, remover.name: remover.spec.Tolerations} {
		if !slices.Contains(list, corev1.Toleration{Operator: corev1.TolerationOpExists}) {
			t.Errorf("the taint keeps %s away", name)
		}
	}
	if mount := remover.spec.AutomountServiceAccountToken; mount == nil || *mount || len(remover.spec.Containers[0].VolumeMounts) > 0 {
		t.Error("the container that stays can write to nodes")
	}
	var steps []string
	for _, c := range remover.spec.InitContainers {
		if len(c.VolumeMounts) != 1 || c.VolumeMounts[0].Name != "token" {
			t.Errorf("%s has no token", c.Name)
		}
		steps = append(steps, strings.Join(c.Args, " "))
	}
	_, text, _ := strings.Cut(steps[0], "--selector=")
	text, _, _ = strings.Cut(text, " ")
	if selector, err := labels.Parse(text); err != nil || !selector.Matches(labelSet(daemon.Labels)) || selector.Matches(labelSet(remover.meta.Labels)) {
		t.Errorf("%s (%v) is not what the pods of nodens alone have", text, err)
	}
	want := []string{
		"wait pod --for=condition=Ready --namespace=kube-system --field-selector=spec.nodeName=$(NODE_NAME) --selector=" + text + " --timeout=10m",
		"taint node $(NODE_NAME) nodens.io/starting=:NoSchedule --overwrite",
		"taint node $(NODE_NAME) nodens.io/starting:NoSchedule-",
	}
	if !slices.Equal(steps, want) {
		t.Errorf("the steps are\n%s, want\n%s", strings.Join(steps, "\n"), strings.Join(want, "\n"))
	}
}
