package load_test

import (
	"context"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nodens-dns/nodens/bench/load"
	"github.com/nodens-dns/nodens/bench/names"
	"github.com/nodens-dns/nodens/bench/upstream"
)

func newMix(t *testing.T, cfg names.Config) *names.Mix {
	t.Helper()
	mix, err := names.NewMix(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return mix
}

func newUpstream(t *testing.T, mix *names.Mix, faults upstream.Faults) *upstream.Server {
	t.Helper()
	s, err := upstream.New(upstream.Config{Zone: mix.Zone(), Faults: faults})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func streams(mix *names.Mix) func(int) load.Source {
	return func(worker int) load.Source { return mix.Stream(uint64(worker)) }
}

// long is a time that no reply takes here, however slow the machine.
const long = 20 * time.Second

// run does what cfg says. What is right is not late unless that is the question.
func run(t *testing.T, cfg load.Config) *load.Report {
	t.Helper()
	if cfg.Timeout == 0 {
		cfg.Timeout = long
	}
	if cfg.Late == 0 && cfg.Retry == load.NoRetry {
		cfg.Late = cfg.Timeout
	}
	r, err := load.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	report, err := r.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if n := report.Total.InFlight(); n != 0 {
		t.Errorf("%d queries are not accounted for", n)
	}
	return report
}

func TestEveryTenthLost(t *testing.T) {
	mix := newMix(t, names.Config{})
	for name, transport := range map[string]load.Transport{"udp": load.UDP, "tcp": load.TCP, "mixed": load.Mixed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newUpstream(t, mix, upstream.Faults{DropEvery: 10})
			report := run(t, load.Config{
				Target:    s.Addr(),
				Source:    streams(mix),
				Stages:    []load.Stage{load.Steady("run", 2000, time.Second)},
				Transport: transport,
				Workers:   2,
				Timeout:   5 * time.Second,
			})
			want := load.Counts{Sent: 2000, Right: 1800, Lost: 200}
			if diff := cmp.Diff(want, report.Total); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if c := s.Counts(); c.Dropped != 200 {
				t.Errorf("the server dropped %d, want 200", c.Dropped)
			}
		})
	}
}

func TestSpoiltByUpstream(t *testing.T) {
	mix := newMix(t, names.Config{})
	for name, c := range map[string]struct {
		faults upstream.Faults
		want   load.Counts
	}{
		"servfail":  {upstream.Faults{ServFail: 1}, load.Counts{Sent: 500, ServFail: 500}},
		"truncated": {upstream.Faults{Truncate: 1}, load.Counts{Sent: 500, Truncated: 500}},
		"refused":   {upstream.Faults{Refused: 1}, load.Counts{Sent: 500, Wrong: 500, WrongBy: load.Wrongs{RCode: 500}}},
		"late":      {upstream.Faults{Delay: 150 * time.Millisecond}, load.Counts{Sent: 500, Late: 500}},
		"blackhole": {upstream.Faults{Blackhole: true}, load.Counts{Sent: 500, Lost: 500}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report := run(t, load.Config{
				Target:    newUpstream(t, mix, c.faults).Addr(),
				Source:    streams(mix),
				Stages:    []load.Stage{load.Steady("run", 1000, 500*time.Millisecond)},
				Transport: load.UDP,
				Late:      100 * time.Millisecond,
				Timeout:   5 * time.Second,
			})
			if diff := cmp.Diff(c.want, report.Total); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if name == "late" && report.Latency.P50 < 150*time.Millisecond {
				t.Errorf("p50 is %v, want 150 ms or more", report.Latency.P50)
			}
		})
	}
}

