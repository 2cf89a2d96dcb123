package main

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/nodens-dns/nodens/deploy/hostnet"
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

// hear counts a failure of the guard by what it could not do. Nothing of ours waits for
// the lock of iptables.
func (e *setupErrors) hear(err error) {
	switch {
	case errors.Is(err, hostnet.ErrForeign):
		e[setupInterfaceCheck].Add(1)
	case errors.Is(err, hostnet.ErrLink):
		e[setupInterfaceAdd].Add(1)
	default:
		e[setupRules].Add(1)
	}
}

// snapshot has nothing but these counts, for the time before there is more to tell.
func (e *setupErrors) snapshot() (s snapshot) {
	for i := range s.Setup {
		s.Setup[i] = e[i].Load()
	}
	return s
}

// followConfig takes over the configuration whenever its files changed, or when a
// signal asks for it, until ctx ends.
func (d *daemon) followConfig(ctx context.Context) error {
	return followFiles(ctx, d.source.files, 0, d.signals, func(asked bool) time.Duration { return d.reload(ctx, asked) })
}
