package check

import (
	"maps"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// nodens may have been on nodes that the selector and the tolerations of today leave out.
func TestCleanupGoesEverywhere(t *testing.T) {
	_, hooks := render(t, newest, map[string]any{
		"nodeSelector": map[string]any{"nodens": "on"}, "tolerations": []any{}, "affinity": map[string]any{"nodeAffinity": map[string]any{}},
	})
	cleaned := typed[appsv1.DaemonSet](t, hooks)
	if len(cleaned) != 1 {
		t.Fatalf("%d DaemonSets", len(cleaned))
	}
	spec := cleaned[0].Spec.Template.Spec
	if want := map[string]string{"kubernetes.io/os": "linux"}; !maps.Equal(spec.NodeSelector, want) {
		t.Errorf("it goes to %v, want %v", spec.NodeSelector, want)
	}
	if len(spec.Tolerations) != 1 || spec.Tolerations[0] != (corev1.Toleration{Operator: corev1.TolerationOpExists}) || spec.Affinity != nil {
		t.Errorf("tolerations %v, affinity %v", spec.Tolerations, spec.Affinity)
	}
}

// migrationSteps is a part of the guide, in which these stand in this order.
func migrationSteps(t *testing.T, from, to string, steps ...string) string {
	t.Helper()
	_, part, _ := strings.Cut(read(t, "../../docs/migration.md"), from)
	part, _, _ = strings.Cut(part, to)
	rest := part
	for _, step := range steps {
		_, after, ok := strings.Cut(rest, step)
		if !ok {
			t.Fatalf("%q is missing or out of its order in:\n%s", step, part)
		}
		rest = after
	}
	return part
}

// Before node-local-dns goes, nodens comes to nodes without the label.
func TestTheEndOfTheMigration(t *testing.T) {
	migrationSteps(t, "The end has an order", "## What becomes of a Corefile",
		"\nhelm upgrade nodens deploy/chart -n kube-system --reset-values\n", "rollout status daemonset/nodens\n", "delete daemonset/node-local-dns", "label node --all nodens-")
	objects, _ := render(t, newest, nil)
	if got := daemon(t, objects).Spec.Template.Spec.NodeSelector; len(got) != 1 || got["kubernetes.io/os"] != "linux" {
		t.Errorf("without values nodens goes to %v", got)
	}
}

// A node is cleaned between nodens and node-local-dns, and the command in the guide makes
// a clean-up of such nodes alone.
func TestGoingBackNodeByNode(t *testing.T) {
	part := migrationSteps(t, "## Going back", "\n## ", "kubectl apply -f -", "nodens=back --overwrite", "component=cleanup", "label node NODE nodens-", "helm uninstall nodens")
	command := regexp.MustCompile(`(?m)^(sed .*) \| kubectl`).FindStringSubmatch(part)
	if command == nil {
		t.Fatalf("no command with sed in:\n%s", part)
	}
	c := exec.Command("sh", "-c", command[1])
	c.Dir = "../.."
	text, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	found := typed[appsv1.DaemonSet](t, strings.Split(string(text), "\n---\n"))
	if len(found) != 1 || !maps.Equal(found[0].Spec.Template.Spec.NodeSelector, map[string]string{"nodens": "back"}) {
		t.Errorf("the clean-up of nodes that go back:\n%s", text)
	}
}
