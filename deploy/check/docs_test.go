package check

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"sigs.k8s.io/yaml"
)

// block is one fenced part of a document: what stands behind the fence, and the
// text.
type block struct{ from, kind, text string }

// pages are all documents but the figures that tests write.
func pages(t *testing.T) []string {
	t.Helper()
	var files []string
	err := walk(func(path string) {
		if strings.HasSuffix(path, ".md") && filepath.Base(path) != "figures.md" {
			files = append(files, path)
		}
	})
	if err != nil || len(files) < 20 {
		t.Fatalf("%d pages: %v", len(files), err)
	}
	return files
}

// walk goes through the files of the source.
func walk(see func(path string)) error {
	return filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2:
			return fs.SkipDir
		case !d.IsDir():
			see(path)
		}
		return nil
	})
}

func blocks(t *testing.T, page string) []block {
	t.Helper()
	var all []block
	for i, part := range strings.Split("\n"+read(t, page), "\n```") {
		if i%2 == 1 {
			kind, text, _ := strings.Cut(part, "\n")
			all = append(all, block{filepath.Base(page), kind, text + "\n"})
		}
	}
	return all
}

// Every command under "sh" works as it is printed, in an empty folder. What
// needs a cluster says so.
func TestCommandsOfTheDocuments(t *testing.T) {
	nodens := program(t)
	ran := 0
	for _, page := range pages(t) {
		for _, b := range blocks(t, page) {
			if b.kind != "sh" {
				continue
			}
			ran++
			shell := exec.Command("bash", "-euo", "pipefail", "-c", b.text)
			shell.Dir = t.TempDir()
			shell.Env = []string{"PATH=" + filepath.Dir(nodens) + ":" + os.Getenv("PATH"), "HOME=" + shell.Dir}
			if out, err := shell.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s\n%s", b.from, err, b.text, out)
			}
		}
	}
	if ran == 0 {
		t.Error("no command was run")
	}
}

// A command that needs a cluster is marked, so that no reader takes it for one
// that was tried.
func TestClusterCommandsAreMarked(t *testing.T) {
	kinds := []string{"", "sh", "sh cluster", "sh node", "sh source", "yaml", "yaml values"}
	for _, page := range pages(t) {
		for i, part := range strings.Split("\n"+read(t, page), "\n```") {
			if indented := regexp.MustCompile(`(?m)^\n {4}\S.*`).FindString(part); i%2 == 0 && indented != "" {
				t.Errorf("%s: put between fences, and mark:\n%s", page, indented)
			}
		}
		for _, b := range blocks(t, page) {
			if !slices.Contains(kinds, b.kind) {
				t.Errorf("%s: a block is marked %q, which is none of %q", b.from, b.kind, kinds)
			}
			if b.kind == "sh" && regexp.MustCompile(`\b(kubectl|helm|oc|gcloud)\b`).MatchString(b.text) {
				t.Errorf("%s: mark as \"sh cluster\":\n%s", b.from, b.text)
			}
			if b.kind == "" && regexp.MustCompile(`(?m)^(kubectl|helm|make|go|dig|(bin/)?nodens)\b`).MatchString(b.text) {
				t.Errorf("%s: mark as \"sh\", or with what it needs:\n%s", b.from, b.text)
			}
		}
	}
}

// A command of nodens that a document speaks of exists, with its flags, also where no test
// can run it.
func TestCommandsExist(t *testing.T) {
	nodens := program(t)
	help := map[string]string{}
	for _, page := range pages(t) {
		for _, code := range codeOf(t, page) {
			for _, m := range regexp.MustCompile(`(?:^|[ /(])nodens ([a-z]+)((?: [^\s#;|&>]+)*)(?:\s|$)`).FindAllStringSubmatch(code, -1) {
				if help[m[1]] == "" {
					args := []string{m[1], "-h"}
					if m[1] == "doctor" { // among node-cache's flags it knows them all
						args = []string{m[1], "-localip=169.254.20.10", "-h"}
					}
					out, err := exec.Command(nodens, args...).CombinedOutput()
					if err != nil {
						t.Errorf("%s: there is no command %q", page, code)
						continue
					}
					help[m[1]] = string(out)
				}
				for _, flag := range regexp.MustCompile(` --?([a-z][a-z-]*)`).FindAllStringSubmatch(m[2], -1) {
					if !regexp.MustCompile(`(?m)^\s+-` + flag[1] + `\b`).MatchString(help[m[1]]) {
						t.Errorf("%s: nodens %s has no flag -%s", page, m[1], flag[1])
					}
				}
			}
		}
	}
	if len(help) < 8 {
		t.Errorf("only %d commands are spoken of", len(help))
	}
}

