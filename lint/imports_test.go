package lint_test

import (
	"fmt"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestImportLaw(t *testing.T) {
	files := readTree(t, "..")
	if len(files) == 0 {
		t.Fatal("no Go file found: the law was not tested")
	}
	for _, fault := range breaches(files) {
		t.Error(fault)
	}
}

// A rule about something that is gone holds nothing up, and misleads.
func TestImportLawIsAlive(t *testing.T) {
	files := readTree(t, "..")
	gomod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range subjects() {
		isRoom := slices.ContainsFunc(files, func(f goFile) bool { return covers(path, f.room) })
		exists := isRoom || isModule(string(gomod), path) || isStandard(path)
		early := slices.Contains(notYet(), path)
		switch {
		case exists && early:
			t.Errorf("%s exists now: strike it from notYet", path)
		case !exists && !early:
			t.Errorf("a rule names %s, which does not exist: change the rule", path)
		}
	}
	for _, path := range notYet() {
		if !slices.Contains(subjects(), path) {
			t.Errorf("notYet lists %s, which no rule names", path)
		}
	}
}

// subjects returns all that the rules name, each once.
func subjects() []string {
	var paths []string
	for _, r := range rooms() {
		paths = append(paths, r.path)
		paths = append(paths, r.may...)
		paths = append(paths, r.tests...)
	}
	for _, b := range bans() {
		paths = append(paths, b.path)
		paths = append(paths, b.only...)
		paths = append(paths, b.not...)
	}
	slices.Sort(paths)
	return slices.DeleteFunc(slices.Compact(paths), func(path string) bool { return path == "..." })
}

// isModule tells whether go.mod names a module at or below a path.
func isModule(gomod, path string) bool {
	return slices.ContainsFunc(strings.Fields(gomod), func(word string) bool { return below(path, word) })
}

func isStandard(path string) bool {
	pkg, err := build.Import(path, "", build.FindOnly)
	return err == nil && pkg.Goroot
}

// breaches applies the law to files and returns a sentence for each breach.
func breaches(files []goFile) []string {
	var faults []string
	for _, f := range files {
		all := rooms()
		at := slices.IndexFunc(all, func(r room) bool { return covers(r.path, f.room) })
		if at < 0 {
			faults = append(faults, fmt.Sprintf("%s: package %s has no line in rooms: draw it", f.path, f.room))
			continue
		}
		for _, imported := range f.imports {
			if reason := forbids(all[at], f, imported); reason != "" {
				faults = append(faults, fmt.Sprintf("%s: %s may not import %s: %s", f.path, f.room, imported, reason))
			}
		}
	}
	return faults
}

// forbids says why a file of a room may not import a package, or "".
func forbids(r room, f goFile, imported string) string {
	if own, ok := strings.CutPrefix(imported, module+"/"); ok {
		if mayImport(r, f, own) {
			return ""
		}
		return "the drawing has no such arrow"
	}
	for _, b := range bans() {
		if isBanned(b, f, imported) {
			return b.reason
		}
	}
	return ""
}

// mayImport tells whether a file of a room may import a package of ours.
func mayImport(r room, f goFile, own string) bool {
	listed := func(path string) bool { return covers(path, own) && (path != "..." || own != testKit) }
	if slices.ContainsFunc(r.may, listed) {
		return true
	}
	return f.test && (own == f.room || own == testKit || slices.ContainsFunc(r.tests, listed))
}

func isBanned(b ban, f goFile, imported string) bool {
	if !below(b.path, imported) || f.test && !b.tests {
		return false
	}
	in := func(path string) bool { return covers(path, f.room) }
	if b.only != nil {
		return !slices.ContainsFunc(b.only, in)
	}
	return slices.ContainsFunc(b.not, in)
}

// covers tells whether a path of a rule ("a", "a/...", "...") means a folder.
func covers(path, folder string) bool {
	if path == "..." {
		return true
	}
	if top, ok := strings.CutSuffix(path, "/..."); ok {
		return below(top, folder)
	}
	return path == folder
}

// below tells whether a path is top or lies below it.
func below(top, path string) bool {
	return path == top || strings.HasPrefix(path, top+"/")
}

// goFile is one Go file of the tree, whatever its build tags.
type goFile struct {
	path    string // from the root of the tree
	room    string // the folder of path
	test    bool
	imports []string
}

// readTree reads every Go file below root that belongs to this module.
func readTree(t *testing.T, root string) []goFile {
	t.Helper()
	var files []goFile
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && isForeign(root, path):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		f, err := readFile(root, path)
		files = append(files, f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// isForeign tells folders that are no part of this module.
func isForeign(root, path string) bool {
	name := filepath.Base(path)
	if path == "." {
		return false
	}
	if strings.HasPrefix(name, ".") || name == "testdata" || path == "bin" {
		return true
	}
	_, err := os.Stat(filepath.Join(root, path, "go.mod"))
	return err == nil
}

func readFile(root, path string) (goFile, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, parser.ImportsOnly)
	if err != nil {
		return goFile{}, err
	}
	f := goFile{path: path, room: filepath.ToSlash(filepath.Dir(path)), test: strings.HasSuffix(path, "_test.go")}
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return goFile{}, fmt.Errorf("%s: import %s: %w", path, spec.Path.Value, err)
		}
		f.imports = append(f.imports, imported)
	}
	return f, nil
}
