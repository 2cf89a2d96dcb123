package main

import (
	"context"
	"os"
	"os/signal"
	"reflect"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/nodens-dns/nodens/deploy/guard"
	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// guardReload is what a guard knows of its configuration file.
type guardReload struct {
	source source
	began  Config // at the start
	change func(hostnet.State) error
	log    *zap.Logger

	hash  string        // of the file that was taken over last
	state hostnet.State // that it asked for
	told  string        // why it was not taken over, the last time
}

// followConfig takes over what a guard can of the configuration whenever its file
// changes, or when a signal asks for it, until ctx ends.
func (r *guardRun) followConfig(ctx context.Context, g *guard.Guard) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGUSR1) // else they would kill
	defer signal.Stop(signals)
	reload := guardReload{
		source: r.source, began: r.config, hash: r.config.Hash, state: r.config.hostState(), log: r.log,
		change: func(s hostnet.State) error { return g.Change(ctx, s) },
	}
	return followFiles(ctx, r.source.files, 0, signals, func(asked bool) time.Duration {
		reload.look(asked)
		return 0
	})
}

// look reads the file and takes it over. What cannot be is said once, and to whoever
// asked.
func (r *guardReload) look(asked bool) {
	c, err := r.source.load()
	if err == nil {
		err = r.takeOver(&c, asked)
	}
	why := ""
	if err != nil {
		why = err.Error()
	}
	if err != nil && (asked || why != r.told) {
		r.log.Error("the new configuration was not taken over by this guard; the old one goes on", zap.Error(err))
	}
	r.told = why
}

// takeOver has the host look as c says.
func (r *guardReload) takeOver(c *Config, asked bool) error {
	now := *c
	now.Host.Link, now.Host.UID = r.began.Host.Link, r.began.Host.UID
	state := now.hostState()
	switch {
	case !reflect.DeepEqual(state, r.state):
		if err := r.change(state); err != nil {
			return err
		}
	case asked:
		r.log.Info("a reload was asked for, and the host looks as it should", zap.String("config", c.Path))
	}
	later := guardNeedsRestart(c, &r.began)
	if c.Hash != r.hash && len(later) > 0 {
		r.log.Warn("these changes wait for a restart of the guard; the rest is in force", zap.Strings("settings", later))
	}
	r.hash, r.state = c.Hash, state
	return nil
}

// guardNeedsRestart names the settings of a guard in which c differs from those of the
// start and which are only read then.
func guardNeedsRestart(c, start *Config) []string {
	n, s := &c.Host, &start.Host
	return changedSettings([]setting{
		{"host.link", n.Link, s.Link},
		{"host.uid", n.UID, s.UID},
		{"host.socket", n.Socket, s.Socket},
		{"host.lock", n.Lock, s.Lock},
		{"host.endpoints", n.Endpoints, s.Endpoints},
		{"host.metrics", n.Metrics, s.Metrics},
	})
}
