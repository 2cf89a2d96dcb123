package proof

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/bench/load"
	"github.com/nodens-dns/nodens/bench/world"
)

// traffic is what the pods of one node ask: names they share, which the cache
// mostly knows, and names never asked before. They are two loads side by side,
// so that misses have percentiles of their own.
type traffic struct {
	t      *testing.T
	from   place
	daemon *daemon
	loads  []*load.Run
	ends   context.CancelFunc
	done   sync.WaitGroup
	got    []*load.Report // hits, misses
	before uint64         // datagrams the kernel had dropped in the clients' place
}

// demand describes traffic. Rates are queries per second.
type demand struct {
	hits, misses float64
	// unheard are the misses; nil: pods and absent names, as real CoreDNS
	// knows them.
	unheard func(number int) (world.Source, error)
	// patience is after how long a query counts as lost. Default 5 s.
	patience time.Duration
}

// usual is the demand at a rate.
func usual(rate float64) demand {
	return demand{hits: rate * (1 - missShare), misses: rate * missShare}
}

// sequence numbers the sequences of a run, so that none repeats a name.
var sequence struct {
	sync.Mutex
	last int
}

func nextSequence() int {
	sequence.Lock()
	defer sequence.Unlock()
	sequence.last++
	return sequence.last
}

// ask starts the traffic of a node's pods.
func (c *cluster) ask(d *daemon, want demand) *traffic {
	c.t.Helper()
	number := nextSequence()
	unheard, err := world.NewUnheard(c.mix, number)
	if want.unheard != nil {
		unheard, err = want.unheard(number)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	flat := c.mix.Flat(uint64(number))
	return startTraffic(c.t, c.ground.client(d.node), d, want.patience,
		stream{want.hits, func(int) load.Source { return flat }},
		stream{want.misses, func(int) load.Source { return unheard }})
}

// stream is one load of a traffic.
type stream struct {
	rate   float64
	source func(int) load.Source
}

func startTraffic(t *testing.T, from place, d *daemon, patience time.Duration, streams ...stream) *traffic {
	t.Helper()
	tr := &traffic{t: t, from: from, daemon: d, got: make([]*load.Report, len(streams))}
	err := from.do(func() error {
		for _, s := range streams {
			run, err := load.New(load.Config{
				Target: d.at, AllowRemote: true, Source: s.source, Transport: load.UDP, Sockets: 32, Timeout: patience,
				Stages: []load.Stage{load.Steady("begin", s.rate, 0)},
			})
			if err != nil {
				return err
			}
			tr.loads = append(tr.loads, run)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if tr.before, err = from.rcvbufErrors(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	tr.ends = cancel
	for i, run := range tr.loads {
		tr.done.Go(func() { tr.got[i], _ = run.Run(ctx) }) // its only error is being run twice
	}
	t.Cleanup(func() { cancel(); tr.done.Wait() })
	return tr
}

// mark begins a phase.
func (tr *traffic) mark(phase string) {
	for _, run := range tr.loads {
		run.Mark(phase)
	}
}

// stop ends the traffic and waits for what is in flight.
func (tr *traffic) stop() *traffic {
	tr.ends()
	tr.done.Wait()
	return tr
}

// hits and misses are the reports of the two loads.
func (tr *traffic) hits() *load.Report   { return tr.got[0] }
func (tr *traffic) misses() *load.Report { return tr.got[len(tr.got)-1] }

// phases adds up the counts of all phases whose name begins so.
func phases(r *load.Report, prefix string) (c load.Counts) {
	for _, p := range r.Phases {
		if strings.HasPrefix(p.Name, prefix) {
			addCounts(&c, p.Counts)
		}
	}
	return c
}

func addCounts(c *load.Counts, d load.Counts) {
	c.Sent += d.Sent
	c.Right += d.Right
	c.Late += d.Late
	c.Wrong += d.Wrong
	c.Truncated += d.Truncated
	c.ServFail += d.ServFail
	c.Lost += d.Lost
}

// slowest is the largest p99 and p99.9 of the phases whose name begins so.
func slowest(r *load.Report, prefix string) (p99, p999 time.Duration) {
	for _, p := range r.Phases {
		if strings.HasPrefix(p.Name, prefix) {
			p99, p999 = max(p99, p.Latency.P99), max(p999, p.Latency.P999)
		}
	}
	return p99, p999
}

// total is the counts of both loads.
func (tr *traffic) total() (c load.Counts) {
	for _, r := range tr.got {
		addCounts(&c, r.Total)
	}
	return c
}

// loss describes who may have lost what: the load's own sockets, the kernel in
// the clients' place, or the nodens.
func (tr *traffic) loss() string {
	var overflow, unsent, stray uint64
	var lag time.Duration
	for _, r := range tr.got {
		overflow += r.Generator.Overflow
		unsent += r.Generator.Unsent
		stray += r.Generator.Stray
		lag = max(lag, r.Generator.Lag.P99)
	}
	now, err := tr.from.rcvbufErrors()
	text := fmt.Sprintf("load: %d overflowed, %d unsent, %d strays, left %v late (p99), UdpRcvbufErrors +%d",
		overflow, unsent, stray, lag.Round(10*time.Microsecond), now-tr.before)
	if err != nil {
		text += ", " + err.Error()
	}
	if tr.daemon.process.Running() {
		if why := tr.daemon.status().dropped(); why != "" {
			text += "; nodens dropped: " + why
		}
	}
	return text
}

// expectNone asserts that no query was lost, failed or answered wrong.
func (tr *traffic) expectNone() {
	tr.t.Helper()
	tr.t.Log(tr.summary())
	tr.expectAtMost(tr.total(), 0)
}

// expectAtMost asserts that no query was lost or answered wrong, and that at
// most so many failed.
func (tr *traffic) expectAtMost(c load.Counts, failed uint64) {
	tr.t.Helper()
	if c.Lost != 0 || c.Wrong != 0 || c.Truncated != 0 || c.ServFail > failed {
		tr.t.Errorf("%d of %d queries lost, %d wrong, %d truncated, %d SERVFAIL (at most %d); %s",
			c.Lost, c.Sent, c.Wrong, c.Truncated, c.ServFail, failed, tr.loss())
		for _, r := range tr.got {
			for _, text := range r.Examples {
				tr.t.Log(text)
			}
			logBadSeconds(tr.t, r)
		}
	}
}

// logBadSeconds shows when it went wrong.
func logBadSeconds(t *testing.T, r *load.Report) {
	t.Helper()
	for _, s := range r.Seconds {
		if c := s.Counts; c.Lost+c.Wrong+c.ServFail > 0 {
			t.Logf("second %d: %d sent, %d lost, %d wrong, %d SERVFAIL, %d late", s.At/time.Second, c.Sent, c.Lost, c.Wrong, c.ServFail, c.Late)
		}
	}
	for _, p := range r.Phases {
		t.Logf("phase %s from %v: %d sent, %d lost, %d SERVFAIL, p99 %v", p.Name, p.Start.Round(time.Millisecond), p.Counts.Sent, p.Counts.Lost, p.Counts.ServFail, p.Latency.P99)
	}
}

func (tr *traffic) summary() string {
	c := tr.total()
	text := fmt.Sprintf("%d sent, %d lost, %d SERVFAIL, %d wrong, %d late; %s", c.Sent, c.Lost, c.ServFail, c.Wrong, c.Late, tr.loss())
	for i, r := range tr.got {
		l := r.Latency
		text += fmt.Sprintf("\n%s: %.0f/s, p50 %v p99 %v p99.9 %v max %v", [...]string{"hits", "misses"}[min(i, 1)], r.Rate, round(l.P50), round(l.P99), round(l.P999), round(l.Max))
	}
	return text
}

func round(d time.Duration) time.Duration {
	if d < 10*time.Millisecond {
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(100 * time.Microsecond)
}
