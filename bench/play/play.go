package play

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/nodens-dns/nodens/bench/cost"
	"github.com/nodens-dns/nodens/bench/load"
	"github.com/nodens-dns/nodens/bench/names"
	"github.com/nodens-dns/nodens/bench/peers"
	"github.com/nodens-dns/nodens/bench/scenarios"
)

// player is one play.
type player struct {
	cfg    Config
	mix    *names.Mix
	behind *behind
	target *target

	began time.Time
	run   *load.Run
	marks []Mark
}

// Play plays a scenario. When ctx ends it stops early and reports what there is
// so far.
func Play(ctx context.Context, cfg Config) (*Result, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	mix, err := names.NewMix(cfg.Scenario.Names)
	if err != nil {
		return nil, fmt.Errorf("play: %s: %w", cfg.Scenario.Name, err)
	}
	dir, err := os.MkdirTemp("", "nodens-bench-")
	if err != nil {
		return nil, fmt.Errorf("play: a folder for the server's files: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	p := &player{cfg: cfg, mix: mix}
	p.target = &target{cfg: &p.cfg}
	defer p.target.stop()
	if err := p.prepare(ctx, dir); err != nil {
		return nil, err
	}
	defer p.behind.close()
	return p.measure(ctx)
}

// prepare starts everything and warms the target, before any fault.
func (p *player) prepare(ctx context.Context, dir string) error {
	endpoints := ""
	if p.cfg.Scenario.Servers > 1 {
		endpoints = filepath.Join(dir, "endpoints.yaml")
	}
	if p.behind = new(behind); p.cfg.Server != nil || len(p.cfg.Behind) > 0 {
		var err error
		p.behind, err = startBehind(p.mix.Zone(), p.cfg.Scenario, p.cfg.Behind, endpoints)
		if err != nil {
			p.behind.close()
			return err
		}
	}
	err := errors.Join(peers.PinSelf(p.cfg.ClientCPUs), p.target.start(p.behind, dir, endpoints))
	if err == nil {
		err = p.answers(ctx)
	}
	if err == nil {
		err = p.warm(ctx)
	}
	if err == nil {
		err = p.behind.spoil(p.cfg.Scenario.Faults)
	}
	if err != nil {
		p.behind.close()
	}
	return err
}

// measure runs the load and accounts for it.
func (p *player) measure(ctx context.Context) (*Result, error) {
	cfg := p.cfg.Scenario.Load
	cfg.Target, cfg.AllowRemote, cfg.TLS = p.target.addr, p.cfg.AllowRemote, p.cfg.TLS
	cfg.Source, cfg.Unjudged = p.cfg.source(p.mix), p.cfg.unjudged()
	cfg.Progress, cfg.Spin = p.cfg.Progress, p.cfg.Spin
	cfg.Stages = slices.Clone(cfg.Stages)
	var err error
	if p.run, err = load.New(cfg); err != nil {
		return nil, err
	}
	account := p.startAccount()
	events, cancel := context.WithCancel(ctx)
	var following sync.WaitGroup
	var wrong, unprofiled error
	p.began = time.Now()
	following.Go(func() { wrong = p.follow(events) })
	following.Go(func() { unprofiled = p.profile(ctx) })
	report, err := p.run.Run(ctx)
	cut := ctx.Err() != nil
	cancel()
	following.Wait()
	r := &Result{Scenario: p.cfg.Scenario.Name, Does: p.cfg.Scenario.Does, Pinned: p.pinned(), Checked: p.cfg.checked(), Cut: cut, Load: report, Marks: p.marks}
	err = errors.Join(err, wrong, unprofiled, account.end(r, p.began))
	if p.cfg.Server != nil {
		r.Server, r.Version = p.cfg.Server.Name, p.cfg.Server.Version
	} else {
		r.Server = p.target.addr.String()
	}
	r.Behind = p.behind.queries()
	return r, err
}

// pinned tells whether server and generator keep to CPUs of their own.
func (p *player) pinned() bool {
	for _, cpu := range p.cfg.ServerCPUs {
		if slices.Contains(p.cfg.ClientCPUs, cpu) {
			return false
		}
	}
	return len(p.cfg.ServerCPUs) > 0
}

// follow lets happen what the scenario says.
func (p *player) follow(ctx context.Context) error {
	for _, e := range p.cfg.Scenario.Events {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Until(p.began.Add(e.At))):
		}
		p.marks = append(p.marks, Mark{At: time.Since(p.began), Does: e.Does})
		p.cfg.say("%s", e.Does)
		if err := p.do(e); err != nil {
			return fmt.Errorf("play: %s: %w", e.Does, err)
		}
	}
	return nil
}

func (p *player) do(e scenarios.Event) error {
	if e.Do.OnTarget() {
		return p.target.restart(e)
	}
	return p.behind.do(e)
}

// account watches the server's process during the load.
type account struct {
	target  *target
	cancel  context.CancelFunc
	running sync.WaitGroup
	samples []cost.Sample
	err     error
	allocs  uint64
	known   bool
}

// startAccount begins to watch, if there is one process to watch all the time.
func (p *player) startAccount() *account {
	a := &account{target: p.target, cancel: func() {}}
	pid := p.target.pid()
	if pid == 0 || p.cfg.Scenario.Restarts() {
		return a
	}
	a.allocs, a.known = p.target.allocations()
	var ctx context.Context
	ctx, a.cancel = context.WithCancel(context.Background())
	a.running.Go(func() { a.samples, a.err = cost.Watch(ctx, pid, time.Second) })
	return a
}

// end adds what was accounted for to the result.
func (a *account) end(r *Result, began time.Time) error {
	a.cancel()
	a.running.Wait()
	if len(a.samples) < 2 {
		return a.err
	}
	c := cost.Between(a.samples[0], a.samples[len(a.samples)-1])
	r.Cost, r.Usage, r.Children = &c, usage(a.samples, began), cost.Children(a.target.pid())
	if now, ok := a.target.allocations(); ok && a.known {
		r.Allocations = now - a.allocs
	}
	return a.err
}
