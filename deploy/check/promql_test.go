package check

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

// alert is a rule of Prometheus.
type alert struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func alerts(t *testing.T) []alert {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string  `json:"name"`
			Rules []alert `json:"rules"`
		} `json:"groups"`
	}
	if err := yaml.UnmarshalStrict([]byte(read(t, "../alerts/nodens.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	var all []alert
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) < 10 {
		t.Fatalf("%d alerts", len(all))
	}
	return all
}

// metrics are the labels of every metric that nodens has, by name, from the
// reference in docs.
func metrics(t *testing.T) map[string][]string {
	t.Helper()
	row := regexp.MustCompile("(?m)^\\| `([a-z0-9_]+)` \\| (counter|gauge|histogram) \\| ([^|]*) \\|")
	all := map[string][]string{}
	for _, m := range row.FindAllStringSubmatch(read(t, "../../docs/metrics.md"), -1) {
		list := strings.Fields(strings.NewReplacer("`", "", ",", " ").Replace(m[3]))
		if m[2] == "histogram" {
			all[m[1]+"_bucket"] = append(slices.Clone(list), "le")
			all[m[1]+"_sum"], all[m[1]+"_count"] = list, list
			continue
		}
		all[m[1]] = list
	}
	if len(all) < 50 {
		t.Fatalf("%d metrics in the reference", len(all))
	}
	// What every process exports.
	for _, name := range []string{"process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds", "go_goroutines"} {
		all[name] = nil
	}
	return all
}

// faultsOf are what is wrong with an expression: it does not parse, asks for a
// metric that nobody has, or for a label that the metric does not carry.
func faultsOf(known map[string][]string, text string) []string {
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		return []string{err.Error()}
	}
	var faults []string
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		has, ok := known[selector.Name]
		if !ok {
			faults = append(faults, "there is no metric "+selector.Name)
		}
		for _, m := range selector.LabelMatchers {
			if !slices.Contains(append([]string{"__name__", "job", "instance"}, has...), m.Name) {
				faults = append(faults, selector.Name+" has no label "+m.Name)
			}
		}
		return nil
	})
	return faults
}

func TestExpressionsAreChecked(t *testing.T) {
	known := map[string][]string{"nodens_ready": nil, "nodens_dropped_total": {"reason"}}
	for expr, want := range map[string]string{
		"nodens_ready == 0": "",
		`sum by (reason) (rate(nodens_dropped_total[5m])) > 0`: "",
		"nodens_reday":                        "no metric",
		`nodens_dropped_total{raeson="full"}`: "no label",
		"sum(nodens_ready":                    "parse error",
	} {
		got := strings.Join(faultsOf(known, expr), "; ")
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", expr, got, want)
		}
	}
}

