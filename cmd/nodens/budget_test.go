package main

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/bench/load"
	"github.com/nodens-dns/nodens/bench/names"
	"github.com/nodens-dns/nodens/bench/upstream"
)

// Budgets of the whole way, from socket to socket, in allocations per query.
// The counters of the runtime see the load generator and the servers in this
// process too; in steady state those allocate nothing.
const (
	hitBudget  = 0.01
	missBudget = 15.0
)

// drive puts so many queries to the daemon in a closed loop, and returns how often
// this process allocated meanwhile, beside what it does by itself in that time.
func drive(t *testing.T, at netip.AddrPort, source load.Source, queries uint64) float64 {
	t.Helper()
	run, err := load.New(load.Config{
		Target: at, Outstanding: 32, Sockets: 8, Transport: load.UDP, Timeout: 30 * time.Second,
		Stages: []load.Stage{{}}, Queries: queries,
		Source: func(int) load.Source { return source },
	})
	if err != nil {
		t.Fatal(err)
	}
	const rest = 500 * time.Millisecond
	began, idle := time.Now(), allocations()
	time.Sleep(rest)
	before := allocations()
	byItself := float64(before-idle) / float64(time.Since(began))
	began = time.Now()
	report, err := run.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	after, took := allocations(), time.Since(began)
	if c := report.Total; c.Right+c.Late != queries {
		t.Fatalf("of %d queries some went wrong: %+v\n%v", queries, c, report.Examples)
	}
	return float64(after-before) - byItself*float64(took)
}

func allocations() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// allocationsPer is what a query costs, without what a run costs: that is the same
// for a long one and for a short one.
func allocationsPer(t *testing.T, at netip.AddrPort, source func() load.Source, queries uint64) float64 {
	t.Helper()
	short := drive(t, at, source(), queries)
	per := (drive(t, at, source(), 3*queries) - short) / float64(2*queries)
	t.Logf("%.3f allocations per query", per)
	return per
}

// startServer starts a fast authoritative server for the names of a mix, whose
// answers outlive the test.
func startServer(t *testing.T) (*names.Mix, netip.AddrPort) {
	t.Helper()
	mix, err := names.NewMix(names.Config{Services: 100, External: 50, TCPShare: -1, TTL: 3600})
	if err != nil {
		t.Fatal(err)
	}
	s, err := upstream.New(upstream.Config{Zone: mix.Zone()})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return mix, s.Addr()
}

func TestBudgets(t *testing.T) {
	mix, server := startServer(t)
	h := serve(t, fmt.Sprintf("listen: [127.0.0.1:0]\nroutes: [{zones: [.], servers: [%q]}]\n", server))
	t.Run("hit", func(t *testing.T) {
		flat := func() load.Source { return mix.Flat(1) }
		drive(t, h.address(0), flat(), 10_000) // fills the cache
		if per := allocationsPer(t, h.address(0), flat, 20_000); per > hitBudget {
			t.Errorf("%.3f allocations per hit, want at most %v", per, hitBudget)
		}
	})
	t.Run("miss", func(t *testing.T) {
		suffix, err := names.Wire(names.WildSuffix)
		if err != nil {
			t.Fatal(err)
		}
		unique := mix.Zone().Unique(suffix, 1)
		per := allocationsPer(t, h.address(0), func() load.Source { return unique }, 5000)
		if per >= missBudget {
			t.Errorf("%.1f allocations per miss, want fewer than %v", per, missBudget)
		}
	})
}
