package lint_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Situations in a small tree, to see that the law can be broken, and how it says so.
func TestImportLawBites(t *testing.T) {
	const wire = module + "/forwarder/wire"
	for _, tc := range []struct {
		name, file, imports string
		want                string // part of the one breach; none if empty
	}{
		{"an arrow of the drawing", "forwarder/cache/a.go", wire, ""},
		{"an arrow that runs up", "forwarder/wire/a.go", module + "/forwarder", "forwarder/wire may not import"},
		{"an arrow to a neighbour", "forwarder/cache/a.go", module + "/forwarder/upstream", "forwarder/cache may not import"},
		{"an arrow between the halves", "topology/a.go", module + "/forwarder/upstream", "topology may not import"},
		{"a file behind a build tag", "topology/a_plan9.go", wire, "topology may not import"},
		{"a package that nobody drew", "forwarder/extra/a.go", "fmt", "no line in rooms"},
		{"the wiring takes everything", "cmd/nodens/a.go", module + "/topology", ""},
		{"nobody takes the wiring", "bench/load/a.go", module + "/cmd/nodens", "bench/load may not import"},

		{"a test of the package itself", "forwarder/wire/a_test.go", wire, ""},
		{"a test with the test kit", "forwarder/wire/a_test.go", module + "/" + testKit, ""},
		{"a test that reaches too far", "forwarder/wire/a_test.go", module + "/topology", "forwarder/wire may not import"},
		{"the test kit in the product", "cmd/nodens/a.go", module + "/" + testKit, "cmd/nodens may not import"},
		{"the test kit in the bench", "bench/load/a.go", module + "/" + testKit, ""},

		{"metrics library in the core", "forwarder/a.go", "github.com/prometheus/client_golang/prometheus", "the edge names them"},
		{"metrics library in a test of the core", "forwarder/a_test.go", "github.com/prometheus/client_golang/prometheus", "the edge names them"},
		{"metrics library at the edge", "cmd/nodens/a.go", "github.com/prometheus/client_golang/prometheus", ""},
		{"Kubernetes client outside its door", "topology/a.go", "k8s.io/client-go/rest", "end at the door"},
		{"a name that only begins alike", "topology/a.go", "k8s.iota/x", ""},
		{"message library on the hit path", "forwarder/listener/a.go", "github.com/miekg/dns", "never unpacks"},
		{"message library in a test there", "forwarder/listener/a_test.go", "github.com/miekg/dns", ""},
		{"clock in wire", "forwarder/wire/a.go", "time", "bytes only"},
		{"address types in wire", "forwarder/wire/a.go", "net/netip", "bytes only"},
		{"structured logging in wire", "forwarder/wire/a.go", "log/slog", "bytes only"},
		{"clock next door", "forwarder/cache/a.go", "time", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := breachesOf(t, tc.file, tc.imports)
			switch {
			case tc.want == "" && len(got) > 0:
				t.Errorf("breaches %q, want none", got)
			case tc.want != "" && (len(got) != 1 || !strings.Contains(got[0], tc.want)):
				t.Errorf("breaches %q, want one with %q", got, tc.want)
			}
		})
	}
}

// breachesOf lays a tree of one file with one import and applies the law to it.
func breachesOf(t *testing.T, file, imports string) []string {
	t.Helper()
	root := t.TempDir()
	path := filepath.Join(root, filepath.FromSlash(file))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	source := "package p\n\nimport _ \"" + imports + "\"\n"
	if err := os.WriteFile(path, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	return breaches(readTree(t, root))
}