// Every alert can fire: its metrics and labels exist. And it leads to a page that
// says what to do.
func TestAlerts(t *testing.T) {
	known := metrics(t)
	runbooks := read(t, "../../docs/runbooks.md")
	names := map[string]bool{}
	for _, a := range alerts(t) {
		for _, fault := range faultsOf(known, a.Expr) {
			t.Errorf("%s: %s", a.Alert, fault)
		}
		if names[a.Alert] {
			t.Errorf("%s is there twice", a.Alert)
		}
		names[a.Alert] = true
		if !slices.Contains([]string{"critical", "warning", "info"}, a.Labels["severity"]) || a.Annotations["summary"] == "" || a.For == "" {
			t.Errorf("%s: %+v", a.Alert, a)
		}
		if want := "docs/runbooks.md#" + strings.ToLower(a.Alert); !strings.HasSuffix(a.Annotations["runbook_url"], want) {
			t.Errorf("%s: its page is %q, want …%s", a.Alert, a.Annotations["runbook_url"], want)
		}
		if !strings.Contains(runbooks, "\n## "+a.Alert+"\n") {
			t.Errorf("docs/runbooks.md has no section %s", a.Alert)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^## (Nodens\w+)$`).FindAllStringSubmatch(runbooks, -1) {
		if !names[m[1]] {
			t.Errorf("docs/runbooks.md has a section for %s, which is no alert", m[1])
		}
	}
}

// alertsOf are the names of the alerts in the PrometheusRule of the chart.
func alertsOf(t *testing.T, values map[string]any) []string {
	t.Helper()
	objects, _ := render(t, newest, values)
	var rule struct {
		Spec struct {
			Groups []struct {
				Rules []alert `json:"rules"`
			} `json:"groups"`
		} `json:"spec"`
	}
	for _, text := range objects {
		if kindOf(t, text) != "PrometheusRule" {
			continue
		}
		if err := yaml.Unmarshal([]byte(text), &rule); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for _, group := range rule.Spec.Groups {
		for _, a := range group.Rules {
			if a.Expr == "" || a.For == "" || a.Annotations["runbook_url"] == "" {
				t.Errorf("%s lacks something: %+v", a.Alert, a)
			}
			names = append(names, a.Alert)
		}
	}
	return names
}

// The chart has every alert, but those that are not wanted and those that would tell for
// ever what was chosen.
func TestAlertsOfTheChart(t *testing.T) {
	var all []string
	for _, a := range alerts(t) {
		all = append(all, a.Alert)
	}
	missing := func(rule, rbac map[string]any) string {
		rule["enabled"] = true
		got := alertsOf(t, map[string]any{"prometheusRule": rule, "rbac": rbac})
		return strings.Join(slices.DeleteFunc(slices.Clone(all), func(name string) bool { return slices.Contains(got, name) }), " ")
	}
	if got := missing(map[string]any{}, map[string]any{}); got != "" {
		t.Errorf("%s are missing", got)
	}
	if got := missing(map[string]any{"disabled": []any{"NodensSlow"}}, map[string]any{}); got != "NodensSlow" {
		t.Errorf("%s are missing", got)
	}
	if got := missing(map[string]any{}, map[string]any{"create": false}); got != "NodensNoFallback NodensNoEndpoints NodensTopologyOld NodensZoneUnknown" {
		t.Errorf("without rights %s are missing", got)
	}
}

// A pod is scraped once: by its annotations, or by a monitor.
func TestScrapedOnce(t *testing.T) {
	for name, values := range map[string]map[string]any{
		"": {}, "podMonitor": {"podMonitor": map[string]any{"enabled": true}}, "serviceMonitor": {"serviceMonitor": map[string]any{"enabled": true}},
	} {
		objects, _ := render(t, newest, values)
		if _, has := daemon(t, objects).Spec.Template.Annotations["prometheus.io/scrape"]; has != (name == "") {
			t.Errorf("with monitor %q the annotation is there: %t", name, has)
		}
	}
}

func TestDashboard(t *testing.T) {
	known := metrics(t)
	dashboard := readJSON(t, "../dashboards/nodens.json")
	stand := strings.NewReplacer("$__rate_interval", "5m", "$job", "j", "$instance", "i")
	panels, queries := 0, 0
	for _, one := range dashboard["panels"].([]any) {
		panel := one.(map[string]any)
		if panel["type"] == "row" {
			continue
		}
		panels++
		for _, target := range panel["targets"].([]any) {
			queries++
			for _, fault := range faultsOf(known, stand.Replace(target.(map[string]any)["expr"].(string))) {
				t.Errorf("%s: %s", panel["title"], fault)
			}
		}
	}
	if panels < 20 || queries < panels {
		t.Errorf("%d panels with %d queries", panels, queries)
	}
	for _, one := range dashboard["templating"].(map[string]any)["list"].([]any) {
		variable := one.(map[string]any)
		if query, ok := variable["definition"].(string); ok {
			for _, fault := range faultsOf(known, stand.Replace(regexp.MustCompile(`label_values\((.*), \w+\)`).ReplaceAllString(query, "$1"))) {
				t.Errorf("variable %s: %s", variable["name"], fault)
			}
		}
	}
}
