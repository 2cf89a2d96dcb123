package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/nodens-dns/nodens/deploy/guard"
	"github.com/nodens-dns/nodens/forwarder"
)

// serveCommand is nodens serve.
func serveCommand(ctx context.Context, s surroundings, args []string) error {
	flags := flag.NewFlagSet("nodens serve", flag.ContinueOnError)
	path := flags.String("config", "", "the configuration `FILE`; a change of it is taken over while the daemon runs")
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
	level := zap.NewAtomicLevel()
	d := newDaemon(newLogger(config.Log, level, s.stderr), level, s.getenv)
	return d.serve(ctx, config)
}

// daemon is what stays while generations of parts come and go.
type daemon struct {
	base
	level   zap.AtomicLevel
	getenv  func(string) string
	build   build
	started time.Time
	began   Config // at the start
	bound   int64  // memory in bytes that the cgroup allows; 0 = any
	source  source
	setup   setupErrors
	health  healthPoll
	relief  relief

	handler handler
	// queryLog and collector watch the queries.
	queryLog  queryLog
	collector tapping
	current   atomic.Pointer[generation]
	whenReady func()        // may be nil
	ready     atomic.Value  // string: why not ready; "" means ready
	broken    chan struct{} // hears when a listener failed
	committed chan struct{} // hears when another generation serves
	drained   chan struct{} // closed when the listeners have stopped
	retired   sync.WaitGroup
	signals   chan os.Signal // ask for a reload
	reloads   reloads
	rates     rates
	beside    atomic.Bool                 // another process shares our listen addresses
	inside    atomic.Pointer[guard.Guard] // the guard that runs in this process; nil while none does

	adminAt       atomic.Value  // string: the admin address in use; nil before
	adminFailures atomic.Uint64 // times the admin address could not be had
}

func newDaemon(log *zap.Logger, level zap.AtomicLevel, getenv func(string) string) *daemon {
	began := time.Now()
	d := &daemon{
		base: base{
			now: func() time.Duration { return time.Since(began) }, log: log, own: interfaceAddrs,
			clients: &clients{}, instance: newInstance(), taps: &forwarder.Taps{},
		},
		level:     level,
		getenv:    getenv,
		build:     thisBuild(),
		started:   began,
		broken:    make(chan struct{}, 1),
		committed: make(chan struct{}, 1),
		drained:   make(chan struct{}),
		signals:   make(chan os.Signal, 1),
	}
	d.relief.root, d.relief.log = os.DirFS("/"), log
	if getenv("GOMEMLIMIT") == "" {
		d.bound = cgroupMemory(d.relief.root)
	}
	d.ready.Store("starting")
	d.handler.looped, d.handler.collector, d.handler.base = d.looped, &d.collector, &d.base
	return d
}

// serve runs the daemon until ctx ends. Everything that can be wrong with the
// configuration on this machine is found before the first query is read.
func (d *daemon) serve(ctx context.Context, c Config) error {
	d.began = c
	if d.source.load == nil {
		d.source = fileSource(c.Path, d.getenv)
	}
	signal.Notify(d.signals, syscall.SIGHUP, syscall.SIGUSR1) // else they would kill
	defer signal.Stop(d.signals)
	defer d.startProbeSocket(c.Admin.Socket)()
	defer d.connectGuard(c)()
	d.awaitAddresses(ctx, &c)
	first, err := d.prepare(c, nil)
	if err != nil {
		return fmt.Errorf("nodens cannot start: %w", err)
	}
	d.commit(first)
	memory := applyMemoryPolicy(first.config.Cache.Size, d.bound, d.getenv)
	applyCPUPolicy(c.Limits.CPUs, d.getenv)
	d.reloads.done(d.started, c.Hash, nil)
	d.logNotes(&c)
	d.log.Info("nodens serves", zap.String("version", d.build.Version), zap.String("config", c.Path),
		zap.Stringers("listen", d.addresses()), zap.Int("gcPercent", memory.GCPercent), zap.Int64("memoryLimit", memory.Limit))

	err = runTasks(ctx, d.stopPatience,
		task{"admin", d.runAdmin},
		task{"query log and dnstap", d.runOutlets},
		task{"memory", d.runRelief},
		task{"routes", d.runRoutes},
		task{"listeners", d.runListens},
		task{"reload", d.followConfig},
		task{"readiness", d.runReadiness},
	)
	d.log.Info("nodens has stopped", zap.Error(err))
	return err
}

// stopPatience is how long a stop may take.
func (d *daemon) stopPatience() time.Duration {
	c := &d.current.Load().config
	return c.StopDelay + c.StopGrace
}

// addresses are those in use: with port 0 the kernel has chosen.
func (d *daemon) addresses() []fmt.Stringer {
	var list []fmt.Stringer
	for _, l := range d.current.Load().listens {
		list = append(list, l.address())
	}
	return list
}

// runReadiness is ready as long as it runs. At its end it goes on for a while, so that
// others notice, and has the guard send elsewhere what the kernel would send here.
func (d *daemon) runReadiness(ctx context.Context) error {
	d.ready.Store("")
	notify(d.getenv, "READY=1")
	if d.whenReady != nil {
		d.whenReady()
	}
	<-ctx.Done()
	d.ready.Store("stopping")
	notify(d.getenv, "STOPPING=1")
	time.Sleep(d.current.Load().config.StopDelay) // a second signal ends it at once
	d.log.Info("stopping: what was received is answered first")
	d.leave()
	return nil
}

// runListens ends the listeners when ctx ends or one of them fails.
func (d *daemon) runListens(ctx context.Context) error {
	var failed error
	select {
	case <-ctx.Done():
	case <-d.broken:
		failed = errors.New("a listener failed")
	}
	defer close(d.drained)
	return errors.Join(failed, stopListens(d.current.Load().listens, context.Background()))
}

// runRoutes ends the routes when ctx ends, those of former configurations too.
// With their sockets ends what is still asked in the background, for which the
// forwarder waits.
func (d *daemon) runRoutes(ctx context.Context) error {
	<-ctx.Done()
	g := d.current.Load()
	err := errors.Join(stopRoutes(g.routes, context.Background()), g.forwarder.Close())
	d.retired.Wait()
	return err
}
