package compare_test

import (
	"context"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/bench/compare"
	"github.com/nodens-dns/nodens/bench/cost"
	"github.com/nodens-dns/nodens/bench/load"
	"github.com/nodens-dns/nodens/bench/peers"
	"github.com/nodens-dns/nodens/bench/play"
	"github.com/nodens-dns/nodens/bench/reflector"
	"github.com/nodens-dns/nodens/bench/scenarios"
)

// TestMain lets this binary be the reflector, as nodens-bench is.
func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == "reflector" {
		if reflector.Run(context.Background(), os.Args[3], 1) != nil {
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

func peer(t *testing.T, name string) peers.Peer {
	t.Helper()
	for _, p := range peers.All() {
		if p.Name == name {
			return p
		}
	}
	t.Fatalf("no peer %s", name)
	return peers.Peer{}
}

func TestRoundsAreInterleaved(t *testing.T) {
	s, err := scenarios.Load("warm")
	if err != nil {
		t.Fatal(err)
	}
	s.Names.Services = 20
	s.Stretch(200 * time.Millisecond)
	s.Pace(200)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	one := compare.Candidate{Peer: peer(t, "reflector"), Path: self, Version: "1"}
	two := one
	two.Peer.Name = "other"
	bad := compare.Candidate{Peer: peer(t, "reflector"), Path: "/nowhere/dns"}
	bad.Peer.Name = "bad"
	out, err := compare.Run(context.Background(), compare.Config{
		Candidates: []compare.Candidate{one, two, bad}, Rounds: 2, Points: []compare.Point{{Name: "p", Scenario: s, Pinned: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, c := range out.Cells {
		order = append(order, c.Server)
		if c.Result.Load.Total.Right != 40 || c.Result.CPU() <= 0 {
			t.Errorf("%s in round %d: %+v, CPU %v", c.Server, c.Round, c.Result.Load.Total, c.Result.CPU())
		}
	}
	if got := strings.Join(order, " "); got != "reflector other other reflector" {
		t.Errorf("the order was %s", got)
	}
	if len(out.Skipped) != 1 || out.Skipped[0].Name != "bad" || !strings.Contains(out.Skipped[0].Why, "at p, round 1") {
		t.Errorf("skipped: %+v", out.Skipped)
	}
	if got := len(peers.Usable()); got < 1 {
		t.Errorf("%d CPUs are left", got)
	}
}

func TestNothingToCompare(t *testing.T) {
	if _, err := compare.Run(context.Background(), compare.Config{}); err == nil {
		t.Error("nothing is compared without an error")
	}
}

func cell(server string, round int, cpu time.Duration) compare.Cell {
	return compare.Cell{Server: server, Point: "p", Round: round, Result: &play.Result{
		Load: &load.Report{Total: load.Counts{Sent: 10, Right: 9}}, Cost: &cost.Cost{User: 10 * cpu},
	}}
}

func TestMediansAndRatios(t *testing.T) {
	o := &compare.Outcome{Base: "a", Cells: []compare.Cell{
		cell("a", 1, 10*time.Microsecond), cell("a", 2, 20*time.Microsecond), cell("a", 3, 30*time.Microsecond),
		cell("b", 1, 20*time.Microsecond), cell("b", 2, 50*time.Microsecond), cell("b", 3, 60*time.Microsecond), cell("b", 4, 90*time.Microsecond),
	}}
	a, _ := o.Spread("a", "p", compare.CPU())
	b, _ := o.Spread("b", "p", compare.CPU())
	if a != (compare.Spread{Median: 20, Min: 10, Max: 30, Rounds: 3}) || b != (compare.Spread{Median: 55, Min: 20, Max: 90, Rounds: 4}) {
		t.Errorf("a %+v, b %+v", a, b)
	}
	// Round by round: 2, 2.5, 2. The fourth has nothing to compare with.
	if r, _ := o.Ratio("b", "p", compare.CPU()); r != (compare.Spread{Median: 2, Min: 2, Max: 2.5, Rounds: 3}) {
		t.Errorf("ratio %+v", r)
	}
	if _, ok := o.Spread("c", "p", compare.CPU()); ok {
		t.Error("a server that was not measured has a value")
	}
	for _, m := range compare.Metrics() {
		if m.Name != "not right %" {
			continue
		}
		if v, _ := o.Spread("a", "p", m); math.Abs(v.Median-10) > 1e-9 {
			t.Errorf("not right: %v %%, want 10", v.Median)
		}
	}
	if r := o.Typical("a", "p"); r != o.Cells[1].Result {
		t.Errorf("typical is %v", r.CPU())
	}
}
