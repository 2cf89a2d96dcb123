package main

import (
	"context"
	"path/filepath"
	"sync/atomic"

	"github.com/fsnotify/fsnotify"
)

// source is where the daemon's configuration comes from.
type source struct {
	// load reads it.
	load func() (Config, error)
	// files are what it is read from now, so that a change is noticed. They need not
	// exist.
	files func() []string
}

// fileSource is a configuration file.
func fileSource(path string, getenv func(string) string) source {
	return source{
		load:  func() (Config, error) { return loadConfig(path, getenv) },
		files: func() []string { return []string{path} },
	}
}

// watchFiles adds the folders on the way to the files. Watching one again does
// nothing; one that cannot be watched is left to the poll.
func watchFiles(watcher *fsnotify.Watcher, files []string) {
	if watcher == nil {
		return
	}
	for _, path := range files {
		_ = watcher.Add(filepath.Dir(path))
		if target, err := filepath.EvalSymlinks(path); err == nil {
			_ = watcher.Add(filepath.Dir(target))
		}
	}
}

// setupErrors count what node-cache counts under these names, in this order.
type setupErrors [5]atomic.Uint64

func setupErrorNames() []string {
	return []string{"iptables", "iptables_lock", "interface_add", "interface_check", "configmap"}
}

const (
	setupRules = iota
	setupLock
	setupInterfaceAdd
	setupInterfaceCheck
	setupConfigMap
)

// followConfig takes over the configuration whenever its files changed, or when a
// signal asks for it, until ctx ends.
func (d *daemon) followConfig(ctx context.Context) error {
	return followFiles(ctx, d.source.files, 0, d.signals, d.reload)
}
