package upstream

import (
	"math"
	"testing"
	"time"
)

const ms = time.Millisecond

func TestChoose(t *testing.T) {
	healthy := func(tier uint8) candidate { return candidate{tier: tier, load: 1} }
	out := func(tier uint8, failedAt time.Duration) candidate {
		return candidate{tier: tier, out: true, failedAt: failedAt}
	}
	with := func(c candidate, change func(*candidate)) candidate {
		change(&c)
		return c
	}
	last := func(s Step) candidate { return candidate{tier: LastTier, step: s, state: NotReady} }
	gone := func(c *candidate) { c.out, c.failedAt = true, 1 }
	suspect := func(c *candidate) { c.suspect = true }
	tried := func(c *candidate) { c.tried++ }
	answered := func(c *candidate) { c.tried++; c.answered = true }
	draining := func(c *candidate) { c.state = Draining }
	resting := func(c *candidate) { c.resting = true }
	notReady := func(c *candidate) { c.state = NotReady }

	first := wish{policy: Sequential, past: -1}
	second := wish{policy: Sequential, past: NodeTier, retry: true}
	third := wish{policy: Sequential, past: -1, retry: true}
	afterZone := wish{policy: Sequential, past: LastTier + int(ZoneStep), retry: true}

	tests := map[string]struct {
		cands []candidate
		wish  wish
		want  int
	}{
		"nobody":                                     {nil, first, -1},
		"the nearest tier":                           {[]candidate{healthy(2), healthy(0), healthy(1)}, first, 1},
		"one that is out is skipped":                 {[]candidate{out(0, 1), healthy(1)}, first, 1},
		"all out: longest ago":                       {[]candidate{out(0, 3), out(1, 2), out(2, 4)}, first, 1},
		"a suspect is skipped":                       {[]candidate{with(healthy(0), suspect), healthy(2)}, first, 1},
		"all suspect: the nearest":                   {[]candidate{with(healthy(2), suspect), with(healthy(0), suspect)}, first, 1},
		"a suspect before one that is out":           {[]candidate{out(0, 1), with(healthy(2), suspect)}, first, 1},
		"one that rests before a suspect":            {[]candidate{with(healthy(0), suspect), with(healthy(1), resting)}, first, 1},
		"a draining one before one silent of late":   {[]candidate{with(healthy(0), suspect), with(healthy(1), draining)}, first, 1},
		"a suspect before the same again, too":       {[]candidate{with(healthy(0), tried), with(healthy(1), suspect)}, second, 1},
		"no last resort while one is only suspected": {[]candidate{with(healthy(0), suspect), healthy(LastTier)}, first, 0},
		"last is not used when a member is healthy":  {[]candidate{with(healthy(0), answered), healthy(LastTier)}, second, -1},
		"last waits for one suspect":                 {[]candidate{out(0, 1), healthy(LastTier)}, first, 0},
		"last is next after a suspect":               {[]candidate{with(out(0, 1), tried), out(1, 1), healthy(LastTier)}, second, 2},
		"only last":                                  {[]candidate{healthy(LastTier)}, first, 0},
		"last by steps":                              {[]candidate{last(FallbackStep), last(ServiceStep), last(ClusterStep), last(ZoneStep)}, first, 3},
		"last: a farther step next":                  {[]candidate{with(last(ZoneStep), tried), last(ZoneStep), last(NodeStep), last(ClusterStep)}, afterZone, 3},
		"last: a nearer step before none":            {[]candidate{with(last(ZoneStep), tried), last(NodeStep), last(FallbackStep)}, afterZone, 1},
		"last: the ClusterIP before a fallback":      {[]candidate{last(FallbackStep), with(last(ZoneStep), gone), last(ServiceStep)}, first, 2},
		"no fallback while the ClusterIP may answer": {[]candidate{last(FallbackStep), with(last(ServiceStep), tried)}, third, 1},
		"no fallback after one silence":              {[]candidate{last(FallbackStep), with(last(ZoneStep), tried)}, afterZone, 1},
		"a fallback after two":                       {[]candidate{last(FallbackStep), with(with(last(ZoneStep), tried), tried)}, third, 0},
		"a fallback after a failure":                 {[]candidate{last(FallbackStep), with(last(ZoneStep), answered)}, afterZone, 0},
		"a fallback when all others are out":         {[]candidate{with(last(ZoneStep), gone), with(last(ServiceStep), gone), last(FallbackStep)}, first, 2},
		"the second goes farther":                    {[]candidate{with(healthy(0), tried), healthy(0), healthy(1)}, second, 2},
		"the second stays when nothing is farther":   {[]candidate{with(healthy(0), tried), healthy(0)}, second, 1},
		"the third goes to the nearest untried":      {[]candidate{with(healthy(0), tried), with(healthy(1), tried), healthy(2), healthy(1)}, third, 3},
		"one that is out before the same again":      {[]candidate{with(healthy(0), tried), out(1, 1)}, second, 1},
		"the same again before the suspect again":    {[]candidate{with(healthy(0), tried), with(out(1, 1), tried)}, third, 0},
		"the only one again":                         {[]candidate{with(healthy(0), tried)}, second, 0},
		"who has answered is out":                    {[]candidate{with(healthy(0), answered), with(healthy(1), tried)}, third, 1},
		"one that takes its share step by step":      {[]candidate{with(healthy(0), resting), healthy(1)}, first, 1},
		"it rests only where others are":             {[]candidate{with(healthy(0), resting), out(1, 1)}, first, 0},
		"it rests from first attempts only":          {[]candidate{with(healthy(0), resting), with(healthy(1), tried)}, third, 0},
		"a draining one only if nothing is ready":    {[]candidate{with(healthy(0), draining), healthy(2)}, first, 1},
		"a draining one before one that is out":      {[]candidate{out(0, 1), with(healthy(2), draining)}, first, 1},
		"all draining":                               {[]candidate{with(healthy(2), draining), with(healthy(0), draining)}, first, 1},
		"a draining one before one not ready":        {[]candidate{with(healthy(0), notReady), with(healthy(2), draining)}, first, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got, _ := choose(tc.cands, tc.wish); got != tc.want {
				t.Errorf("chose %d, want %d", got, tc.want)
			}
		})
	}
}

