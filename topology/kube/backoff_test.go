package kube_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nodens-dns/nodens/topology/kube"
)

func TestBackoff(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name  string
		limit time.Duration
		share float64
		want  []time.Duration
	}{
		{"the shortest never falls below the least", 10 * time.Second, 0, []time.Duration{1000 * ms, 1000 * ms, 1000 * ms, 1000 * ms, 1000 * ms, 1000 * ms}},
		{"the middle doubles its window", 10 * time.Second, 0.5, []time.Duration{1500 * ms, 2000 * ms, 3000 * ms, 5000 * ms, 5500 * ms, 5500 * ms}},
		{"the longest ends at the most", 10 * time.Second, 1, []time.Duration{2000 * ms, 3000 * ms, 5000 * ms, 9000 * ms, 10000 * ms, 10000 * ms}},
		{"a refusal may wait longer", 30 * time.Second, 1, []time.Duration{2000 * ms, 3000 * ms, 5000 * ms, 9000 * ms, 17000 * ms, 30000 * ms}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, kube.Waits(time.Second, 10*time.Second, c.limit, c.share, 6)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