// codeOf are the lines between fences, and what stands between backquotes elsewhere.
func codeOf(t *testing.T, page string) []string {
	t.Helper()
	var all []string
	for i, part := range strings.Split("\n"+read(t, page), "\n```") {
		if i%2 == 1 {
			all = append(all, strings.Split(part, "\n")[1:]...)
			continue
		}
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(part, -1) {
			all = append(all, strings.Join(strings.Fields(m[1]), " "))
		}
	}
	return all
}

// Values are values of the chart, and other objects are objects.
func TestYAMLOfTheDocuments(t *testing.T) {
	for _, page := range pages(t) {
		for _, b := range blocks(t, page) {
			switch {
			case b.kind == "yaml values":
				values, err := chartutil.ReadValues([]byte(b.text))
				if err != nil {
					t.Errorf("%s: %v", b.from, err)
					continue
				}
				objects, hooks := render(t, newest, values)
				for _, text := range append(objects, hooks...) {
					decode(t, text)
				}
			case b.kind == "yaml" && strings.Contains(b.text, "kind: Pod\n"):
				decode(t, b.text)
			case b.kind == "yaml":
				if _, err := yaml.YAMLToJSONStrict([]byte(b.text)); err != nil {
					t.Errorf("%s: %v", b.from, err)
				}
			}
		}
	}
}

// Links lead to files, and to sections that are there.
func TestLinksOfTheDocuments(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#\s]*)(#[^)\s]*)?\)`)
	for _, page := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			target := page
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(page), m[1])
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %s leads nowhere", filepath.Base(page), m[0])
				continue
			}
			if m[2] != "" && !slices.Contains(anchors(read(t, target)), m[2]) {
				t.Errorf("%s: %s has no section %s", filepath.Base(page), m[1], m[2])
			}
		}
	}
}

func anchors(text string) []string {
	var all []string
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		plain := regexp.MustCompile("[^a-z0-9 _-]").ReplaceAllString(strings.ToLower(m[1]), "")
		all = append(all, "#"+strings.ReplaceAll(plain, " ", "-"))
	}
	return all
}

// What the comparison with others says of nodens is shown by a test, unless it is that
// there is no such thing.
func TestFeaturesAreShown(t *testing.T) {
	rows := 0
	for line := range strings.Lines(read(t, "../../docs/features.md")) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 11 || strings.HasPrefix(cells[1], "---") || strings.TrimSpace(cells[2]) == "" || strings.Contains(cells[1], "feature") {
			continue
		}
		rows++
		says, shown := strings.TrimSpace(cells[8]), proofs().MatchString(cells[9])
		yes := strings.HasPrefix(says, "Y") || strings.HasPrefix(says, "P")
		if yes != shown || !yes && says != "N" {
			t.Errorf("%s: nodens has %q, shown by %q", strings.TrimSpace(cells[1]), says, strings.TrimSpace(cells[9]))
		}
	}
	if rows < 50 {
		t.Errorf("%d rows", rows)
	}
}

// What is said to be supported is shown by a test, or why none can is said.
func TestSupportIsShown(t *testing.T) {
	rows := 0
	for line := range strings.Lines(read(t, "../../docs/support.md")) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 5 || strings.HasPrefix(cells[1], "---") || strings.TrimSpace(cells[3]) == "held by" {
			continue
		}
		rows++
		if held := strings.TrimSpace(cells[3]); proofs().MatchString(held) == strings.HasPrefix(held, "not tested: ") {
			t.Errorf("%s: held by %q", strings.TrimSpace(cells[1]), held)
		}
	}
	if rows < 20 {
		t.Errorf("%d rows", rows)
	}
}

// proofs are how documents name tests and benchmarks: alone, or as deploy/guard.TestServeDies.
func proofs() *regexp.Regexp {
	return regexp.MustCompile("`(?:([a-z0-9/-]+)\\.)?((?:Test|Fuzz|Benchmark)[A-Z]\\w*)`")
}

