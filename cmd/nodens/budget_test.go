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

// drive runs a closed loop against the daemon and returns the allocations of
// the process per query.
func drive(t *testing.T, at netip.AddrPort, source load.Source, d time.Duration) float64 {
	t.Helper()
	run, err := load.New(load.Config{
		Target: at, Outstanding: 32, Sockets: 8, Transport: load.UDP,
		Stages: []load.Stage{{Name: "warm", For: d / 2}, {Name: "measured", For: d}},
		Source: func(int) load.Source { return source },
	})
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	var sent uint64
	measured := make(chan struct{})
	go func() { // between the two stages and before the end, so that set-up does not count
		defer close(measured)
		time.Sleep(d / 2)
		runtime.ReadMemStats(&before)
		time.Sleep(d * 8 / 10)
		runtime.ReadMemStats(&after)
	}()
	report, err := run.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	<-measured
	if bad := report.Total.Lost + report.Total.Wrong + report.Total.ServFail; bad > 0 || report.Total.Sent < 1000 {
		t.Fatalf("of %d queries %d went wrong:\n%v", report.Total.Sent, bad, report.Examples)
	}
	for _, p := range report.Phases {
		if p.Name == "measured" {
			sent = p.Counts.Sent * 8 / 10
		}
	}
	per := float64(after.Mallocs-before.Mallocs) / float64(sent)
	t.Logf("%.0f queries/s, %.3f allocations per query", report.Rate, per)
	return per
}

// startServer starts a fast authoritative server for the names of a mix.
func startServer(t *testing.T) (*names.Mix, netip.AddrPort) {
	t.Helper()
	mix, err := names.NewMix(names.Config{Services: 100, External: 50, TCPShare: -1})
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
		drive(t, h.address(0), mix.Flat(1), 500*time.Millisecond) // fills the cache
		if per := drive(t, h.address(0), mix.Flat(1), time.Second); per > hitBudget {
			t.Errorf("%.3f allocations per hit, want at most %v", per, hitBudget)
		}
	})
	t.Run("miss", func(t *testing.T) {
		suffix, err := names.Wire(names.WildSuffix)
		if err != nil {
			t.Fatal(err)
		}
		if per := drive(t, h.address(0), mix.Zone().Unique(suffix, 1), time.Second); per >= missBudget {
			t.Errorf("%.1f allocations per miss, want fewer than %v", per, missBudget)
		}
	})
}
