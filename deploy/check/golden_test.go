package check

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

// generated are the files that others make by hand of the chart.
func generated(t *testing.T) map[string]string {
	t.Helper()
	service := map[string]any{"mode": "service", "config": map[string]any{"dnsServer": "10.96.0.10"}}
	none := map[string]any{"mode": "none"}
	linkLocal, hooks := render(t, newest, nil)
	inService, _ := render(t, newest, service)
	inNone, _ := render(t, newest, none)
	old, _ := render(t, oldest, nil)
	policy, _ := render(t, newest, map[string]any{"mode": "none", "ciliumLocalRedirectPolicy": map[string]any{"enabled": true}})
	on := map[string]any{"enabled": true}
	moving, _ := render(t, newest, map[string]any{"preflight": on, "migration": on})
	files := map[string]string{
		"../manifests/link-local.yaml":      plain("Own address 169.254.20.10, which the kubelet gives to pods as clusterDNS.", linkLocal),
		"../manifests/link-local-1.25.yaml": plain("As link-local.yaml, for Kubernetes 1.25 to 1.28.", old),
		"../manifests/service.yaml":         plain("Own address 169.254.20.10 and that of the Service kube-dns: write your own in place of 10.96.0.10.", inService),
		"../manifests/none.yaml":            plain("In the pod network, for a Cilium Local Redirect Policy (../cilium).", inNone),
		"../manifests/cleanup.yaml":         plain("Takes away what nodens left on the nodes. Apply it when nodens is gone, wait for\n# 'kubectl -n kube-system rollout status daemonset/nodens-cleanup', delete it.", append(only(t, "ConfigMap", hooks), only(t, "DaemonSet", hooks)...)),
		"../manifests/migration.yaml":       plain("On the way from node-local-dns, beside link-local.yaml: looks at every node before it\n# moves, and when it has (docs/migration.md).", named(t, []string{"nodens-preflight", "nodens-migration"}, moving)),
		"../cilium/localredirectpolicy.yaml": plain("Leads the pods' queries for kube-dns to nodens on their node. First apply\n# ../manifests/none.yaml.",
			only(t, "CiliumLocalRedirectPolicy", policy)),
		"../chart/files/alerts.yaml":    read(t, "../alerts/nodens.yaml"),
		"../chart/files/dashboard.json": read(t, "../dashboards/nodens.json"),
		"../chart/files/keys.txt":       strings.Join(keys(t), "\n") + "\n",
	}
	for _, mode := range []string{"link-local", "service", "none"} {
		files["../kustomize/"+mode+"/nodens.yaml"] = files["../manifests/"+mode+".yaml"]
	}
	return files
}

func only(t *testing.T, kind string, texts []string) []string {
	t.Helper()
	var all []string
	for _, text := range texts {
		if kindOf(t, text) == kind {
			all = append(all, text)
		}
	}
	return all
}

// named are the DaemonSets of these names.
func named(t *testing.T, names, texts []string) []string {
	t.Helper()
	return slices.DeleteFunc(only(t, "DaemonSet", texts), func(text string) bool {
		return !slices.Contains(names, typed[appsv1.DaemonSet](t, []string{text})[0].Name)
	})
}

// plain is a file for kubectl, without the marks of Helm.
func plain(says string, objects []string) string {
	marks := regexp.MustCompile(`(?m)^ +(helm\.sh/.*|checksum/.*|app\.kubernetes\.io/managed-by: .*)\n`)
	empty := regexp.MustCompile(`(?m)^  annotations:\n(spec|[a-z]+:)`)
	var out strings.Builder
	out.WriteString("# " + says + "\n# Made of the chart in deploy/chart; change it there.\n")
	for i, object := range objects {
		if i > 0 {
			out.WriteString("---\n")
		}
		object = marks.ReplaceAllString(strings.TrimSpace(object)+"\n", "")
		out.WriteString(empty.ReplaceAllString(object, "$1"))
	}
	return out.String()
}

// The manifests are what the chart gives now; so a change of the chart shows
// what it does to them.
func TestGeneratedFiles(t *testing.T) {
	files := generated(t)
	for path, want := range files {
		if os.Getenv("NODENS_UPDATE") != "" {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, []byte(want)) {
			t.Errorf("%s is not what the chart gives (%v): NODENS_UPDATE=1 go test -C deploy/check -count=1 -run TestGeneratedFiles", path, err)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