// Every test and benchmark that a document names as a proof exists, and which one is meant
// is clear.
func TestProofsExist(t *testing.T) {
	packages := map[string][]string{} // by name of the test
	err := walk(func(path string) {
		if !strings.HasSuffix(path, "_test.go") {
			return
		}
		folder := filepath.ToSlash(strings.TrimPrefix(filepath.Dir(path), "../../"))
		for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)`).FindAllStringSubmatch(read(t, path), -1) {
			packages[m[1]] = append(packages[m[1]], folder)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages(t) {
		for _, m := range proofs().FindAllStringSubmatch(read(t, page), -1) {
			switch in := packages[m[2]]; {
			case len(in) == 0 || m[1] != "" && !slices.Contains(in, m[1]):
				t.Errorf("%s: there is no %s", filepath.Base(page), m[0])
			case m[1] == "" && len(in) > 1:
				t.Errorf("%s: %s is in %s: name the package", filepath.Base(page), m[0], strings.Join(in, ", "))
			}
		}
		for _, code := range codeOf(t, page) {
			m := regexp.MustCompile(`-run (Test\w+).* \./(\S+)`).FindStringSubmatch(code)
			if m != nil && !slices.Contains(packages[m[1]], m[2]) {
				t.Errorf("%s: %s runs nothing", filepath.Base(page), code)
			}
		}
	}
}

// The targets of make that a document speaks of are there.
func TestTargetsExist(t *testing.T) {
	makefile := "\n" + read(t, "../../Makefile")
	seen := 0
	for _, page := range pages(t) {
		for _, code := range codeOf(t, page) {
			if m := regexp.MustCompile(`^make ([a-z0-9]+)\b`).FindStringSubmatch(code); m != nil {
				seen++
				if !strings.Contains(makefile, "\n"+m[1]+":") {
					t.Errorf("%s: there is no target for %q", page, code)
				}
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d targets are spoken of", seen)
	}
}

// A document may speak of a command that is still to come only if it says so in
// the same paragraph.
func TestDocumentsClaimOnlyWhatIsThere(t *testing.T) {
	for _, page := range pages(t) {
		for _, paragraph := range strings.Split(read(t, page), "\n\n") {
			for _, command := range pending() {
				if strings.Contains(paragraph, "nodens "+command) && !strings.Contains(paragraph, "not yet") {
					t.Errorf("%s speaks of nodens %s as if it were there:\n%s", filepath.Base(page), command, paragraph)
				}
			}
		}
	}
}

// The metrics that the documents name exist.
func TestMetricsOfTheDocuments(t *testing.T) {
	known := metrics(t)
	for name := range maps.Clone(known) {
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if base, ok := strings.CutSuffix(name, suffix); ok {
				known[base] = nil
			}
		}
	}
	for _, page := range pages(t) {
		for _, m := range regexp.MustCompile("`((?:nodens|coredns)_[a-z0-9_]+[a-z0-9])\\b").FindAllStringSubmatch(read(t, page), -1) {
			if _, ok := known[m[1]]; !ok {
				t.Errorf("%s: there is no metric %s", filepath.Base(page), m[1])
			}
		}
	}
}

// Requests hold what was measured: what the process needs beside its cache, and
// 1.6 times the cache.
func TestResourcesFollowTheCache(t *testing.T) {
	table := regexp.MustCompile(`(?m)^\| (\d+)Mi \| (\d+)Mi \| (\d+)Mi \|$`).FindAllStringSubmatch(read(t, "../../docs/sizing.md"), -1)
	if len(table) < 3 {
		t.Fatalf("%d rows", len(table))
	}
	values := read(t, "../chart/values.yaml")
	for _, row := range table {
		cache, request, limit := number(t, row[1]), number(t, row[2]), number(t, row[3])
		if least := 20 + cache*16/10; request < least || request > least+4 {
			t.Errorf("cache of %d Mi: the request is %d Mi, want about %d", cache, request, least)
		}
		if limit < request*3/2 {
			t.Errorf("cache of %d Mi: the limit is %d Mi, want half as much again as %d", cache, limit, request)
		}
		if cache == 32 && !strings.Contains(values, "requests: {cpu: 25m, memory: "+row[2]+"Mi}\n  limits: {memory: "+row[3]+"Mi}") {
			t.Errorf("values.yaml has other resources than docs/sizing.md for the same cache")
		}
	}
}