// A server that does nothing for 300 ms delays every query that was meant to be
// sent meanwhile; a generator that waits for it would show one slow query.
func TestStallShowsInLatency(t *testing.T) {
	received := 0
	addr := startScript(t, func(query []byte, _ netip.AddrPort) [][]byte {
		if received++; received == 300 {
			time.Sleep(300 * time.Millisecond)
		}
		packed, err := truth(t, query).Pack()
		if err != nil {
			t.Error(err)
		}
		return [][]byte{packed}
	})
	report := run(t, load.Config{
		Target: addr, Source: func(int) load.Source { return fixed{service(t, names.TypeA)} }, Transport: load.UDP,
		Stages: []load.Stage{load.Steady("run", 1000, time.Second)},
	})
	slow := 1.0
	for _, p := range report.CDF {
		if p.Latency < 150*time.Millisecond {
			slow = 1 - p.Share
		}
	}
	if report.Total.Right != 1000 || slow < 0.14 || slow > 0.9 {
		t.Errorf("%d right, %.3f of the replies took 150 ms or more; want 1000, 0.15 and more where the machine is slow", report.Total.Right, slow)
	}
}

func TestPhasesAndSecondsAddUp(t *testing.T) {
	mix := newMix(t, names.Config{})
	var calls atomic.Int32
	r, err := load.New(load.Config{
		Target: newUpstream(t, mix, upstream.Faults{Loss: 0.1}).Addr(),
		Source: streams(mix),
		Stages: []load.Stage{
			{Name: "rise", For: time.Second, From: 0, To: 1000},
			{For: 2 * time.Second, From: 250, To: 250},
			{Name: "pause", For: 300 * time.Millisecond},
			{Name: "fall", For: time.Second, From: 1000, To: 0},
		},
		Transport: load.UDP,
		Timeout:   500 * time.Millisecond,
		Progress:  func(load.Progress) { calls.Add(1) },
	})
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(2*time.Second, func() { r.Mark("marked") }) // amid the second stage
	report, err := r.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	var phases, seconds load.Counts
	for _, p := range report.Phases {
		names = append(names, p.Name)
		phases.Sent += p.Counts.Sent
		phases.Lost += p.Counts.Lost
	}
	for _, s := range report.Seconds {
		seconds.Sent += s.Counts.Sent
		seconds.Lost += s.Counts.Lost
	}
	if diff := cmp.Diff([]string{"rise", "marked", "pause", "fall"}, names); diff != "" {
		t.Errorf("phases (-want +got)\n%s", diff)
	}
	if report.Total.Sent != 1500 || report.Phases[2].Counts.Sent != 0 || report.Phases[3].Counts.Sent != 500 {
		t.Errorf("want 1500 sent, none in the pause, 500 in the fall; got %d, %+v", report.Total.Sent, report.Phases)
	}
	total := load.Counts{Sent: report.Total.Sent, Lost: report.Total.Lost}
	if phases != total || seconds != total || total.Lost == 0 {
		t.Errorf("total %+v, phases add up to %+v, seconds to %+v", total, phases, seconds)
	}
	if calls.Load() < 2 {
		t.Errorf("progress was reported %d times in 4 s", calls.Load())
	}
}

func TestFreshPorts(t *testing.T) {
	mix := newMix(t, names.Config{})
	ports := make(map[netip.AddrPort]bool)
	seen := make(chan netip.AddrPort, 1000)
	s := newUpstream(t, mix, upstream.Faults{})
	addr := startScript(t, func(query []byte, from netip.AddrPort) [][]byte {
		seen <- from
		return forward(s.Addr(), query)
	})
	report := run(t, load.Config{
		Target: addr, Source: streams(mix), FreshPorts: true, Transport: load.UDP,
		Stages: []load.Stage{load.Steady("run", 500, time.Second)},
	})
	for range len(seen) {
		ports[<-seen] = true
	}
	// The kernel may give a port again once it was closed.
	if report.Total.Right != 500 || len(ports) < 450 {
		t.Errorf("%d right from %d ports, want 500 from nearly as many", report.Total.Right, len(ports))
	}
}

