package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Imports that come to no end, or to too much, are a mistake with its line.
func TestCorefileImportsEnd(t *testing.T) {
	var many strings.Builder // 8 deep, 10 times each
	for i := range 8 {
		fmt.Fprintf(&many, "(s%d) {\n%s}\n", i, strings.Repeat(fmt.Sprintf(" import s%d\n", i+1), 10))
	}
	var deep strings.Builder
	for i := range 30 {
		fmt.Fprintf(&deep, "(s%d) {\n import s%d\n}\n", i, i+1)
	}
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"itself":       {map[string]string{"self.core": ". {\n forward . 192.0.2.1\n}\nimport self.core\n"}, "self.core:4: import leads back to itself: "},
		"by a pattern": {map[string]string{"self.core": ". {\n forward . 192.0.2.1\n}\nimport *.core\n"}, "self.core:4: import leads back to itself: "},
		"each other": {map[string]string{
			"self.core":  ". {\n import other.conf\n forward . 192.0.2.1\n}\n",
			"other.conf": "errors\nimport self.core\n",
		}, "other.conf:2: import leads back to itself: "},
		"in a snippet":       {map[string]string{"self.core": "(all) {\n import self.core\n}\n. {\n import all\n}\n"}, "self.core:2: import leads back to itself: "},
		"snippets":           {map[string]string{"self.core": "(a) {\n import b\n}\n(b) {\n import a\n}\n. {\n import a\n}\n"}, "self.core:5: import leads back to itself: (a) imports (b) imports (a); "},
		"in a directive":     {map[string]string{"self.core": ". {\n hosts {\n  import self.core\n }\n}\n"}, "self.core:3: import leads back to itself: "},
		"too many":           {map[string]string{"self.core": many.String() + "(s8) {\n errors\n}\n. {\n import s0\n}\n"}, "there are more than 2000 imports; import less"},
		"too deep":           {map[string]string{"self.core": deep.String() + "(s30) {\n errors\n}\n. {\n import s0\n}\n"}, "more than 20 deep"},
		"too much":           {map[string]string{"self.core": "(s) {\n" + strings.Repeat(" errors\n", 1000) + "}\n" + strings.Repeat("a {\n import s\n}\n", 300)}, "more than 200000 words"},
		"what never ends":    {map[string]string{"self.core": ". {\n import pipe\n}\n"}, "self.core:2: import names "},
		"it is not found":    {map[string]string{"self.core": ". {\n import nowhere\n}\n"}, "File to import not found"},
		"many times is fine": {map[string]string{"self.core": "(s) {\n forward . 192.0.2.1\n cache\n}\n" + blocksWith("import s", 500)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range test.files {
				write(t, filepath.Join(dir, file), text)
			}
			if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := loadCorefile(nodeOptions(filepath.Join(dir, "self.core")), kubeDNS{})
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

// blocksWith are blocks with one directive.
func blocksWith(directive string, count int) string {
	var text strings.Builder
	for i := range count {
		fmt.Fprintf(&text, "z%d.example {\n bind 127.0.0.1\n %s\n}\n", i, directive)
	}
	return text.String()
}
