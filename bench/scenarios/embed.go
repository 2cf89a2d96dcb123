package scenarios

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed *.yaml
var files embed.FS

// Names lists the scenarios that are part of the program.
func Names() []string {
	var names []string
	entries, _ := fs.ReadDir(files, ".") // of memory: it cannot fail
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return names
}

// Text is the file of a scenario that is part of the program, or of one by its
// path.
func Text(name string) (path string, text []byte, err error) {
	if slices.Contains(Names(), name) {
		path = name + ".yaml"
		text, err = files.ReadFile(path)
		return path, text, err
	}
	text, err = os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(name, "/.") {
		return "", nil, fmt.Errorf("there is no scenario %q; known are %s, or give the path of a file", name, strings.Join(Names(), ", "))
	}
	if err != nil {
		return "", nil, fmt.Errorf("scenario file cannot be read: %w", err)
	}
	return name, text, nil
}

// Load reads a scenario by its name or by the path of its file.
func Load(name string) (*Scenario, error) {
	path, text, err := Text(name)
	if err != nil {
		return nil, err
	}
	return Read(path, strings.TrimSuffix(filepath.Base(path), ".yaml"), text)
}