// Where nothing more can be in flight, queries are not sent, and that is said.
func TestUnsentIsReported(t *testing.T) {
	t.Parallel()
	mix := newMix(t, names.Config{})
	report := run(t, load.Config{
		Target: newUpstream(t, mix, upstream.Faults{Blackhole: true}).Addr(), Source: streams(mix),
		FreshPorts: true, Sockets: 32, Transport: load.UDP, Timeout: 10 * time.Second,
		Stages: []load.Stage{load.Steady("run", 200, time.Second)},
	})
	if report.Total.Sent != 32 || report.Total.Lost != 32 || report.Generator.Unsent != 168 || report.Generator.Bottleneck == "" {
		t.Errorf("sent and lost %d, %d, unsent %d, bottleneck %q; want 32, 32, 168 and a reason",
			report.Total.Sent, report.Total.Lost, report.Generator.Unsent, report.Generator.Bottleneck)
	}
}

func TestTCPSurvivesARestart(t *testing.T) {
	t.Parallel()
	mix := newMix(t, names.Config{})
	s := newUpstream(t, mix, upstream.Faults{})
	time.AfterFunc(time.Second, s.Kill)
	time.AfterFunc(1500*time.Millisecond, func() {
		if err := s.Start(); err != nil {
			t.Error(err)
		}
	})
	report := run(t, load.Config{
		Target: s.Addr(), Source: streams(mix), Transport: load.TCP, Timeout: 5 * time.Second,
		Stages: []load.Stage{
			load.Steady("before", 500, 250*time.Millisecond),
			load.Steady("around", 200, 2750*time.Millisecond),
			load.Steady("after", 500, 300*time.Millisecond),
		},
	})
	before, after := report.Phases[0].Counts, report.Phases[2].Counts
	if before.Right != 125 || after.Right != 150 {
		t.Errorf("%d right of 125 before, %d of 150 after the restart", before.Right, after.Right)
	}
	if report.Generator.Broken == 0 {
		t.Error("no connection broke")
	}
}

func TestKilledServerIsLossNotSilence(t *testing.T) {
	mix := newMix(t, names.Config{})
	s := newUpstream(t, mix, upstream.Faults{})
	s.Kill()
	report := run(t, load.Config{
		Target: s.Addr(), Source: streams(mix), Transport: load.UDP, Timeout: 300 * time.Millisecond,
		Stages: []load.Stage{load.Steady("run", 500, time.Second)},
	})
	if report.Total.Sent != 500 || report.Total.Lost != 500 || report.Generator.Refused == 0 {
		t.Errorf("got %+v with %d refusals, want 500 lost and many", report.Total, report.Generator.Refused)
	}
}

func TestClosedLoop(t *testing.T) {
	mix := newMix(t, names.Config{})
	for _, outstanding := range []int{1, 100} {
		report := run(t, load.Config{
			Target: newUpstream(t, mix, upstream.Faults{Delay: 20 * time.Millisecond}).Addr(), Source: streams(mix),
			Outstanding: outstanding, Workers: 2, Transport: load.UDP,
			Stages: []load.Stage{{Name: "run", For: time.Second}},
		})
		// Each of those outstanding makes at most 50 turns.
		if n := report.Total.Right; n != report.Total.Sent || n > uint64(51*outstanding) || n < uint64(2*outstanding) {
			t.Errorf("%d outstanding: %d of %d right, want at most %d", outstanding, n, report.Total.Sent, 50*outstanding)
		}
	}
}

// ending is a source that ends the run once so many queries were taken from it.
type ending struct {
	load.Source
	after int
	end   func()
}

func (e *ending) Next() names.Query {
	if e.after--; e.after == 0 {
		e.end()
	}
	return e.Source.Next()
}

