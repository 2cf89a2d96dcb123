package upstream

import (
	"testing"
	"time"
)

const ms = time.Millisecond

func TestChoose(t *testing.T) {
	healthy := func(tier uint8) candidate { return candidate{tier: tier, load: 1} }
	suspect := func(tier uint8, failedAt time.Duration) candidate {
		return candidate{tier: tier, suspect: true, failedAt: failedAt}
	}
	with := func(c candidate, change func(*candidate)) candidate {
		change(&c)
		return c
	}
	tried := func(c *candidate) { c.tried++ }
	answered := func(c *candidate) { c.tried++; c.answered = true }
	draining := func(c *candidate) { c.state = Draining }
	notReady := func(c *candidate) { c.state = NotReady }

	first := wish{policy: Sequential, past: -1}
	second := wish{policy: Sequential, past: NodeTier, retry: true}
	third := wish{policy: Sequential, past: -1, retry: true}

	tests := map[string]struct {
		cands []candidate
		wish  wish
		want  int
	}{
		"nobody":                   {nil, first, -1},
		"the nearest tier":         {[]candidate{healthy(2), healthy(0), healthy(1)}, first, 1},
		"a suspect is skipped":     {[]candidate{suspect(0, 1), healthy(1)}, first, 1},
		"all suspect: longest ago": {[]candidate{suspect(0, 3), suspect(1, 2), suspect(2, 4)}, first, 1},
		"last is not used when a member is healthy": {[]candidate{with(healthy(0), answered), healthy(LastTier)}, second, -1},
		"last waits for one suspect":                {[]candidate{suspect(0, 1), healthy(LastTier)}, first, 0},
		"last is next after a suspect":              {[]candidate{with(suspect(0, 1), tried), suspect(1, 1), healthy(LastTier)}, second, 2},
		"only last":                                 {[]candidate{healthy(LastTier)}, first, 0},
		"the second goes farther":                   {[]candidate{with(healthy(0), tried), healthy(0), healthy(1)}, second, 2},
		"the second stays when nothing is farther":  {[]candidate{with(healthy(0), tried), healthy(0)}, second, 1},
		"the third goes to the nearest untried":     {[]candidate{with(healthy(0), tried), with(healthy(1), tried), healthy(2), healthy(1)}, third, 3},
		"a suspect before the same again":           {[]candidate{with(healthy(0), tried), suspect(1, 1)}, second, 1},
		"the same again before the suspect again":   {[]candidate{with(healthy(0), tried), with(suspect(1, 1), tried)}, third, 0},
		"the only one again":                        {[]candidate{with(healthy(0), tried)}, second, 0},
		"who has answered is out":                   {[]candidate{with(healthy(0), answered), with(healthy(1), tried)}, third, 1},
		"a draining one only if nothing is ready":   {[]candidate{with(healthy(0), draining), healthy(2)}, first, 1},
		"a draining one before a suspect":           {[]candidate{suspect(0, 1), with(healthy(2), draining)}, first, 1},
		"all draining":                              {[]candidate{with(healthy(2), draining), with(healthy(0), draining)}, first, 1},
		"a draining one before one not ready":       {[]candidate{with(healthy(0), notReady), with(healthy(2), draining)}, first, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := choose(tc.cands, tc.wish); got != tc.want {
				t.Errorf("chose %d, want %d", got, tc.want)
			}
		})
	}
}

func TestChoosePolicies(t *testing.T) {
	cands := []candidate{
		{tier: 2, load: 5}, {tier: 2, load: 1}, {tier: 2, load: 3}, {tier: 2, suspect: true},
	}
	share := func(policy Policy) (n [4]int) {
		const steps = 30
		for i := range steps {
			for j := range steps {
				w := wish{policy: policy, past: -1, random: [2]float64{
					float64(i) / steps, float64(j) / steps,
				}}
				n[choose(cands, w)]++
			}
		}
		return n
	}
	if n := share(Sequential); n != [4]int{900, 0, 0, 0} {
		t.Errorf("sequential: %v", n)
	}
	if n := share(Random); n != [4]int{300, 300, 300, 0} {
		t.Errorf("random: %v", n)
	}
	// Of the three pairs, the most loaded wins none and the least loaded two.
	if n := share(P2C); n != [4]int{0, 600, 300, 0} {
		t.Errorf("power of two choices: %v", n)
	}
}

func TestHealth(t *testing.T) {
	const middle = 0.5 // no jitter
	t.Run("three silences in a row", func(t *testing.T) {
		h := health{}.missed(1*ms, middle).missed(2*ms, middle)
		if h.suspect() {
			t.Fatal("suspect after two")
		}
		if h = h.missed(3*ms, middle); !h.suspect() || h.until != 503*ms || h.failedAt != 3*ms {
			t.Errorf("%+v", h)
		}
	})
	t.Run("silences of one moment count once", func(t *testing.T) {
		h := health{}
		for range 50 {
			h = h.missed(1*ms, middle)
		}
		if h.until != 501*ms || h.strikes != 1 {
			t.Errorf("%+v", h)
		}
	})
	t.Run("waits", func(t *testing.T) {
		tests := map[string]struct {
			h    health
			want []time.Duration
		}{
			"after silence":    {health{misses: 2}.missed(0, middle), []time.Duration{500 * ms, 1000 * ms, 2000 * ms, 4000 * ms, 8000 * ms, 10000 * ms, 10000 * ms}},
			"after hard error": {health{}.failed(0, middle), []time.Duration{100 * ms, 250 * ms, 1000 * ms, 2000 * ms, 4000 * ms, 8000 * ms, 10000 * ms, 10000 * ms}},
		}
		for name, tc := range tests {
			h, now := tc.h, time.Duration(0)
			for i, want := range tc.want {
				if h.until-now != want {
					t.Errorf("%s: wait %d is %v, want %v", name, i, h.until-now, want)
				}
				if h.due(h.until-1) || !h.due(h.until) {
					t.Errorf("%s: due at the wrong time", name)
				}
				now = h.until
				h = h.tried(now, middle)
			}
		}
	})
	t.Run("never for ever", func(t *testing.T) {
		h := health{}
		for now := time.Duration(0); now < 24*time.Hour; now += 50 * ms {
			if h = h.failed(now, 0.999).missed(now, 0); h.until > now+12*time.Second {
				t.Fatalf("at %v: %+v", now, h)
			}
		}
	})
	t.Run("jitter", func(t *testing.T) {
		if low, high := (health{}).failed(0, 0).until, (health{}).failed(0, 1).until; low != 80*ms || high != 120*ms {
			t.Errorf("%v to %v", low, high)
		}
	})
}

func TestScore(t *testing.T) {
	t.Run("a silence counts only if nothing else was answered since", func(t *testing.T) {
		s := newScore()
		s.replied(10*ms, ms)
		for range 5 {
			s.missed(5*ms, 20*ms)
		}
		if s.state().misses != 0 || s.timeouts.Load() != 5 {
			t.Errorf("%+v", s.state())
		}
		s.missed(11*ms, 20*ms)
		if s.state().misses != 1 {
			t.Errorf("%+v", s.state())
		}
	})
	t.Run("one trial at its time, and a reply clears", func(t *testing.T) {
		s := newScore()
		s.failed(0)
		if s.claimTrial(10 * ms) {
			t.Error("a trial before its time")
		}
		if !s.claimTrial(time.Second) || s.claimTrial(time.Second) {
			t.Error("not exactly one trial")
		}
		s.replied(1001*ms, ms)
		if s.state() != (health{}) {
			t.Errorf("%+v", s.state())
		}
	})
}

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
