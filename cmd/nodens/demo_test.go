package main

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/nodens-dns/nodens/bench/load"
	"github.com/nodens-dns/nodens/bench/names"
	"github.com/nodens-dns/nodens/topology/file"
)

// TestDemoScript walks the script and looks at what it does to the cluster.
func TestDemoScript(t *testing.T) {
	zone, err := names.NewZone(names.Config{Services: 10, Namespaces: 2, PodNamespaces: 1, External: 10})
	if err != nil {
		t.Fatal(err)
	}
	c, err := newDemoCluster(zone, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	phases, steps := demoScript()
	want := []struct {
		condition string
		up        bool
		slices    int
	}{
		{"terminating", true, 3},
		{"gone", false, 2},
		{"ready", true, 3},
		{"ready", false, 3},     // killed: the API does not know
		{"not ready", false, 3}, // the kubelet has noticed
		{"ready", true, 3},
		{"ready", true, 3}, // a black hole: the API never knows
		{"ready", true, 3},
	}
	if len(steps) != len(want) {
		t.Fatalf("%d steps, want %d", len(steps), len(want))
	}
	for i, step := range steps {
		if err := c.take(context.Background(), step); err != nil {
			t.Fatalf("%s: %v", step.does, err)
		}
		data, err := os.ReadFile(c.file)
		if err != nil {
			t.Fatal(err)
		}
		slices, err := file.Parse(c.file, data)
		if err != nil {
			t.Fatalf("%s: %v", step.does, err)
		}
		if got := c.local(); got.condition() != want[i].condition || got.server.Up() != want[i].up || len(slices) != want[i].slices {
			t.Errorf("%s: %s, up %v, %d slices; want %+v", step.does, got.condition(), got.server.Up(), len(slices), want[i])
		}
		if i > 0 && step.at <= steps[i-1].at || step.at >= 1 {
			t.Errorf("%s: not in order", step.does)
		}
	}
	if c.local().server.Faults().Blackhole {
		t.Error("the local server is still a black hole at the end")
	}
	for i, p := range phases {
		if i > 0 && p.from <= phases[i-1].from {
			t.Errorf("phase %s: not in order", p.name)
		}
	}
}

func TestDemoVerdict(t *testing.T) {
	for name, tt := range map[string]struct {
		total  load.Counts
		unseen []string
		bad    bool
	}{
		"all right": {load.Counts{Sent: 10, Right: 9, Late: 1}, nil, false},
		"lost":      {load.Counts{Sent: 10, Right: 9, Lost: 1}, nil, true},
		"wrong":     {load.Counts{Sent: 10, Right: 9, Wrong: 1}, nil, true},
		"SERVFAIL":  {load.Counts{Sent: 10, Right: 9, ServFail: 1}, nil, true},
		"unseen":    {load.Counts{Sent: 10, Right: 10}, []string{"crash"}, true},
	} {
		if err := demoVerdict(&load.Report{Total: tt.total}, tt.unseen); (err != nil) != tt.bad {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDemoRefusesNonsense(t *testing.T) {
	for _, args := range []string{"-for 1s", "-for 2h", "-rate 1", "-rate 1e9", "-frob", "surplus"} {
		var out, err strings.Builder
		if code := run(t.Context(), append([]string{"demo"}, strings.Fields(args)...), os.Getenv, &out, &err); code == 0 {
			t.Errorf("demo %s: accepted", args)
		}
	}
}

func TestBar(t *testing.T) {
	for percent, want := range map[float64]string{0: "····", 50: "██··", 100: "████"} {
		if got := bar(percent, 4); got != want {
			t.Errorf("bar(%v) = %q, want %q", percent, got, want)
		}
	}
}

// What befalls a server that nobody asked is no proof, and the report says so.
func TestDemoTellsWhatProvedNothing(t *testing.T) {
	var out strings.Builder
	v := &demoView{out: &out}
	v.struck("crash", demoSums{tiers: [3]uint64{0, 9, 9}})
	v.struck("blackhole", demoSums{tiers: [3]uint64{1, 0, 0}})
	v.end(&load.Report{})
	if !strings.Contains(out.String(), "The crash proved nothing") || strings.Contains(out.String(), "The blackhole proved") {
		t.Errorf("the report says %q", &out)
	}
	_, steps := demoScript()
	var fails []string
	for _, step := range steps {
		if step.fails != "" {
			fails = append(fails, step.fails)
		}
	}
	if strings.Join(fails, " ") != "crash blackhole" {
		t.Errorf("the script's failures are %q", fails)
	}
}
