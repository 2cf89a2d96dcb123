package check

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// pending are commands that the manifests use and that the program does not have
// yet. One that it has must leave the list.
func pending() []string { return nil }

// program is nodens itself.
func program(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("NODENS_BINARY"); path != "" {
		return path
	}
	path := filepath.Join(t.TempDir(), "nodens")
	build := exec.Command("go", "build", "-C", "../..", "-o", path, "./cmd/nodens")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// commandLines are those of all containers that run nodens: what starts them and
// what the kubelet starts in them.
func commandLines(t *testing.T) map[string][]string {
	t.Helper()
	lines := map[string][]string{}
	for from, texts := range shipped(t) {
		for _, p := range podsOf(t, texts) {
			for _, c := range p.containers() {
				if !strings.Contains(c.Image, "nodens") {
					continue
				}
				lines[strings.Join(c.Args, " ")] = append(lines[strings.Join(c.Args, " ")], from)
				for _, probe := range []*corev1.Probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
					if probe == nil || probe.Exec == nil {
						continue
					}
					if probe.Exec.Command[0] != "/nodens" {
						t.Errorf("%s: the image has no %s", from, probe.Exec.Command[0])
					}
					line := strings.Join(probe.Exec.Command[1:], " ")
					lines[line] = append(lines[line], from)
				}
			}
		}
	}
	return lines
}

// Every argument in a manifest is one that the program takes.
func TestArguments(t *testing.T) {
	nodens := program(t)
	lines := commandLines(t)
	var seen []string
	for _, line := range slices.Sorted(maps.Keys(lines)) {
		words := strings.Fields(line)
		seen = append(seen, words[0])
		help, err := exec.Command(nodens, words[0], "-h").CombinedOutput()
		exists := err == nil
		switch early := slices.Contains(pending(), words[0]); {
		case exists && early:
			t.Errorf("nodens %s exists now: strike it from pending", words[0])
		case !exists && !early:
			t.Errorf("%q in %s: there is no command %s", line, lines[line][0], words[0])
		case !exists:
			t.Logf("PENDING: nodens %s, in %d places", line, len(lines[line]))
			continue
		}
		for _, word := range words[1:] {
			name, isFlag := strings.CutPrefix(word, "-")
			name, _, _ = strings.Cut(strings.TrimPrefix(name, "-"), "=")
			if isFlag && !regexp.MustCompile(`(?m)^\s+-`+regexp.QuoteMeta(name)+`\b`).Match(help) {
				t.Errorf("%q in %s: nodens %s has no flag -%s:\n%s", line, lines[line][0], words[0], name, help)
			}
		}
	}
	if !slices.Contains(seen, "serve") {
		t.Errorf("no manifest serves: %q", seen)
	}
}

// Every configuration in a manifest is one that the program takes, without a
// warning.
func TestConfigurations(t *testing.T) {
	nodens := program(t)
	checked := 0
	for from, texts := range shipped(t) {
		for _, m := range typed[corev1.ConfigMap](t, texts) {
			text, ok := m.Data["nodens.yaml"]
			if !ok {
				continue
			}
			checked++
			t.Run(from, func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "nodens.yaml")
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				check := exec.Command(nodens, "check", "-config", file)
				check.Env = []string{"NODE_NAME=node-1", "KUBE_DNS_UPSTREAM_SERVICE_HOST=10.96.0.99"}
				if out, err := check.CombinedOutput(); err != nil {
					t.Errorf("%v\n%s\n%s", err, out, text)
				}
			})
		}
	}
	if checked < 10 {
		t.Errorf("%d configurations checked", checked)
	}
}
