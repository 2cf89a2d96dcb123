package main

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"
)

// The comments "want" in testdata say what each rule finds there; a finding
// without one, or one without a finding, fails.
func TestRules(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), initRule(), "noinit")
	analysistest.Run(t, analysistest.TestData(), stateRule(), "state")
	analysistest.Run(t, analysistest.TestData(), wordsRule(), "words", "helper")
}

func TestLength(t *testing.T) {
	const stmt = "\t_ = 0\n"
	function := func(lines int, want string) string {
		return "func f() {" + want + "\n" + strings.Repeat(stmt, lines-2) + "}\n"
	}
	blank := func(lines int) string { return strings.Repeat("\n", lines) }

	dir, cleanup, err := analysistest.WriteFiles(map[string]string{
		"longest/a.go":      "package longest\n\n" + function(maxFunctionLines, ""),
		"toolong/a.go":      "package toolong\n\n" + function(maxFunctionLines+1, " // want `function f has 71 lines`"),
		"fullfile/a.go":     "package fullfile\n" + blank(maxFileLines-1),
		"bigfile/a.go":      "package bigfile // want `file has 401 lines`\n" + blank(maxFileLines),
		"bigtest/a.go":      "package bigtest\n",
		"bigtest/a_test.go": "package bigtest\n" + blank(maxFileLines),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer cleanup()
	analysistest.Run(t, dir, lengthRule(), "longest", "toolong", "fullfile", "bigfile", "bigtest")
}

func TestSplitWords(t *testing.T) {
	for name, want := range map[string][]string{
		"query":           {"query"},
		"poolHelper":      {"pool", "helper"},
		"newHTTPPool_v2":  {"new", "http", "pool", "v"},
		"HTTP":            {"http"},
		"socket_linux":    {"socket", "linux"},
		"_":               nil,
		"utilisation":     {"utilisation"},
		"endpoint2Target": {"endpoint", "target"},
	} {
		if got := splitWords(name); !slices.Equal(got, want) {
			t.Errorf("splitWords(%q) = %q, want %q", name, got, want)
		}
	}
}
