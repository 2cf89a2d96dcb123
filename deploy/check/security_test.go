package check

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
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
