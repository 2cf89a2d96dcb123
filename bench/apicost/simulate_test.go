package apicost_test

import (
	"math"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/bench/apicost"
)

func simulate(t *testing.T, cfg apicost.Config) *apicost.Cost {
	t.Helper()
	c, err := apicost.Simulate(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// about tells whether got is within a factor of want.
func about(got, want, factor float64) bool { return got > want/factor && got < want*factor }

// Orders of magnitude that were worked out by hand, for 5000 nodes.
func TestKnownSizes(t *testing.T) {
	for name, c := range map[string]struct {
		replicas, slices            int
		json, protobuf, events, all float64 // bytes of a slice twice, events, bytes of a roll
	}{
		"three replicas": {3, 1, 2.7e3, 1.6e3, 14, 0.2e9},
		"autoscaler":     {313, 4, 42e3, 24e3, 1400, 295e9},
		"daemon set":     {5000, 50, 42e3, 24e3, 22_500, 4.7e12},
	} {
		got := simulate(t, apicost.Config{Nodes: 5000, Replicas: c.replicas})
		proto := simulate(t, apicost.Config{Nodes: 5000, Replicas: c.replicas, Protobuf: true})
		if got.Slices != c.slices || !about(got.SliceBytes, c.json, 1.3) || !about(proto.SliceBytes, c.protobuf, 1.3) ||
			!about(got.Events, c.events, 1.3) || !about(got.RollBytes, c.all, 1.6) {
			t.Errorf("%s: %d slices of %.0f or %.0f octets, %.0f events, %.3g octets a roll", name, got.Slices, got.SliceBytes, proto.SliceBytes, got.Events, got.RollBytes)
		}
	}
}

func TestJitterSpreadsTheLists(t *testing.T) {
	without := simulate(t, apicost.Config{Nodes: 3000, Replicas: 3, Jitter: -1})
	with := simulate(t, apicost.Config{Nodes: 3000, Replicas: 3, Jitter: 30 * time.Second})
	if without.PeakLists != 3000 {
		t.Errorf("without jitter %d lists in a second, want all 3000", without.PeakLists)
	}
	if !about(float64(with.PeakLists), 115, 1.3) {
		t.Errorf("over 30 s %d lists in the busiest second, want about 115", with.PeakLists)
	}
	if with.ListBytes != without.ListBytes {
		t.Errorf("jitter changes the sum: %v and %v", with.ListBytes, without.ListBytes)
	}
}

func TestLaws(t *testing.T) {
	base := simulate(t, apicost.Config{Nodes: 1000, Replicas: 100})
	twice := simulate(t, apicost.Config{Nodes: 2000, Replicas: 100})
	if math.Abs(twice.RollBytes/base.RollBytes-2) > 1e-9 || base.RollPeakRate < base.RollRate {
		t.Errorf("twice the nodes: %.3g for %.3g; peak %.3g, mean %.3g", twice.RollBytes, base.RollBytes, base.RollPeakRate, base.RollRate)
	}
	if slow := simulate(t, apicost.Config{Nodes: 1000, Replicas: 100, Surge: 5}); slow.Roll != 400*time.Second || slow.RollRate >= base.RollRate {
		t.Errorf("a surge of 5 takes %v at %.3g/s, against %.3g/s", slow.Roll, slow.RollRate, base.RollRate)
	}
}

func TestMistakes(t *testing.T) {
	for _, cfg := range []apicost.Config{{}, {Nodes: 1}, {Nodes: 5, Replicas: 2, Surge: 3}, {Nodes: 5, Replicas: 2, EventsPerPod: 50}} {
		if _, err := apicost.Simulate(cfg); err == nil {
			t.Errorf("%+v is taken", cfg)
		}
	}
}
