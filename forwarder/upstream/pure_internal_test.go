package upstream

import (
	"testing"
	"time"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

func TestRetryTime(t *testing.T) {
	tests := map[string]struct {
		samples []time.Duration
		want    time.Duration
	}{
		"unknown":              {nil, 100 * ms},
		"fast":                 {[]time.Duration{ms, ms, ms}, 30 * ms},
		"one sample":           {[]time.Duration{20 * ms}, 60 * ms}, // 20 + 4*10
		"steady":               {[]time.Duration{40 * ms, 40 * ms, 40 * ms, 40 * ms, 40 * ms, 40 * ms, 40 * ms, 40 * ms, 40 * ms, 40 * ms, 40 * ms, 40 * ms, 40 * ms, 40 * ms, 40 * ms}, 41 * ms},
		"slow":                 {[]time.Duration{900 * ms}, 100 * ms},
		"too small to measure": {[]time.Duration{0}, 30 * ms},
	}
	for name, tc := range tests {
		var e estimate
		for _, s := range tc.samples {
			e = unpackEstimate(e.with(s).pack())
		}
		if got := e.retryTime(30*ms, 100*ms).Round(ms); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

func TestPeak(t *testing.T) {
	const decay, least = time.Second, ms
	p := peak(0)
	if got := p.at(time.Hour, decay, least); got != least {
		t.Errorf("before a sample: %v", got)
	}
	p = p.with(40*ms, time.Hour, decay)
	near := func(what string, got, want time.Duration) {
		t.Helper()
		if d := got - want; d < -ms/2 || d > ms/2 {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	near("at once", p.at(time.Hour, decay, least), 40*ms)
	near("a second later", p.at(time.Hour+time.Second, decay, least), 14715*time.Microsecond)
	near("much later", p.at(time.Hour+time.Minute, decay, least), least)
	near("a faster reply", p.with(2*ms, time.Hour+time.Second, decay).value(), 16*ms)
	near("a slower reply", p.with(90*ms, time.Hour+ms, decay).value(), 90*ms)
	near("a clock that is behind", p.with(2*ms, time.Hour-ms, decay).value(), 40*ms)
	wrap := 49*24*time.Hour + 17*time.Hour // about 2^32 ms
	near("the clock wraps", peak(0).with(40*ms, wrap, decay).at(wrap+time.Hour, decay, least), least)
}

func TestHedge(t *testing.T) {
	fast := map[string]struct {
		peak    time.Duration
		samples uint32
		want    time.Duration
	}{
		"unknown": {ms, 19, 25 * ms}, "quick": {ms, 20, 10 * ms}, "4 times": {5 * ms, 20, 20 * ms}, "slow": {80 * ms, 20, 100 * ms},
	}
	for name, tc := range fast {
		if got := hedgeFast(tc.peak, tc.samples); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
	for _, tc := range []struct{ srtt, dev, want time.Duration }{
		{0, 0, 250 * ms}, {100 * ms, 20 * ms, 250 * ms}, {200 * ms, 50 * ms, 300 * ms}, {900 * ms, 0, 500 * ms},
	} {
		if got := hedgeSlow(estimate{tc.srtt, tc.dev}); got != tc.want {
			t.Errorf("srtt %v: %v, want %v", tc.srtt, got, tc.want)
		}
	}
}

func TestHedgeBudget(t *testing.T) {
	var h hedges // nothing saved yet
	taken := func(exchanges int) (n int) {
		for range exchanges {
			h.earn()
			if h.take() {
				n++
			}
		}
		return n
	}
	if n := taken(1000); n != 50 {
		t.Errorf("%d hedges for 1000 exchanges", n)
	}
	for range 5000 {
		h.earn()
	}
	if n := taken(0); n != 0 {
		t.Fatal(n)
	}
	burst := 0
	for h.take() {
		burst++
	}
	if burst != 20 {
		t.Errorf("a burst of %d", burst)
	}
	for range 5000 {
		h.earn()
	}
	for range 10 {
		h.first(true)
	}
	if !h.take() {
		t.Error("a few failures stop hedges")
	}
	for range 10 {
		h.first(true)
	}
	if h.take() {
		t.Error("hedges while failures are widespread")
	}
	for range 50 {
		h.first(false)
	}
	if !h.take() {
		t.Error("hedges do not come back")
	}
}

func TestLimit(t *testing.T) {
	var l limit
	count := func(now time.Duration) (n int) {
		for l.take(now, outInterval, outBurst) {
			n++
		}
		return n
	}
	for _, tc := range []struct {
		now  time.Duration
		want int
	}{{0, 20}, {49 * ms, 0}, {50 * ms, 1}, {150 * ms, 2}, {time.Hour, 20}} {
		if got := count(tc.now); got != tc.want {
			t.Errorf("at %v: %d, want %d", tc.now, got, tc.want)
		}
	}
}

func TestZoneSet(t *testing.T) {
	set := newZoneSet([]string{"Cluster.Local", "in-addr.arpa."})
	for name, want := range map[string]bool{
		"cluster.local": true, "a.b.CLUSTER.local": true, "xcluster.local": false,
		"local": false, ".": false, "1.in-addr.arpa": true, "example.com": false,
	} {
		wireName, _ := wire.AppendName(nil, name)
		if got := set.holds(wireName); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestChooseConn(t *testing.T) {
	tests := map[string]struct {
		loads []connLoad
		fresh bool
		want  int
	}{
		"none yet":                      {nil, false, openConn},
		"an idle one":                   {[]connLoad{{2, ms}, {0, 0}}, false, 1},
		"the least loaded":              {[]connLoad{{3, ms}, {1, ms}}, false, 1},
		"its oldest waits too long":     {[]connLoad{{1, 20 * ms}}, false, openConn},
		"full":                          {[]connLoad{{4, ms}}, false, openConn},
		"all full":                      {[]connLoad{{4, ms}, {4, ms}, {4, ms}}, false, noConn},
		"no more may be opened":         {[]connLoad{{2, 20 * ms}, {3, ms}, {4, ms}}, false, 0},
		"a fresh one":                   {[]connLoad{{0, 0}}, true, openConn},
		"a fresh one, but no more room": {[]connLoad{{1, ms}, {0, 0}, {1, ms}}, true, 1},
	}
	for name, tc := range tests {
		if got := chooseConn(tc.loads, 4, 3, 10*ms, tc.fresh); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

func TestHistogram(t *testing.T) {
	var h histogram
	for _, d := range []time.Duration{0, 250 * time.Microsecond, 251 * time.Microsecond, ms, 9 * time.Second} {
		h.observe(d)
	}
	got := h.read()
	if got.Buckets[0] != 2 || got.Buckets[1] != 1 || got.Buckets[2] != 1 || got.Buckets[DurationBuckets] != 1 || got.Count() != 5 {
		t.Errorf("%+v", got)
	}
	if BucketBound(DurationBuckets-1) != 8192*ms {
		t.Errorf("the last bound is %v", BucketBound(DurationBuckets-1))
	}
}
