package check

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/releaseutil"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

const (
	chartFolder = "../chart"
	newest      = "v1.37.0"
	oldest      = "v1.25.0" // kubeVersion of Chart.yaml
)

// render is what 'helm template nodens -n kube-system' gives for values, in the
// order of an installation, and its hooks.
func render(t *testing.T, kubernetes string, values map[string]any) (objects, hooks []string) {
	t.Helper()
	objects, hooks, err := tryRender(kubernetes, values)
	if err != nil {
		t.Fatal(err)
	}
	return objects, hooks
}

// What nodens reads at its start only makes new pods, and nothing else does.
func TestWhatMakesNewPods(t *testing.T) {
	template := func(values map[string]any) string {
		objects, _ := render(t, newest, values)
		text, err := yaml.Marshal(daemon(t, objects).Spec.Template)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	config := func(key string, value any) map[string]any {
		return map[string]any{"config": map[string]any{key: value}}
	}
	for name, values := range map[string]map[string]any{
		"cache": config("cacheSize", "16Mi"), "address": config("localDns", "169.254.20.11"), "level": config("logLevel", "debug"),
		"routes": config("stubDomains", map[string]any{"a.example": []any{"192.0.2.1"}}),
		"mode":   {"mode": "service", "config": map[string]any{"dnsServer": "10.96.0.10"}},
	} {
		if template(values) != template(nil) {
			t.Errorf("%s: there are new pods", name)
		}
	}
	for name, values := range map[string]map[string]any{
		"link": {"guard": map[string]any{"linkName": "other"}}, "metrics of the guard": {"guard": map[string]any{"metricsAddress": "0.0.0.0:9354"}},
		"format": config("extra", map[string]any{"log": map[string]any{"format": "console"}}),
		"socket": config("extra", map[string]any{"admin": map[string]any{"socket": "/run/nodens-pod/other.sock"}}),
	} {
		if template(values) == template(nil) {
			t.Errorf("%s: there are no new pods", name)
		}
	}
}

func tryRender(kubernetes string, values map[string]any) (objects, hooks []string, err error) {
	chart, err := loader.LoadDir(chartFolder)
	if err != nil {
		return nil, nil, err
	}
	version, err := chartutil.ParseKubeVersion(kubernetes)
	if err != nil {
		return nil, nil, err
	}
	capabilities := &chartutil.Capabilities{KubeVersion: *version, APIVersions: chartutil.DefaultVersionSet}
	options := chartutil.ReleaseOptions{Name: "nodens", Namespace: "kube-system", IsInstall: true}
	all, err := chartutil.ToRenderValues(chart, values, options, capabilities)
	if err != nil {
		return nil, nil, err
	}
	files, err := engine.Engine{Strict: true}.Render(chart, all)
	if err != nil {
		return nil, nil, err
	}
	maps.DeleteFunc(files, func(name, _ string) bool { return strings.HasSuffix(name, ".txt") })
	hooked, sorted, err := releaseutil.SortManifests(files, capabilities.APIVersions, releaseutil.InstallOrder)
	if err != nil {
		return nil, nil, err
	}
	for _, m := range sorted {
		objects = append(objects, m.Content)
	}
	slices.SortFunc(hooked, func(a, b *release.Hook) int { return a.Weight - b.Weight })
	for _, h := range hooked {
		hooks = append(hooks, h.Manifest)
	}
	return objects, hooks, nil
}

// examples are the value files that are shipped, and no values at all.
func examples(t *testing.T) map[string]map[string]any {
	t.Helper()
	files, err := filepath.Glob(chartFolder + "/examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	all := map[string]map[string]any{"defaults": {}}
	for _, file := range files {
		values, err := chartutil.ReadValuesFile(file)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[strings.TrimSuffix(filepath.Base(file), ".yaml")] = values
	}
	return all
}

func TestLint(t *testing.T) {
	for name, values := range examples(t) {
		t.Run(name, func(t *testing.T) {
			for _, m := range lint.All(chartFolder, values, "kube-system", true).Messages {
				if m.Severity > support.InfoSev {
					t.Error(m)
				}
			}
		})
	}
}

// keys are those that the configuration has, each with those above it, as the program tells
// them where it finds nonsense in their place.
func keys(t *testing.T) []string {
	t.Helper()
	nodens, file := program(t), filepath.Join(t.TempDir(), "nodens.yaml")
	told := regexp.MustCompile(`(?m): (the file|\S+) is "nonsense"; write a (?:list of |mapping of (\w+(?:, \w+)*)$)`)
	all, next := []string(nil), []string{""}
	for len(next) > 0 {
		var root any
		for _, path := range next {
			root = put(root, strings.Fields(strings.NewReplacer(".", " ", "[", " [").Replace(path)))
		}
		text, err := yaml.Marshal(root)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		said, _ := exec.Command(nodens, "check", "-config", file).CombinedOutput() // it fails
		next = nil
		for _, m := range told.FindAllStringSubmatch(string(said), -1) {
			at := strings.TrimPrefix(m[1], "the file")
			if m[2] == "" {
				next = append(next, at+"[0]")
				continue
			}
			for _, key := range strings.Split(m[2], ", ") {
				next = append(next, strings.TrimPrefix(at+"."+key, "."))
			}
		}
		for _, path := range next {
			all = append(all, strings.ReplaceAll(path, "[0]", ""))
		}
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) < 100 {
		t.Fatalf("%d keys", len(all))
	}
	return all
}

// put puts nonsense at a place in a value.
func put(value any, path []string) any {
	if len(path) == 0 {
		return "nonsense"
	}
	if path[0] == "[0]" {
		list, _ := value.([]any)
		return []any{put(append(list, nil)[0], path[1:])}
	}
	mapping, ok := value.(map[string]any)
	if !ok {
		mapping = map[string]any{}
	}
	mapping[path[0]] = put(mapping[path[0]], path[1:])
	return mapping
}

// A text with commas is as good as a list: that is what node-cache's -localip
// and other charts have.
func TestAddressesAsText(t *testing.T) {
	text, _ := render(t, newest, map[string]any{"config": map[string]any{"localDns": "169.254.20.10, fd00:90de:d95::1"}})
	list, _ := render(t, newest, map[string]any{"config": map[string]any{"localDns": []any{"169.254.20.10", "fd00:90de:d95::1"}}})
	if !slices.Equal(text, list) {
		t.Errorf("they differ:\n%s", strings.Join(text, "\n---\n"))
	}
}

// The names that values have in other charts mean the same here, and the configuration
// that they come to is one that the program takes.
func TestValuesOfOtherCharts(t *testing.T) {
	objects, _ := render(t, newest, map[string]any{
		"config": map[string]any{
			"dnsDomain": "cluster.example", "localDns": "169.254.20.25", "cacheTTL": 20, "commProtocol": "force_tcp",
			"noIPv6Lookups": true, "enableLogging": true, "upstreamServers": []any{"192.0.2.53"},
		},
		"initContainers": []any{map[string]any{"name": "wait", "image": "example.org/wait:1"}},
		"lifecycle":      map[string]any{"preStop": map[string]any{"sleep": map[string]any{"seconds": 2}}},
	})
	file := filepath.Join(t.TempDir(), "nodens.yaml")
	if err := os.WriteFile(file, []byte(configOf(t, objects)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(program(t), "check", "-config", file).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	var got struct {
		Listen   []string
		QueryLog struct{ Every int }
		Routes   []struct {
			Zones, Servers       []string
			ForceTCP, FilterAAAA bool
			Cache                struct{ MaxTTL string }
		}
	}
	if err := yaml.Unmarshal([]byte(configOf(t, objects)), &got); err != nil {
		t.Fatal(err)
	}
	want := "{Listen:[169.254.20.25:53] QueryLog:{Every:1} Routes:[" +
		"{Zones:[cluster.example in-addr.arpa ip6.arpa] Servers:[] ForceTCP:true FilterAAAA:true Cache:{MaxTTL:20s}} " +
		"{Zones:[.] Servers:[192.0.2.53] ForceTCP:false FilterAAAA:true Cache:{MaxTTL:20s}}]}"
	if text := fmt.Sprintf("%+v", got); text != want {
		t.Errorf("it comes to\n%s, want\n%s", text, want)
	}
	spec := daemon(t, objects).Spec.Template.Spec
	if len(spec.InitContainers) != 2 || spec.InitContainers[1].Name != "wait" || spec.Containers[0].Lifecycle.PreStop.Sleep.Seconds != 2 {
		t.Errorf("init containers and hooks: %+v", spec)
	}
}

// What convert prints of a Corefile is a whole configuration but for the host.
func TestCustomConfig(t *testing.T) {
	folder := t.TempDir()
	corefile, file := filepath.Join(folder, "Corefile"), filepath.Join(folder, "nodens.yaml")
	if err := os.WriteFile(corefile, []byte(".:53 {\n bind 169.254.20.10 10.96.0.10\n forward . 192.0.2.53\n cache 30\n log\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	converted, err := exec.Command(program(t), "convert", "-corefile", corefile).Output()
	if err != nil {
		t.Fatal(err)
	}
	for custom, want := range map[string]string{
		string(converted): `host: {"link":"nodens","metrics":"0.0.0.0:9254","mode":"service","service":["10.96.0.10"]}`,
		string(converted) + "host: {mode: link-local}\n": "host: {mode: link-local}",
	} {
		objects, hooks := render(t, newest, map[string]any{"mode": "service", "config": map[string]any{"dnsServer": "10.96.0.10", "customConfig": custom}})
		for _, texts := range [][]string{objects, hooks} {
			got := configOf(t, texts)
			if !strings.Contains(got, want) || strings.Count(got, "host:") != 1 {
				t.Errorf("without %s:\n%s", want, got)
			}
			if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(program(t), "check", "-config", file).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		}
	}
}

// configOf is the configuration among some objects.
func configOf(t *testing.T, objects []string) string {
	t.Helper()
	for _, m := range typed[corev1.ConfigMap](t, objects) {
		if text, ok := m.Data["nodens.yaml"]; ok {
			return text
		}
	}
	t.Fatal("no configuration")
	return ""
}

// What a values file can say is in the schema, and the other way round.
func TestSchemaIsWhole(t *testing.T) {
	values, err := chartutil.ReadValuesFile(chartFolder + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	schema := readJSON(t, chartFolder+"/values.schema.json")
	for _, fault := range compareSchema("", values, schema) {
		t.Error(fault)
	}
}

// compareSchema walks values and schema where the schema closes an object.
func compareSchema(path string, values, schema map[string]any) []string {
	properties, ok := schema["properties"].(map[string]any)
	if !ok || schema["additionalProperties"] != false {
		return nil
	}
	var faults []string
	for key := range properties {
		if _, ok := values[key]; !ok && path+key != "global" {
			faults = append(faults, fmt.Sprintf("%s%s is in the schema, but not in values.yaml", path, key))
		}
	}
	for key, value := range values {
		sub, ok := properties[key].(map[string]any)
		if !ok {
			faults = append(faults, fmt.Sprintf("%s%s is in values.yaml, but not in the schema", path, key))
			continue
		}
		if inner, ok := value.(map[string]any); ok {
			faults = append(faults, compareSchema(path+key+".", inner, sub)...)
		}
	}
	return faults
}

// Before 1.29 no container starts before the others and goes on beside them.
func TestGuardByVersion(t *testing.T) {
	for version, sidecar := range map[string]bool{oldest: false, "v1.28.15": false, "v1.29.0": true, newest: true} {
		objects, _ := render(t, version, nil)
		spec := daemon(t, objects).Spec.Template.Spec
		place := spec.Containers
		if sidecar {
			place = spec.InitContainers
		}
		at := slices.IndexFunc(place, func(c corev1.Container) bool { return c.Name == "guard" })
		if at < 0 || len(spec.Containers)+len(spec.InitContainers) != 2 {
			t.Errorf("%s: the guard is not where it should be, sidecar %t", version, sidecar)
			continue
		}
		if policy := place[at].RestartPolicy; (policy != nil && *policy == corev1.ContainerRestartPolicyAlways) != sidecar {
			t.Errorf("%s: restart policy %v, sidecar %t", version, policy, sidecar)
		}
	}
	_, _, err := tryRender("v1.28.15", map[string]any{"guard": map[string]any{"as": "sidecar"}})
	if err == nil || !strings.Contains(err.Error(), "guard.as is sidecar, which Kubernetes v1.28.15 does not have") {
		t.Errorf("a sidecar where there are none: %v", err)
	}
}

// kubeVersion is the oldest version that the tests render for.
func TestOldestVersion(t *testing.T) {
	data, err := os.ReadFile(chartFolder + "/Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if want := `kubeVersion: ">=` + strings.TrimPrefix(oldest, "v") + `-0"`; !strings.Contains(string(data), want) {
		t.Errorf("Chart.yaml lacks %s", want)
	}
}
