package main

import (
	"encoding/json"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

func TestDocument(t *testing.T) {
	info := &debug.BuildInfo{
		GoVersion: "go1.26.0", Path: "example.test/cmd/x",
		Main: debug.Module{Path: "example.test", Version: "(devel)"},
		Deps: []*debug.Module{
			{Path: "a.test/one", Version: "v1.0.0"},
			{Path: "a.test/two", Version: "v2.0.0", Replace: &debug.Module{Path: "b.test/two", Version: "v2.0.1"}},
		},
	}
	data, err := json.Marshal(describe(info, "v1.2.3", "abcd", time.Unix(86400, 0)))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"name":"example.test/cmd/x v1.2.3"`, `"created":"1970-01-02T00:00:00Z"`, `"checksumValue":"abcd"`,
		"pkg:golang/stdlib@1.26.0", "pkg:golang/a.test/one@v1.0.0", "pkg:golang/b.test/two@v2.0.1",
	} {
		if !strings.Contains(string(data), want) {
			t.Errorf("no %s in\n%s", want, data)
		}
	}
	if strings.Contains(string(data), "a.test/two") {
		t.Error("a module that was replaced is listed")
	}
}

// An identifier is there once, and whatever is related to is there.
func TestDocumentHoldsTogether(t *testing.T) {
	d := describe(&debug.BuildInfo{Deps: []*debug.Module{{Path: "a"}, {Path: "b"}}}, "v1", "", time.Time{})
	ids := map[string]bool{d.ID: true}
	for _, p := range d.Packages {
		if ids[p.ID] {
			t.Errorf("%s is there twice", p.ID)
		}
		ids[p.ID] = true
	}
	for _, r := range d.Relationships {
		if !ids[r.From] || !ids[r.To] {
			t.Errorf("%v leads nowhere", r)
		}
	}
	if len(d.Relationships) != len(d.Packages) {
		t.Errorf("%d packages, %d relationships", len(d.Packages), len(d.Relationships))
	}
}

func TestNoBinary(t *testing.T) {
	var out strings.Builder
	for _, args := range [][]string{nil, {"main.go", "v1"}, {"absent", "v1"}, {"main.go"}} {
		if err := run(args, func(string) string { return "" }, &out); err == nil || out.Len() > 0 {
			t.Errorf("%q: %v, %q", args, err, &out)
		}
	}
}
