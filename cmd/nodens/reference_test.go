package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// reference compares a generated page with the one in docs, or writes it when
// NODENS_UPDATE is set.
func reference(t *testing.T, name, want string) {
	t.Helper()
	path := filepath.Join("../../docs", name)
	if os.Getenv("NODENS_UPDATE") != "" {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("docs/%s is not what the code says (%v): NODENS_UPDATE=1 go test -count=1 ./cmd/nodens -run Reference", name, err)
	}
}

func TestMetricsReference(t *testing.T) {
	kinds := gather(t, fullSnapshot())
	var out strings.Builder
	out.WriteString("# Metrics\n\nMade of the table in `cmd/nodens` by its tests. Served at `/metrics` of `admin.address`, with the\n" +
		"`go_` and `process_` metrics that every Go process has. No label grows with the traffic; series of a\nserver that left are gone with it.\n")
	section := func(prefix, title string) {
		var rows []string
		for _, m := range daemonMetrics() {
			if strings.HasPrefix(m.name, prefix) {
				rows = append(rows, metricRow(t, m, kinds))
			}
		}
		writeSection(&out, title, rows)
	}
	section("coredns_", "Names that node-cache has")
	section("nodens_", "Names of our own")
	var rows []string
	kinds = gatherFrom(t, newCollector(fullGuardSnapshot, guardMetrics()))
	for _, m := range guardMetrics() {
		rows = append(rows, metricRow(t, m, kinds))
	}
	writeSection(&out, "Of the guard, at `host.metrics`; with node-cache's flags at the daemon's addresses too", rows)
	reference(t, "metrics.md", out.String())
}

func writeSection(out *strings.Builder, title string, rows []string) {
	fmt.Fprintf(out, "\n## %s\n\n| name | type | labels | says |\n|---|---|---|---|\n%s", title, strings.Join(rows, ""))
}

func metricRow[S any](t *testing.T, m metricOf[S], kinds map[string]gathered) string {
	t.Helper()
	kind := kinds[m.name].kind
	if kind == "" {
		t.Errorf("no test has a value of %s", m.name)
	}
	labels := ""
	if len(m.labels) > 0 {
		labels = "`" + strings.Join(m.labels, "`, `") + "`"
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s |\n", m.name, kind, labels, strings.ReplaceAll(m.help, "|", `\|`))
}

// configType is a struct of config.go: its fields in order.
type configType []configField

type configField struct{ name, kind, doc string }

// configTypes reads the files of the configuration, whose comments say unit, range and
// default.
func configTypes(t *testing.T) map[string]configType {
	t.Helper()
	types := map[string]configType{}
	for _, path := range []string{"config.go", "confighost.go", "configrules.go", "configsearch.go", "configwatch.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		addTypes(types, file)
	}
	return types
}

func addTypes(types map[string]configType, file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		of, ok := spec.Type.(*ast.StructType)
		if !ok {
			return true
		}
		for _, field := range of.Fields.List {
			for _, name := range field.Names {
				types[spec.Name.Name] = append(types[spec.Name.Name], configField{name.Name, typeName(field.Type), oneLine(field.Doc)})
			}
		}
		return true
	})
}

// typeName is the name of a type, or of the elements of a list.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.ArrayType:
		return typeName(e.Elt)
	}
	return ""
}

func oneLine(doc *ast.CommentGroup) string {
	if doc == nil {
		return ""
	}
	return strings.Join(strings.Fields(doc.Text()), " ")
}

// renamed are keys that are not called after their field.
func renamed() map[string]string {
	return map[string]string{"topology.ports.udp": "UDPPort", "topology.ports.tcp": "TCPPort", "rewrite[].name": "From"}
}

// fieldOf finds the field that a key of the sample is read into.
func fieldOf(types map[string]configType, in, path, key string) (configField, bool) {
	want := key
	for suffix, name := range renamed() {
		if strings.HasSuffix(path, suffix) {
			want = name
		}
	}
	for _, f := range types[in] {
		if strings.EqualFold(f.name, want) {
			return f, true
		}
	}
	for _, f := range types[in] {
		if f.name == "Rules" { // its keys stand among the others
			return fieldOf(types, f.kind, path, key)
		}
	}
	return configField{}, false
}

// keysOf walks the sample in its order and calls row for every key. A key that
// is commented out there is one too.
func keysOf(n *yaml.Node, path string, row func(path, key string, value *yaml.Node)) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i].Value
		at := strings.TrimPrefix(path+"."+key, ".")
		row(at, key, n.Content[i+1])
	}
}

func TestConfigurationReference(t *testing.T) {
	// What stands in a comment as "# key: value" is an example of a key, and further in of one
	// below it.
	shown := regexp.MustCompile(`(?m)^(\s*)# ( *)(?:or: )?([a-zA-Z0-9]+: )`).ReplaceAllString(sampleConfig, "$1$2$3")
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(shown), &root); err != nil {
		t.Fatalf("%v in\n%s", err, shown)
	}
	types := configTypes(t)
	var out strings.Builder
	out.WriteString("# Configuration\n\nMade of the types in `cmd/nodens/config.go` by its tests. `nodens check -sample` prints a file with every\n" +
		"key and its default; `nodens check -config FILE` names every mistake with its line. A change of the file is\ntaken over while nodens runs, whole or not at all; the few that are read at the start only say so.\n" +
		"\n`[]` is an element of a list. Durations are written `500ms`, `2s`, `1h`; sizes `32Mi`.\n\n| key | says |\n|---|---|\n")
	seen := map[string]bool{}
	var walk func(n *yaml.Node, path, in string)
	walk = func(n *yaml.Node, path, in string) {
		if n.Kind == yaml.SequenceNode {
			for _, one := range n.Content {
				walk(one, path+"[]", in)
			}
			return
		}
		keysOf(n, path, func(path, key string, value *yaml.Node) {
			field, ok := fieldOf(types, in, path, key)
			kind := cmp.Or(field.kind, in)
			if _, known := types[kind]; !known || !ok {
				kind = in // a section that has no type of its own
			}
			if !seen[path] && field.doc != "" {
				fmt.Fprintf(&out, "| `%s` | %s |\n", path, strings.ReplaceAll(field.doc, "|", `\|`))
			}
			if !seen[path] && field.doc == "" && value.Kind == yaml.ScalarNode && path != "version" {
				fmt.Fprintf(&out, "| `%s` | %s |\n", path, "see the sample")
			}
			seen[path] = true
			if value.Kind != yaml.ScalarNode && types[kind] != nil {
				walk(value, path, kind)
			}
		})
	}
	walk(root.Content[0], "", "Config")
	if len(seen) < 70 {
		t.Errorf("%d keys in the reference", len(seen))
	}
	reference(t, "configuration.md", out.String())
}
