package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/nodens-dns/nodens/bench/load"
	"github.com/nodens-dns/nodens/bench/names"
)

// demoWait is how long the daemon of a demonstration may take to be ready.
const demoWait = 10 * time.Second

// demoCommand is nodens demo: a node's DNS on loopback, with its servers, its
// clients and all that goes wrong in a cluster. It fails if a query was lost or
// answered wrong.
func demoCommand(ctx context.Context, s surroundings, args []string) error {
	flags := flag.NewFlagSet("nodens demo", flag.ContinueOnError)
	length := flags.Duration("for", 40*time.Second, "how long the load runs, a `DURATION` of 10s to 1h")
	rate := flags.Float64("rate", 2000, "the load in queries per second (`QPS`), 100 to 20000")
	keep := flags.Bool("keep", false, "go on serving afterwards until interrupted")
	if err := parse(flags, s, args); err != nil {
		return err
	}
	if *length < 10*time.Second || *length > time.Hour || *rate < 100 || *rate > 20000 {
		return errors.New("nodens demo: -for must be from 10s to 1h and -rate from 100 to 20000")
	}
	dir, err := os.MkdirTemp("", "nodens-demo-")
	if err != nil {
		return fmt.Errorf("nodens demo needs a folder for its files: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	d, err := newDemo(dir, *length, *rate, s)
	if err != nil {
		return fmt.Errorf("nodens demo cannot start: %w", err)
	}
	return errors.Join(d.play(ctx, *keep), d.close())
}

// demo is one demonstration: the cluster, the daemon in front of it, and the
// clients.
type demo struct {
	length  time.Duration
	rate    float64
	cluster *demoCluster
	mix     *names.Mix
	daemon  *daemon
	serving *running
	address netip.AddrPort // of the daemon
	view    *demoView
}

func newDemo(dir string, length time.Duration, rate float64, s surroundings) (*demo, error) {
	d := &demo{length: length, rate: rate}
	var err error
	if d.mix, err = names.NewMix(names.Config{}); err != nil {
		return nil, err
	}
	if d.cluster, err = newDemoCluster(d.mix.Zone(), dir); err != nil {
		return nil, err
	}
	if err = d.startDaemon(dir, s); err != nil {
		return nil, errors.Join(err, d.close())
	}
	phases, _ := demoScript()
	d.view = newDemoView(s.stdout, d.cluster, phases, d.daemon.snapshot)
	return d, nil
}

// startDaemon writes a configuration such as an operator would, and serves it.
func (d *demo) startDaemon(dir string, s surroundings) error {
	path := filepath.Join(dir, "nodens.yaml")
	text := fmt.Sprintf(`version: v1
listen: [127.0.0.1:0]
admin: {address: 127.0.0.1:0}
node: {name: n1, zone: za}
routes:
- zones: [cluster.local, in-addr.arpa, ip6.arpa]
  topology: {file: %s, namespace: kube-system, service: kube-dns}
- zones: ["."]
  servers: [%s]
limits: {cpus: %d} # the clients and the servers run in this process too
log: {level: error, format: console}
`, d.cluster.file, d.cluster.resolver.Addr(), runtime.GOMAXPROCS(0))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	config, err := loadConfig(path, func(string) string { return "" })
	if err != nil {
		return err
	}
	level := zap.NewAtomicLevel()
	d.daemon = newDaemon(newLogger(config.Log, level, s.stderr), level, s.getenv)
	d.serving = start(task{"daemon", func(ctx context.Context) error { return d.daemon.serve(ctx, config) }}, nil)
	for limit := time.Now().Add(demoWait); d.daemon.ready.Load() != ""; {
		select {
		case <-d.serving.done:
			return d.serving.err
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(limit) {
			return fmt.Errorf("the daemon was not ready within %v", demoWait)
		}
	}
	d.address = d.daemon.current.Load().listens[0].address()
	return nil
}

// close ends the daemon, then the cluster.
func (d *demo) close() error {
	var err error
	if d.serving != nil {
		limit, cancel := context.WithTimeout(context.Background(), demoWait)
		defer cancel()
		err = d.serving.end(limit)
	}
	d.cluster.close()
	return err
}

// play runs the load while the script runs, and reports.
func (d *demo) play(ctx context.Context, keep bool) error {
	phases, steps := demoScript()
	var stages []load.Stage
	for i, p := range phases {
		until := 1.0
		if i+1 < len(phases) {
			until = phases[i+1].from
		}
		stages = append(stages, load.Steady(p.name, d.rate, d.share(until-p.from)))
	}
	clients, err := load.New(load.Config{
		Target: d.address, Stages: stages, Sockets: 64, Progress: d.view.second,
		Source: func(worker int) load.Source { return d.mix.Stream(uint64(worker)) },
	})
	if err != nil {
		return err
	}
	d.view.begin(d.address, d.rate, d.length)
	script := start(task{"script", func(ctx context.Context) error { return d.follow(ctx, steps) }}, nil)
	report, err := clients.Run(ctx)
	err = errors.Join(err, script.end(context.Background()))
	if err != nil {
		return err
	}
	d.view.end(report)
	if keep {
		d.view.keep(d.address, d.daemon.adminAt.Load())
		<-ctx.Done()
	}
	return demoVerdict(report, d.view.unseen)
}

func (d *demo) share(of float64) time.Duration { return time.Duration(of * float64(d.length)) }

// follow does the steps of the script in time. What befalls the local server
// proves something only if it had a share of the queries just before.
func (d *demo) follow(ctx context.Context, steps []demoStep) error {
	began := time.Now()
	for _, step := range steps {
		at := began.Add(d.share(step.at))
		if !sleepUntil(ctx, at.Add(-time.Second)) {
			return nil
		}
		before := d.view.sums()
		if !sleepUntil(ctx, at) {
			return nil
		}
		if step.fails != "" {
			d.view.struck(step.fails, d.view.sums().since(before))
		}
		d.view.step(step.does)
		if err := d.cluster.take(ctx, step); err != nil {
			return fmt.Errorf("%s: %w", step.does, err)
		}
	}
	return nil
}

// sleepUntil waits until a moment; false when ctx ended before.
func sleepUntil(ctx context.Context, moment time.Time) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(time.Until(moment)):
		return true
	}
}

// demoVerdict is an error if any query was lost, failed or answered wrong, or if
// the local server failed while nobody asked it, which proves nothing.
func demoVerdict(r *load.Report, unseen []string) error {
	t := r.Total
	if bad := t.Lost + t.Wrong + t.ServFail; bad > 0 {
		return fmt.Errorf("nodens demo: %d queries lost, %d answered wrong, %d with SERVFAIL of %d", t.Lost, t.Wrong, t.ServFail, t.Sent)
	}
	if len(unseen) > 0 {
		return fmt.Errorf("nodens demo: the local server had no share in the second before its %s, which therefore proved nothing; run it for longer, or on a machine with less to do", strings.Join(unseen, " and its "))
	}
	return nil
}
