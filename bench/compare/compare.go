package compare

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nodens-dns/nodens/bench/load"
	"github.com/nodens-dns/nodens/bench/machine"
	"github.com/nodens-dns/nodens/bench/peers"
	"github.com/nodens-dns/nodens/bench/play"
	"github.com/nodens-dns/nodens/bench/scenarios"
)

// Point is one thing to measure.
type Point struct {
	// Name is for the report.
	Name string
	// Scenario is what is played, as it is to be played.
	Scenario *scenarios.Scenario
	// Pinned keeps the server to one CPU and the generator to the others.
	Pinned bool
}

// Candidate is a server to be compared, with its program.
type Candidate struct {
	Peer    peers.Peer
	Path    string
	Version string
}

// Config describes a comparison.
type Config struct {
	// Candidates are the servers, the one that ratios refer to first. Required.
	Candidates []Candidate
	// Skipped are those that are missing, and why. They are only reported.
	Skipped []Skip
	// Points are what is measured. Required.
	Points []Point
	// Rounds is how often, 1 to 100. Default 1.
	Rounds int
	// Spin is that of the load.
	Spin time.Duration
	// Version is what the linker says of this program's source.
	Version string
	// Say, if set, hears how it goes, a line for each measurement.
	Say func(text string)
}

// Skip is a server that was not measured.
type Skip struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// Outcome is the result of a comparison.
type Outcome struct {
	Machine machine.Machine `json:"machine"`
	Rounds  int             `json:"rounds"`
	Base    string          `json:"base"` // the server that ratios refer to
	Points  []About         `json:"points"`
	Servers []About         `json:"servers"` // what they say of their versions
	Skipped []Skip          `json:"skipped"`
	Cut     bool            `json:"cut,omitempty"` // it ended before its time, as it was told to
	Cells   []Cell          `json:"cells"`
}

// About is a name and what it stands for.
type About struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Cell is one measurement.
type Cell struct {
	Server string       `json:"server"`
	Point  string       `json:"point"`
	Round  int          `json:"round"` // from 1
	Result *play.Result `json:"result"`
}

// Run measures. When ctx ends it drops the measurement under way and reports what
// there is so far, with an error. A server that cannot be measured is skipped from
// then on.
func Run(ctx context.Context, cfg Config) (*Outcome, error) {
	if len(cfg.Candidates) == 0 || len(cfg.Points) == 0 {
		return nil, errors.New("compare: there is nothing to compare: no server was found, or no point is given")
	}
	c := &comparison{cfg: cfg, out: &Outcome{
		Machine: machine.Describe(cfg.Version), Rounds: max(1, cfg.Rounds), Base: cfg.Candidates[0].Peer.Name, Skipped: cfg.Skipped,
	}, failed: map[string]bool{}, cpus: peers.Usable()}
	// A pinned point leaves this process on fewer CPUs; give them back.
	defer func() { _ = peers.PinSelf(c.cpus) }()
	for _, p := range cfg.Points {
		c.out.Points = append(c.out.Points, About{p.Name, aboutPoint(p)})
	}
	for _, candidate := range cfg.Candidates {
		c.out.Servers = append(c.out.Servers, About{candidate.Peer.Name, candidate.Version})
	}
	for round := range c.out.Rounds {
		if err := c.round(ctx, round); err != nil {
			c.out.Cut = true
			return c.out, err
		}
	}
	return c.out, nil
}

func aboutPoint(p Point) string {
	text := p.Scenario.Does
	if rate := p.Scenario.Peak(); rate > 0 {
		text += fmt.Sprintf(" Open loop, %.0f queries/s for %v.", rate, p.Scenario.Length())
	} else {
		text += fmt.Sprintf(" For %v.", p.Scenario.Length())
	}
	if p.Pinned {
		text += " Server on one core, generator on the others."
	}
	return text
}

type comparison struct {
	cfg    Config
	out    *Outcome
	failed map[string]bool // by the server's name
	cpus   []int           // that this process may use
}

func (c *comparison) round(ctx context.Context, round int) error {
	n := len(c.cfg.Candidates)
	for _, point := range c.cfg.Points {
		for i := range n {
			candidate := c.cfg.Candidates[(i+round)%n]
			if c.failed[candidate.Peer.Name] {
				continue
			}
			c.measure(ctx, candidate, point, round)
			if ctx.Err() != nil {
				return fmt.Errorf("compare: cut short in round %d of %d: %w", round+1, c.out.Rounds, ctx.Err())
			}
		}
	}
	return nil
}

func (c *comparison) measure(ctx context.Context, candidate Candidate, point Point, round int) {
	name := candidate.Peer.Name
	result, err := play.Play(ctx, c.config(candidate, point))
	if err != nil {
		if ctx.Err() == nil {
			c.failed[name] = true
			c.out.Skipped = append(c.out.Skipped, Skip{name, fmt.Sprintf("at %s, round %d: %v", point.Name, round+1, err)})
			c.say("%s cannot be measured at %s: %v", name, point.Name, err)
		}
		return
	}
	if result.Cut {
		return
	}
	result.Load.CDF = thin(result.Load.CDF, 80)
	result.Load.Seconds, result.Usage = nil, nil
	c.out.Cells = append(c.out.Cells, Cell{name, point.Name, round + 1, result})
	t := result.Load.Total
	c.say("round %d  %-10s %-14s %8.2f µs CPU/query  p50 %-9v p99 %-9v %8.0f/s  lost %d", round+1, point.Name, name,
		float64(result.CPU())/1e3, result.Load.Latency.P50.Round(time.Microsecond), result.Load.Latency.P99.Round(time.Microsecond),
		result.Load.Answers, t.Lost)
}

func (c *comparison) config(candidate Candidate, point Point) play.Config {
	peer := candidate.Peer
	cfg := play.Config{
		Scenario: point.Scenario, Spin: c.cfg.Spin,
		Server: &play.Server{
			Name: peer.Name, Version: candidate.Version, Fixed: peer.Fixed, Allocations: peer.Allocations,
			Start: func(s peers.Setup, cpus []int) (*peers.Process, error) { return peer.Start(candidate.Path, s, cpus) },
		},
	}
	cpus := c.cpus
	cfg.ServerCPUs, cfg.ClientCPUs = cpus, cpus
	if point.Pinned && len(cpus) > 1 {
		last := len(cpus) - 1
		cfg.ServerCPUs, cfg.ClientCPUs = cpus[last:], cpus[:last]
	}
	return cfg
}

func (c *comparison) say(format string, args ...any) {
	if c.cfg.Say != nil {
		c.cfg.Say(fmt.Sprintf(format, args...))
	}
}

// thin keeps about so many points of a distribution, its ends included.
func thin(points []load.Point, keep int) []load.Point {
	if len(points) <= keep {
		return points
	}
	var out []load.Point
	for i := range keep {
		out = append(out, points[i*(len(points)-1)/(keep-1)])
	}
	return out
}
