package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What is no file of a bearable size is refused at once, whoever reads it.
func TestPathologicalFiles(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := unix.Mkfifo(at("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at("large"), bytes.Repeat([]byte("# large\n"), maxFile/8+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		at("pipe"):  "is no regular file",
		"/dev/zero": "is no regular file",
		dir:         "is no regular file",
		at("large"): "has more than 1Mi",
	} {
		write(t, at("points.yaml"), "version: v1\nlisten: [127.0.0.1:0]\nroutes: [{zones: [.], resolvConf: "+path+"}]\n")
		for _, args := range [][]string{{"check", "-config", path}, {"serve", "-config", path}, {"serve", "-config", at("points.yaml")}} {
			var out strings.Builder
			done := make(chan int, 1)
			go func() { done <- run(t.Context(), args, keepMemory, &out, &out) }()
			select {
			case status := <-done:
				if status != 1 || !strings.Contains(out.String(), path+" "+want) {
					t.Errorf("%q: status %d, %.200q; want it to say %q", args, status, &out, want)
				}
			case <-time.After(patience):
				t.Fatalf("%q hangs", args)
			}
		}
	}
	// Such a file is worth a note in a check.
	write(t, at("points.yaml"), "version: v1\nroutes: [{zones: [.], resolvConf: "+at("pipe")+"}]\n")
	var out, note strings.Builder
	if status := run(t.Context(), []string{"check", "-config", at("points.yaml")}, noEnv, &out, &note); status != 0 || !strings.Contains(note.String(), "is no regular file") {
		t.Errorf("check: status %d, %q", status, &note)
	}
}

func TestManyMistakesAreCut(t *testing.T) {
	_, err := readConfig("f", []byte(good+strings.Repeat("x: 1\n", 250)), noEnv)
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != maxMistakes+1 || lines[maxMistakes] != "f: and 150 more" {
		t.Errorf("%d lines, the last is %q", len(lines), lines[len(lines)-1])
	}
}

func TestCutText(t *testing.T) {
	long := strings.Repeat("ü", 81)
	for text, want := range map[string]string{"": "", "a": "a", long[2:]: long[2:], long: long[2:] + "…"} {
		if got := cut(text); got != want {
			t.Errorf("cut(%q) = %q, want %q", text, got, want)
		}
	}
}
