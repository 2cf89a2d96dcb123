package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/bench/space"
)

// The configurations of the README are good as they are printed.
func TestReadmeConfigurations(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, part := range strings.Split(string(readme), "version: v1\n")[1:] {
		text, _, _ := strings.Cut(part, "```")
		text, _, _ = strings.Cut(text, "END\n")
		found++
		c, err := readConfig("README.md", []byte("version: v1\n"+text), noEnv)
		if err != nil {
			t.Errorf("%v\n%s", err, text)
			continue
		}
		for _, r := range c.Routes {
			if r.Topology.File != "" {
				t.Errorf("%s does not exist for the reader", r.Topology.File)
			}
		}
	}
	if found != 2 {
		t.Errorf("%d configurations found, want one for a laptop and one for a node", found)
	}
}

// A placeholder in the help reads as a value, not as a word of the flag.
func TestHelp(t *testing.T) {
	for command, want := range map[string][]string{
		"serve": {"Usage of nodens serve:", "-config FILE"}, "check": {"Usage of nodens check:"},
		"status": {"Usage of nodens status:", "-o FORMAT", "-address HOST:PORT"},
		"demo":   {"Usage of nodens demo:", "-for DURATION", "-rate QPS"},
	} {
		var out, help strings.Builder
		if status := run(t.Context(), []string{command, "-h"}, noEnv, &out, &help); status != 0 {
			t.Errorf("%s -h: status %d", command, status)
		}
		for _, w := range want {
			if !strings.Contains(help.String(), w) {
				t.Errorf("%s -h: %q, want %q", command, &help, w)
			}
		}
	}
	var out strings.Builder
	if run(t.Context(), []string{"version"}, noEnv, &out, &out); strings.Contains(out.String(), "unknown") {
		t.Errorf("version: %q", &out)
	}
}

// What the units of systemd start takes what they give it.
func TestSystemdUnits(t *testing.T) {
	const folder = "../../deploy/systemd/"
	text, err := os.ReadFile(folder + "nodens.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := readConfig("nodens.yaml", text, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	for unit, want := range map[string][]string{
		"nodens.service": {
			"ExecStart=/usr/local/bin/nodens serve -config ", "Type=notify", fmt.Sprintf("User=%d\n", c.Host.UID),
			"RuntimeDirectory=" + filepath.Base(filepath.Dir(c.Admin.Socket)) + "\n",
		},
		"nodens-guard.service": {
			"ExecStart=/usr/local/bin/nodens guard -config ", "Type=notify", "CapabilityBoundingSet=CAP_NET_ADMIN\n",
			"RuntimeDirectory=" + filepath.Base(filepath.Dir(c.Host.Socket)) + "\n", "StateDirectory=" + filepath.Base(filepath.Dir(c.Host.Endpoints)) + "\n",
		},
	} {
		text, err := os.ReadFile(folder + unit)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(string(text), w) {
				t.Errorf("%s has no %q", unit, w)
			}
		}
	}
	users, err := os.ReadFile(folder + "sysusers.conf")
	if want := fmt.Sprintf("\nu nodens %d ", c.Host.UID); err != nil || !strings.Contains(string(users), want) {
		t.Errorf("sysusers.conf lacks %q, error %v", want, err)
	}
	if stop := c.StopDelay + c.StopGrace; stop > 9*time.Second {
		t.Errorf("a stop may take %v, and systemd kills after 10 s", stop)
	}
}

// TestSystemdTakesTheUnits: it knows every key and every value in them.
func TestSystemdTakesTheUnits(t *testing.T) {
	space.Needs(t, "systemd-analyze", installed("systemd-analyze"))
	folder := t.TempDir()
	check := []string{"verify", "--man=no"}
	for _, unit := range []string{"nodens.service", "nodens-guard.service"} {
		text, err := os.ReadFile("../../deploy/systemd/" + unit)
		if err != nil {
			t.Fatal(err)
		}
		// The program is not where the units expect it.
		write(t, filepath.Join(folder, unit), strings.ReplaceAll(string(text), "/usr/local/bin/nodens", "/proc/self/exe"))
		check = append(check, filepath.Join(folder, unit))
	}
	// What it finds wrong with the machine's own units is not ours.
	out, _ := exec.Command("systemd-analyze", check...).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "nodens") {
			t.Error(line)
		}
	}
}
