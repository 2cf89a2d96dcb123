package report

import (
	"testing"
	"time"

	"github.com/nodens-dns/nodens/bench/load"
)

// A distribution ends where the share of the queries ends that were answered right.
func TestDistributionShowsWhatWasLost(t *testing.T) {
	points := []load.Point{{Share: 0.5, Latency: time.Millisecond}, {Share: 1, Latency: 2 * time.Millisecond}}
	lossy := distributionOf("x", &load.Report{CDF: points, Total: load.Counts{Sent: 5000, Right: 3900, Late: 100, Lost: 900, ServFail: 100}})
	whole := distributionOf("x", &load.Report{CDF: points, Total: load.Counts{Sent: 5000, Right: 4900, Late: 100}})
	if lossy.share != 0.8 || whole.share != 1 {
		t.Errorf("shares are %v and %v, want four of five queries and all", lossy.share, whole.share)
	}
	if cdfPlot([]named{lossy}) == cdfPlot([]named{whole}) {
		t.Error("the plot is the same with and without losses")
	}
}
