package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/nodens-dns/nodens/deploy/guard"
	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// guardMemory bounds the heap of a guard: what it keeps is small.
const guardMemory = 64 << 20

// guardCommand is nodens guard.
func guardCommand(ctx context.Context, s surroundings, args []string) error {
	flags := flag.NewFlagSet("nodens guard", flag.ContinueOnError)
	path := flags.String("config", "", "the configuration `FILE`, the same as serve's; its sections host and listen count, and a change of them is taken over")
	teardown := flags.Bool("teardown", false, "remove link and rules at the end: without a guard and without serve nobody then answers")
	if err := parse(flags, s, args); err != nil {
		return err
	}
	if *path == "" {
		return needConfig(flags)
	}
	config, err := loadConfig(*path, s.getenv)
	if err != nil {
		return err
	}
	if s.getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(guardMemory)
	}
	applyCPUPolicy(1, s.getenv)
	log := newLogger(config.Log, zap.NewAtomicLevel(), s.stderr)
	source := fileSource(*path, s.getenv)
	run := guardRun{
		config: config, teardown: *teardown, follow: followServers(config, source.load, log), log: log, getenv: s.getenv, source: source,
	}
	return run.run(ctx)
}

// guardConfig is the guard that a configuration asks for.
func guardConfig(c *Config, host guard.Host, log *zap.Logger) guard.Config {
	return guard.Config{
		State: c.hostState(), Host: host, Socket: c.Host.Socket, Lock: c.Host.Lock, Endpoints: c.Host.Endpoints,
		UID: c.Host.UID, Version: thisBuild().Version, Log: log,
	}
}

// guardRun is a guard as a process, or as a part of one.
type guardRun struct {
	config   Config
	teardown bool
	// follow is how it follows the servers of the fallback by itself; nil where it
	// lives and dies with serve.
	follow guard.Follow
	log    *zap.Logger
	getenv func(string) string
	// inside is where the daemon of the same process finds the guard while it runs; nil
	// in a process of its own.
	inside *atomic.Pointer[guard.Guard]
	// failed hears of each failure to set up the node; may be nil.
	failed func(error)
	// source is where the configuration comes from, to be followed; the zero value where
	// nothing of it can change.
	source source
}

// guardStop is how long a guard may take to end: it has nothing to finish.
func guardStop() time.Duration { return 5 * time.Second }

func (r *guardRun) run(ctx context.Context) error {
	c, log := &r.config, r.log
	host, err := hostnet.New(hostnet.Config{})
	if err != nil {
		return fmt.Errorf("nodens guard cannot start: %w", err)
	}
	defer host.Close()
	config := guardConfig(c, host, log)
	config.Teardown, config.Follow, config.Failed = r.teardown, r.follow, r.failed
	g, err := guard.New(config)
	if err != nil {
		return fmt.Errorf("nodens guard cannot start: %w", err)
	}
	if r.inside != nil {
		r.inside.Store(g)
		defer r.inside.Store(nil)
	}
	log.Info("nodens guards", zap.String("version", thisBuild().Version), zap.String("config", c.Path), zap.String("mode", c.Host.Mode))
	tasks := []task{
		{"metrics", func(ctx context.Context) error { return serveGuardMetrics(ctx, c, g, log) }},
		{"guard", g.Run},
		{"readiness", func(ctx context.Context) error { return tellReadiness(ctx, g, r.getenv) }},
	}
	if r.source.load != nil {
		tasks = append(tasks, task{"reload", func(ctx context.Context) error { return r.followConfig(ctx, g) }})
	}
	err = runTasks(ctx, guardStop, tasks...)
	left := "stays in force"
	if r.teardown {
		left = "is removed"
	}
	log.Info("nodens guard has stopped; what it set up "+left, zap.Error(err))
	return err
}

// tellReadiness says once that the guard has done what it can for the node: serve, which
// is started after it, is of use also on a kernel that lacks something.
func tellReadiness(ctx context.Context, g *guard.Guard, getenv func(string) string) error {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !g.Status().Owner {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
	notify(getenv, "READY=1")
	<-ctx.Done()
	notify(getenv, "STOPPING=1")
	return nil
}

// serveGuardMetrics serves the guard's own address, so that what happens while serve is
// away is seen.
func serveGuardMetrics(ctx context.Context, c *Config, g *guard.Guard, log *zap.Logger) error {
	var failures atomic.Uint64
	l := listenHTTP(ctx, httpSide{name: "host.metrics", address: c.Host.Metrics.String()}, log, &failures)
	if l == nil {
		return nil
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metricsHandler(newCollector(func() guardSnapshot { return snapshotGuard(g) }, guardMetrics())))
	mux.HandleFunc("GET /livez", say("alive"))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { sayFallback(w, g.Status()) })
	serveHTTP(ctx, l, mux, log)
	return nil
}

// sayFallback tells whether queries are answered while serve is away.
func sayFallback(w http.ResponseWriter, s guard.Status) {
	if s.Fallback != "" {
		http.Error(w, "there is no fallback: "+s.Fallback, http.StatusServiceUnavailable)
		return
	}
	say("the fallback is ready")(w, nil)
}