func TestContextEndsTheRun(t *testing.T) {
	mix := newMix(t, names.Config{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r, err := load.New(load.Config{
		Target: newUpstream(t, mix, upstream.Faults{}).Addr(), Timeout: long, Late: long,
		Source: func(worker int) load.Source {
			return &ending{Source: mix.Stream(uint64(worker)), after: 200, end: cancel}
		},
		Stages: []load.Stage{load.Steady("", 1000, 0)},
	})
	if err != nil {
		t.Fatal(err)
	}
	report, err := r.Run(ctx)
	if err != nil || report.Total.Sent < 100 || report.Total.Sent != report.Total.Right || report.Phases[0].Name != "run" {
		t.Errorf("got %+v, %v", report, err)
	}
	if _, err := r.Run(ctx); err == nil {
		t.Error("it runs twice")
	}
}

func TestMistakes(t *testing.T) {
	mix := newMix(t, names.Config{})
	good := func() load.Config {
		return load.Config{
			Target: netip.MustParseAddrPort("127.0.0.1:9"),
			Source: streams(mix),
			Stages: []load.Stage{load.Steady("run", 1, time.Second)},
		}
	}
	for name, c := range map[string]struct {
		spoil func(*load.Config)
		want  string
	}{
		"another machine": {func(c *load.Config) { c.Target = netip.MustParseAddrPort("192.0.2.1:53") }, "not an address of this machine"},
		"no stage":        {func(c *load.Config) { c.Stages = nil }, "at least one stage"},
		"endless stage":   {func(c *load.Config) { c.Stages = append([]load.Stage{{From: 1, To: 1}}, c.Stages...) }, "only the last"},
		"negative rate":   {func(c *load.Config) { c.Stages[0].From = -1 }, "From of stage 0"},
		"many workers":    {func(c *load.Config) { c.Workers = 65 }, "Workers is 65"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := good()
			c.spoil(&cfg)
			if _, err := load.New(cfg); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v, want %q in it", err, c.want)
			}
		})
	}
}

// Neither the generator nor the upstream allocates per query: a second of it
// stays far below one allocation for each.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	mix := newMix(t, names.Config{})
	s := newUpstream(t, mix, upstream.Faults{})
	for name, cfg := range map[string]load.Config{
		"udp":   {Transport: load.UDP},
		"tcp":   {Transport: load.TCP},
		"fresh": {Transport: load.UDP, FreshPorts: true, Sockets: 256},
		"train": {Transport: load.UDP, Outstanding: 64},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.Target, cfg.Source = s.Addr(), streams(mix)
			cfg.Stages = []load.Stage{load.Steady("run", 10_000, 1500*time.Millisecond)}
			var from, to runtime.MemStats
			var looked sync.WaitGroup
			looked.Go(func() {
				time.Sleep(400 * time.Millisecond)
				runtime.ReadMemStats(&from)
				time.Sleep(time.Second)
				runtime.ReadMemStats(&to)
			})
			report := run(t, cfg)
			looked.Wait()
			if n := to.Mallocs - from.Mallocs; n > 2000 || from.Mallocs == 0 || report.Total.Right == 0 {
				t.Errorf("%d allocations in a second of 10 000 queries (%d right), want next to none", n, report.Total.Right)
			}
		})
	}
}

// Without judgement of records only the question and the code count.
func TestUnjudged(t *testing.T) {
	mix := newMix(t, names.Config{})
	for name, c := range map[string]struct {
		faults upstream.Faults
		want   load.Counts
	}{
		"nxdomain": {upstream.Faults{NXDomain: 1}, load.Counts{Sent: 100, Right: 100}},
		"refused":  {upstream.Faults{Refused: 1}, load.Counts{Sent: 100, Wrong: 100, WrongBy: load.Wrongs{RCode: 100}}},
	} {
		report := run(t, load.Config{
			Target: newUpstream(t, mix, c.faults).Addr(), Source: streams(mix), Transport: load.UDP, Unjudged: true,
			Stages: []load.Stage{load.Steady("run", 1000, 100*time.Millisecond)},
		})
		if diff := cmp.Diff(c.want, report.Total); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

func TestTableShowsWhatMatters(t *testing.T) {
	mix := newMix(t, names.Config{})
	report := run(t, load.Config{
		Target: newUpstream(t, mix, upstream.Faults{Refused: 1}).Addr(), Source: streams(mix), Transport: load.UDP,
		Stages: []load.Stage{load.Steady("first", 100, 200*time.Millisecond), load.Steady("second", 100, 200*time.Millisecond)},
	})
	var b strings.Builder
	if err := report.WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"open loop to 127.0.0.1:", "first", "second", "total", "wrong by: format 0, question 0, case 0, rcode 40", "wrong rcode at"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
}
