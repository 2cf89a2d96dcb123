package play

import (
	"context"
	"fmt"
	"time"

	"github.com/nodens-dns/nodens/bench/load"
	"github.com/nodens-dns/nodens/bench/names"
	"github.com/nodens-dns/nodens/bench/scenarios"
)

const (
	// starting is how long a server that was started here may take to answer.
	starting = 15 * time.Second
	// running is how long one that runs may take.
	running = 3 * time.Second
	// passes is how often a cache is filled before it must give right answers.
	passes = 3
)

// source gives each worker's sequence.
func (c *Config) source(mix *names.Mix) func(worker int) load.Source {
	wild, _ := names.Wire(names.WildSuffix) // a constant: it cannot fail
	return func(worker int) load.Source {
		n := uint64(worker)
		switch {
		case c.List != nil:
			return c.List.Draw(n)
		case c.Scenario.Kind == scenarios.Pods:
			return mix.Stream(n)
		case c.Scenario.Kind == scenarios.Unique:
			return mix.Zone().Unique(wild, n)
		case c.Scenario.Kind == scenarios.Blend:
			return mix.Blend(n, c.Scenario.Hits)
		}
		return mix.Flat(n)
	}
}

// every is a sequence of everything that must be warm, and its length.
func (c *Config) every(mix *names.Mix) (load.Source, int) {
	if c.List != nil {
		return c.List.Every(), c.List.Len()
	}
	return mix.Every()
}

// ask sends so many queries, a few at a time, and accounts for them.
func (p *player) ask(ctx context.Context, source load.Source, n, outstanding int, timeout time.Duration) (*load.Report, error) {
	cfg := p.cfg.Scenario.Load
	run, err := load.New(load.Config{
		Target: p.target.addr, AllowRemote: p.cfg.AllowRemote, TLS: p.cfg.TLS, Transport: cfg.Transport, Unjudged: p.cfg.unjudged(),
		Source: func(int) load.Source { return source }, Outstanding: outstanding, Queries: uint64(n),
		Stages: []load.Stage{{Name: "warm"}}, Timeout: timeout, FollowTC: true,
	})
	if err != nil {
		return nil, err
	}
	return run.Run(ctx)
}

// answers waits until the target answers at all.
func (p *player) answers(ctx context.Context) error {
	limit, patience := time.Now().Add(running), running
	if p.target.process != nil {
		limit, patience = time.Now().Add(starting), starting
	}
	for tries := 1; ; tries++ {
		source, _ := p.cfg.every(p.mix)
		report, err := p.ask(ctx, source, 1, 1, 200*time.Millisecond)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil && report.Total.Answered() > 0 {
			return nil
		}
		if p.target.process != nil {
			if failed := p.target.process.Failed(); failed != nil {
				return fmt.Errorf("play: %s does not run: %w", p.cfg.Server.Name, failed)
			}
		}
		if time.Now().After(limit) {
			return p.silent(tries, patience, err)
		}
		time.Sleep(30 * time.Millisecond)
	}
}

func (p *player) silent(tries int, patience time.Duration, err error) error {
	if p.target.process != nil {
		return fmt.Errorf("play: %s did not answer on %v within %v; its output: %s", p.cfg.Server.Name, p.target.addr, patience, p.target.process.Output())
	}
	why := fmt.Sprintf("%d queries in %v had no reply", tries, patience)
	if err != nil {
		why = err.Error()
	}
	return fmt.Errorf("play: %v does not answer, so there is nothing to measure: %s; is it running, and does it listen there", p.target.addr, why)
}

// warm fills the cache, and makes sure that what comes out of it is right.
func (p *player) warm(ctx context.Context) error {
	source, n := p.cfg.every(p.mix)
	if !p.cfg.Scenario.Warm {
		n = min(n, 100) // only to see that the answers are right
	}
	var report *load.Report
	for range passes {
		var err error
		if report, err = p.ask(ctx, source, n, 32, 2*time.Second); err != nil {
			return err
		}
		if t := report.Total; ctx.Err() != nil || t.Right+t.Late == t.Sent {
			return ctx.Err()
		}
	}
	t, example := report.Total, ""
	if len(report.Examples) > 0 {
		example = ": " + report.Examples[0]
	}
	return fmt.Errorf("play: the warm-up is not answered as it should be, so there is nothing to measure: of %d queries %d right, %d wrong, %d truncated, %d SERVFAIL, %d lost%s",
		t.Sent, t.Right+t.Late, t.Wrong, t.Truncated, t.ServFail, t.Lost, example)
}