func TestChoosePolicies(t *testing.T) {
	cands := []candidate{
		{tier: 2, load: 5}, {tier: 2, load: 1}, {tier: 2, load: 3}, {tier: 2, out: true},
	}
	share := func(policy Policy) (n [4]int) {
		const steps = 30
		for i := range steps {
			for j := range steps {
				w := wish{policy: policy, past: -1, random: [3]float64{
					float64(i) / steps, float64(j) / steps, 0,
				}}
				got, _ := choose(cands, w)
				n[got]++
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
	if n := share(Fastest); n != [4]int{0, 900, 0, 0} {
		t.Errorf("fastest: %v", n)
	}
	// Of the three pairs, the most loaded wins none and the least loaded two.
	if n := share(P2C); n != [4]int{0, 600, 300, 0} {
		t.Errorf("power of two choices: %v", n)
	}
}

func TestSpill(t *testing.T) {
	at := func(tier uint8, inFlight int32) candidate {
		return candidate{tier: tier, inFlight: inFlight, bears: 8, load: 1}
	}
	leaving := func(part float64) candidate {
		return candidate{tier: NodeTier, bears: 8, leaving: part, lossRate: 0.05}
	}
	losing := func(rate float64) candidate { return candidate{tier: ZoneTier, lossRate: rate} }
	out := candidate{tier: ZoneTier, out: true}
	tests := map[string]struct {
		cands  []candidate
		random float64
		want   int
	}{
		"below the limit":                 {[]candidate{at(0, 7), at(1, 0)}, 0, 0},
		"at the limit":                    {[]candidate{at(0, 8), at(1, 0)}, 0, 1},
		"the next has half as much":       {[]candidate{at(0, 8), at(1, 3)}, 0, 0},
		"the next has less than half":     {[]candidate{at(0, 9), at(1, 3)}, 0, 1},
		"nobody is there":                 {[]candidate{at(0, 99)}, 0, 0},
		"the next is out":                 {[]candidate{at(0, 99), out}, 0, 0},
		"the next is the last resort":     {[]candidate{at(0, 99), at(LastTier, 0)}, 0, 0},
		"past one that is out":            {[]candidate{at(0, 99), out, at(2, 0)}, 0, 2},
		"the next is suspected":           {[]candidate{at(0, 99), {tier: ZoneTier, suspect: true}}, 0, 0},
		"the zone bears twice as much":    {[]candidate{at(1, 15), at(2, 0)}, 0, 0},
		"the zone has too much":           {[]candidate{at(1, 16), at(2, 0)}, 0, 1},
		"on and on":                       {[]candidate{at(0, 200), at(1, 40), at(2, 0)}, 0, 2},
		"the cluster has nowhere to send": {[]candidate{at(2, 99)}, 0, 0},
		"losses send a part away":         {[]candidate{leaving(0.2), at(1, 5)}, 0.1, 1},
		"if the next loses less":          {[]candidate{leaving(0.2), losing(0.02)}, 0.1, 1},
		"but not if it loses as much":     {[]candidate{leaving(0.2), losing(0.03)}, 0.1, 0},
		"and keep the rest":               {[]candidate{leaving(0.2), at(1, 5)}, 0.2, 0},
	}
	for name, tc := range tests {
		w := wish{past: -1, spill: true, random: [3]float64{0, 0, tc.random}}
		got, spilled := choose(tc.cands, w)
		if got != tc.want || spilled != (tc.want != 0) {
			t.Errorf("%s: %d (spilled %v), want %d", name, got, spilled, tc.want)
		}
		w.retry = true
		if got, _ := choose(tc.cands, w); got != 0 {
			t.Errorf("%s: a retry spilled to %d", name, got)
		}
	}
}

func TestPanic(t *testing.T) {
	well, out := candidate{tier: ZoneTier}, candidate{tier: ClusterTier, out: true}
	fresh, suspect := candidate{tier: ZoneTier, out: true, fresh: true}, candidate{tier: ZoneTier, suspect: true}
	node := candidate{tier: NodeTier, out: true}
	tests := map[string]struct {
		cands []candidate
		want  bool
	}{
		"all well":                    {[]candidate{well, well}, false},
		"half":                        {[]candidate{well, out}, false},
		"less than half":              {[]candidate{well, out, out}, true},
		"suspects count":              {[]candidate{well, suspect, out}, true},
		"but not alone":               {[]candidate{suspect, suspect}, false},
		"the node's does not count":   {[]candidate{node, well, out}, false},
		"nor do those just come":      {[]candidate{well, out, fresh, fresh}, false},
		"with none left it is no use": {[]candidate{node, out, out}, false},
	}
	for name, tc := range tests {
		cands := append([]candidate(nil), tc.cands...)
		if got := panicked(cands); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
		for i, c := range cands {
			if want := tc.cands[i].out && (!tc.want || c.tier == NodeTier || c.fresh); c.out != want {
				t.Errorf("%s: candidate %d is out: %v", name, i, c.out)
			}
			if want := tc.cands[i].suspect && !tc.want; c.suspect != want {
				t.Errorf("%s: candidate %d is suspected: %v", name, i, c.suspect)
			}
		}
	}
}

func TestNextShare(t *testing.T) {
	share := 0.0
	for i, want := range []float64{0.1, 0.2, 0.4, 0.5, 0.5} {
		if share = nextShare(share, 100, 3); share != want {
			t.Errorf("bad second %d: %v, want %v", i, share, want)
		}
	}
	for i, want := range []float64{0.25, 0.125, 0.0625, 0.03125, 0.015625, 0} {
		if share = nextShare(share, 100, 2); share != want {
			t.Errorf("good second %d: %v, want %v", i, share, want)
		}
	}
	rate := 0.0
	for i, tc := range []struct {
		asked, lost uint32
		want        float64
	}{{100, 4, 0.04}, {0, 0, 0.02}, {10, 0, 0.01}, {20, 20, 1}} {
		if rate = nextRate(rate, tc.asked, tc.lost); math.Abs(rate-tc.want) > 1e-9 {
			t.Errorf("rate %d: %v, want %v", i, rate, tc.want)
		}
	}
	if got := nextShare(0, 10, 5); got != 0 {
		t.Errorf("few attempts say something: %v", got)
	}
}

// TestLossesFade: what leaves a target falls with time, however seldom anybody looks.
func TestLossesFade(t *testing.T) {
	const second = time.Second
	for _, tc := range []struct {
		name        string
		looks       []time.Duration // after the last loss
		share, rate float64
	}{
		{"at once", []time.Duration{0}, 0.1, 1},
		{"every second", []time.Duration{0, second, 2 * second}, 0.025, 0.25},
		{"once, two seconds later", []time.Duration{0, 2 * second}, 0.025, 0.25},
		{"first two seconds later", []time.Duration{2 * second}, 0.025, 0.25},
		{"a minute later", []time.Duration{0, 60 * second}, 0, 0},
		{"first a minute later", []time.Duration{60 * second}, 0, 0},
	} {
		const last = 100 * second
		var l losses
		l.roll(last - second)
		for range lossLeast {
			l.note(true, last)
		}
		var share, rate float64
		for _, after := range tc.looks {
			share, rate = l.roll(last + after)
		}
		if math.Abs(share-tc.share) > 0.001 || math.Abs(rate-tc.rate) > 0.001 {
			t.Errorf("%s: %v leave and %v were lost, want %v and %v", tc.name, share, rate, tc.share, tc.rate)
		}
	}
}
