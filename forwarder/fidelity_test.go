package forwarder_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestFidelity sees that the tests and files that FIDELITY.md names exist, and
// that no requirement is missing.
func TestFidelity(t *testing.T) {
	text, err := os.ReadFile("FIDELITY.md")
	if err != nil {
		t.Fatal(err)
	}
	exists := proofs(t, ".", "../cmd", "../bench/search")
	for _, name := range regexp.MustCompile(`\b(?:(?:Test|Fuzz)[A-Z]\w*|\w+\.rpl)\b`).FindAllString(string(text), -1) {
		if !exists[name] && name != "TestFidelity" {
			t.Errorf("%s does not exist", name)
		}
	}
	for letter, last := range map[string]int{"R": 14, "H": 6, "E": 15, "Z": 9, "K": 9, "T": 19, "S": 11, "N": 7, "L": 5, "P": 9, "F": 8, "U": 5, "A": 9, "X": 7} {
		for i := 1; i <= last; i++ {
			if row := fmt.Sprintf("\n| %s%d | ", letter, i); strings.Count(string(text), row) != 1 {
				t.Errorf("%s%d has not one row", letter, i)
			}
		}
	}
	for _, row := range regexp.MustCompile(`(?m)^\| B\d+ \|.*$`).FindAllString(string(text), -1) {
		if !regexp.MustCompile(`\| [^|]*(Test|Fuzz|\.rpl|not applicable|later)[^|]* \|$`).MatchString(row) {
			t.Errorf("neither test nor reason: %s", row)
		}
	}
}

// proofs are the tests and replay files below folders.
func proofs(t *testing.T, folders ...string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	test := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case strings.HasSuffix(path, ".rpl"):
				found[filepath.Base(path)] = true
			case strings.HasSuffix(path, "_test.go"):
				source, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				for _, m := range test.FindAllSubmatch(source, -1) {
					found[string(m[1])] = true
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}
