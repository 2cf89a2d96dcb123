package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"

	"github.com/nodens-dns/nodens/deploy/guard"
	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// cleanupCommand is nodens cleanup.
func cleanupCommand(_ context.Context, s surroundings, args []string) error {
	flags := flag.NewFlagSet("nodens cleanup", flag.ContinueOnError)
	path := flags.String("config", "", "the configuration `FILE` of what is removed; without it the defaults")
	force := flags.Bool("force", false, "also while a guard runs, which sets it all up again")
	if err := parse(flags, s, args); err != nil {
		return err
	}
	c, err := hostOf(*path, s.getenv)
	if err != nil {
		return err
	}
	if pid, held := guard.Holder(c.Host.Lock); held && !*force {
		return fmt.Errorf("a guard runs here (process %d) and would set it all up again: stop it first, or use -force", pid)
	}
	host, err := hostnet.New(hostnet.Config{})
	if err != nil {
		return err
	}
	defer host.Close()
	report, err := host.Cleanup(c.hostState())
	for _, line := range report.Changed {
		fmt.Fprintln(s.stdout, line)
	}
	for _, note := range report.Notes {
		fmt.Fprintf(s.stdout, "note: %s\n", note)
	}
	removed, fileErr := removeFile(c.Host.Endpoints)
	if removed {
		fmt.Fprintf(s.stdout, "file %s: removed\n", c.Host.Endpoints)
	}
	if hint := legacyHint(); hint != "" {
		fmt.Fprintf(s.stdout, "note: %s\n", hint)
	}
	if len(report.Changed) == 0 && !removed && err == nil {
		fmt.Fprintln(s.stdout, "there was nothing to remove")
	}
	return errors.Join(err, fileErr)
}

// hostOf is a configuration for what is done to the host; the defaults without a path.
func hostOf(path string, getenv func(string) string) (Config, error) {
	if path == "" {
		return defaultConfig(), nil
	}
	return loadConfig(path, getenv)
}

func removeFile(path string) (removed bool, err error) {
	if err := os.Remove(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return false, err
	}
	return true, nil
}
