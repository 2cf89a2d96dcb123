package main

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is what a release is called. The linker sets it:
// -ldflags '-X main.version=v1.2.3'.
var version string

// build says which nodens this is.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of the source; "" when not known
	Go       string `json:"go"`
}

// thisBuild is what the linker and the Go command wrote into the binary.
func thisBuild() build {
	b := build{Version: version, Go: runtime.Version()}
	changed := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		if v := info.Main.Version; b.Version == "" && v != "(devel)" {
			b.Version = v
		}
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				b.Revision = s.Value[:min(len(s.Value), 12)]
			case s.Key == "vcs.modified" && s.Value == "true":
				changed = "-changed"
			}
		}
	}
	if b.Version == "" {
		b.Version = "devel"
	}
	if b.Revision != "" {
		b.Revision += changed
	}
	return b
}

func versionCommand(_ context.Context, s surroundings, args []string) error {
	if err := parse(flag.NewFlagSet("nodens version", flag.ContinueOnError), s, args); err != nil {
		return err
	}
	b := thisBuild()
	details := b.Go
	if b.Revision != "" {
		details = "revision " + b.Revision + ", " + details
	}
	fmt.Fprintf(s.stdout, "nodens %s (%s)\n", b.Version, details)
	return nil
}
