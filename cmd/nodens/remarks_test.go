package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"
)

// What is likely not meant is told once at the start, and by check.
func TestRemarks(t *testing.T) {
	up := newScripted(t, 1, 0)
	slices := filepath.Join(t.TempDir(), "slices.yaml")
	plain := endpointSlice(up.address, "n1")
	zoned := strings.Replace(plain, "nodeName: n1", "nodeName: n1, zone: za", 1)
	const unmatched, nameless, zoneless = "no endpoint can be asked", "the name of this node is not known", "the zone of this node is not known"
	for name, tc := range map[string]struct {
		node, topology, file string
		want                 []string
	}{
		"all well":           {"name: n1", "", zoned, nil},
		"zone written down":  {"name: n1, zone: za", "", plain, nil},
		"another Service":    {"name: n1, zone: za", ", service: coredns", plain, []string{unmatched}},
		"another namespace":  {"name: n1, zone: za", ", namespace: dns", plain, []string{unmatched}},
		"empty":              {"name: n1, zone: za", "", "[]", []string{unmatched}},
		"no name":            {"zone: za", "", zoned, []string{nameless}},
		"no name and zone":   {"", "", zoned, []string{nameless}},
		"no zone":            {"name: n1", "", plain, []string{zoneless}},
		"zone of other node": {"name: n2", "", zoned, []string{zoneless}},
	} {
		t.Run(name, func(t *testing.T) {
			write(t, slices, tc.file)
			h := serve(t, fmt.Sprintf("listen: [127.0.0.1:0]\nnode: {%s}\nroutes: [{zones: [cluster.local], topology: {file: %s%s}}]\n", tc.node, slices, tc.topology))
			var logged strings.Builder
			for _, line := range h.logs.FilterLevelExact(zap.WarnLevel).All() {
				fmt.Fprintln(&logged, line.Message)
			}
			var out, notes strings.Builder
			if status := run(t.Context(), []string{"check", "-config", h.path}, noEnv, &out, &notes); status != 0 {
				t.Errorf("check: status %d", status)
			}
			for where, text := range map[string]string{"log": logged.String(), "check": notes.String()} {
				if strings.Count(text, "\n") != len(tc.want) {
					t.Errorf("%s: %q, want %d lines", where, text, len(tc.want))
				}
				for _, want := range tc.want {
					if !strings.Contains(text, want) {
						t.Errorf("%s: %q, want %q", where, text, want)
					}
					if want == unmatched && tc.file != "[]" && !strings.Contains(text, "there are slices of kube-system/kube-dns: correct namespace and service") {
						t.Errorf("%s: %q, want it to name what there is", where, text)
					}
				}
			}
		})
	}
}

func TestCheckReadsTopology(t *testing.T) {
	dir := t.TempDir()
	config, slices := filepath.Join(dir, "c.yaml"), filepath.Join(dir, "slices.yaml")
	write(t, config, "version: v1\nnode: {name: n1, zone: za}\nroutes: [{zones: [.], topology: {file: "+slices+"}}]\n")
	for content, want := range map[string]string{"": "is empty", "kind: Pod": `unknown kind "Pod"`} {
		write(t, slices, content)
		var out, notes strings.Builder
		if status := run(t.Context(), []string{"check", "-config", config}, noEnv, &out, &notes); status != 0 || !strings.Contains(notes.String(), want) {
			t.Errorf("%q: status %d, %q; want %q", content, status, &notes, want)
		}
	}
}
