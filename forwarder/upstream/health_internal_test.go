package upstream

import (
	"math/rand/v2"
	"testing"
	"time"
)

const middle = 0.5 // no jitter

func TestEjection(t *testing.T) {
	t.Run("three silences in a row", func(t *testing.T) {
		h := health{}.missed(0, 30*ms, middle).missed(100*ms, 130*ms, middle)
		if h.out {
			t.Fatal("out after two")
		}
		if got := h.replied(140*ms, true, false).missed(150*ms, 180*ms, middle); got.out || got.misses != 1 {
			t.Errorf("a reply did not end the row: %+v", got)
		}
		if h = h.missed(120*ms, 150*ms, middle); !h.suspected() || h.out {
			t.Errorf("%+v", h)
		}
		if h = h.missed(150*ms, 180*ms, middle); !h.ejected() || h.suspected() || h.until != 1180*ms || h.failedAt != 180*ms {
			t.Errorf("%+v", h)
		}
	})
	t.Run("many silences in one pause", func(t *testing.T) {
		h := health{}
		for asked := 10 * ms; asked < 129*ms; asked += ms {
			if h = h.missed(asked, asked+30*ms, middle); h.out {
				t.Fatalf("out %v after the first was asked", asked+20*ms)
			}
			if want := asked >= 12*ms; h.suspected() != want {
				t.Fatalf("suspected after what was asked at %v: %v", asked, h.suspected())
			}
		}
		if h = h.missed(130*ms, 160*ms, middle); !h.ejected() {
			t.Errorf("a longer one is borne: %+v", h)
		}
	})
	t.Run("nothing asked before the suspicion ejects", func(t *testing.T) {
		h := health{}
		for i := range time.Duration(3) {
			h = h.missed(i*time.Second, i*time.Second+30*ms, middle)
		}
		for asked := 1900 * ms; asked < 2030*ms; asked += 10 * ms {
			if h = h.missed(asked, 3*time.Second, middle); !h.suspected() {
				t.Fatalf("asked at %v: %+v", asked, h)
			}
		}
		if got := h.missed(2030*ms, 2060*ms, middle); !got.ejected() {
			t.Errorf("a silence since does not: %+v", got)
		}
		if got := h.replied(4*time.Second, false, false); got.suspected() || got.share(4*time.Second) != 1 {
			t.Errorf("a reply does not clear it: %+v", got)
		}
	})
	t.Run("one hard error", func(t *testing.T) {
		if h := (health{}).failed(0, ms, middle); !h.ejected() || h.until != 1001*ms {
			t.Errorf("%+v", h)
		}
	})
	t.Run("failures while out change the order, and the next one once", func(t *testing.T) {
		h := health{}.failed(0, ms, middle)
		for range 50 {
			h = h.missed(2*ms, 2*ms, middle).failed(2*ms, 3*ms, middle)
		}
		if h.until != 1001*ms || h.level != 1 || h.failedAt != 3*ms {
			t.Errorf("%+v", h)
		}
	})
	t.Run("jitter", func(t *testing.T) {
		if low, high := (health{}).failed(0, 0, 0).until, (health{}).failed(0, 0, 1).until; low != 800*ms || high != 1200*ms {
			t.Errorf("%v to %v", low, high)
		}
	})
	// again ejects a target, lets something happen while it is out, and has it
	// return.
	again := func(h health, now time.Duration, meanwhile func(health) health) (health, time.Duration) {
		h = meanwhile(h.failed(now, now, middle))
		return h.replied(h.until, true, false).replied(h.until, true, false), h.until - now
	}
	t.Run("each takes twice as long while probes fail, until calm returns", func(t *testing.T) {
		h, took, now := health{}, time.Duration(0), time.Duration(0)
		for i, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
			h, took = again(h, now, func(h health) health { return h.missed(now+100*ms, now+200*ms, middle) })
			if took != want*time.Second || h.out {
				t.Errorf("ejection %d: %v, want %ds; %+v", i, took, want, h)
			}
			now += took + time.Second
		}
		now += 4 * calmAfter
		if h = h.failed(now, now, middle); h.until-now != 8*time.Second {
			t.Errorf("after calm: %v", h.until-now)
		}
	})
	t.Run("all take as long while probes are good", func(t *testing.T) {
		h, took, now := health{}, time.Duration(0), time.Duration(0)
		for i := range 5 {
			h, took = again(h, now, func(h health) health {
				// What was asked before is still unanswered; then a probe is good.
				return h.missed(now-10*ms, now+20*ms, middle).replied(now+100*ms, true, false)
			})
			if took != time.Second || h.out {
				t.Errorf("ejection %d: %v; %+v", i, took, h)
			}
			now += took + time.Second
		}
	})
}

func TestReturn(t *testing.T) {
	failed := health{}.failed(0, 0, middle)
	t.Run("two good replies, not too early", func(t *testing.T) {
		h := failed.replied(100*ms, true, false).replied(200*ms, true, false)
		if !h.out {
			t.Fatal("back before its time")
		}
		if h = h.replied(1000*ms, true, false); h.out || !h.ramps {
			t.Errorf("%+v", h)
		}
	})
	t.Run("one is not enough", func(t *testing.T) {
		h := failed.replied(2000*ms, true, false)
		if !h.out {
			t.Error("back after one")
		}
		if h = h.missed(2100*ms, 2100*ms, middle).replied(2200*ms, true, false); !h.out {
			t.Error("back after one, a silence and one")
		}
	})
	t.Run("a reply that proves nothing", func(t *testing.T) {
		h := failed
		for i := range 10 {
			h = h.replied(time.Duration(i)*time.Second, false, false)
		}
		if !h.out {
			t.Error("back")
		}
	})
	t.Run("at once when all are out", func(t *testing.T) {
		if h := failed.replied(ms, true, true); h.out || h.ramps {
			t.Errorf("%+v", h)
		}
	})
	t.Run("one that became ready needs one", func(t *testing.T) {
		h := failed.readied(10 * ms)
		if h.ejected() || !h.out {
			t.Fatalf("%+v", h)
		}
		if h = h.replied(20*ms, true, false); h.out || !h.ramps {
			t.Errorf("%+v", h)
		}
	})
}

func TestRamp(t *testing.T) {
	h := health{}.failed(0, 0, middle)
	if h.share(ms) != 0 {
		t.Errorf("out: %v", h.share(ms))
	}
	h = h.replied(2000*ms, true, false).replied(3000*ms, true, false)
	for after, want := range map[time.Duration]float64{0: 0.1, 2500 * ms: 0.55, 5000 * ms: 1, time.Hour: 1} {
		if got := h.share(3000*ms + after); got != want {
			t.Errorf("%v after: %v, want %v", after, got, want)
		}
	}
	if (health{}).share(0) != 1 {
		t.Error("a healthy target does not take all")
	}
}

// TestNeverForEver has anything happen for a day, then replies come.
func TestNeverForEver(t *testing.T) {
	h := health{}
	for now := time.Duration(0); now < 24*time.Hour; now += 50 * ms {
		if h = h.failed(now, now, 0.999).missed(now, now, 0); h.until > now+37*time.Second {
			t.Fatalf("at %v: %+v", now, h)
		}
	}
	now := 24*time.Hour + 37*time.Second
	if h = h.replied(now, true, false).replied(now, true, false); h.out {
		t.Errorf("%+v", h)
	}
}

func TestScore(t *testing.T) {
	t.Run("a silence counts only if nothing else was answered since", func(t *testing.T) {
		s := newScore(rand.Uint64)
		s.replied(10*ms, true, false)
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
	t.Run("a reply that changes nothing allocates nothing", func(t *testing.T) {
		s := newScore(rand.Uint64)
		s.missed(0, ms)
		s.replied(2*ms, true, false)
		if n := testing.AllocsPerRun(100, func() { s.replied(3*ms, true, false) }); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
	t.Run("an ejection is told once", func(t *testing.T) {
		s := newScore(rand.Uint64)
		if !s.failed(0, 0) || s.failed(0, ms) || s.missed(ms, 2*ms) != noChange {
			t.Error("not exactly once")
		}
	})
	t.Run("so is a suspicion, each time", func(t *testing.T) {
		s := newScore(rand.Uint64)
		for round := range time.Duration(2) {
			var got [5]change
			for i := range got {
				got[i] = s.missed(round*ms, round*ms+40*ms)
			}
			if want := [5]change{2: nowSuspected}; got != want {
				t.Errorf("%v", got)
			}
			s.replied(round*ms, false, false)
		}
		s.missed(2*ms, 3*ms)
		s.missed(2*ms, 3*ms)
		s.missed(2*ms, 3*ms)
		if got := s.missed(3*ms, 200*ms); got != nowOut {
			t.Errorf("%v", got)
		}
	})
}

func TestProbePlan(t *testing.T) {
	jittered := func(d time.Duration) time.Duration { return d }
	type step struct {
		at   time.Duration
		want bool
	}
	run := func(t *testing.T, p *probePlan, h health, external bool, steps ...step) {
		t.Helper()
		for _, s := range steps {
			got := p.due(h, s.at, external)
			if got != s.want {
				t.Errorf("at %v: due %v", s.at, got)
			}
			if got {
				p.sent(h, s.at, external, jittered)
				p.next = s.at + probeAfter(p.number-1, external) // no jitter
				p.busy = false
			}
		}
	}
	failed := health{}.failed(0, 0, middle)
	t.Run("while out", func(t *testing.T) {
		run(t, &probePlan{}, failed, false, step{99 * ms, false}, step{100 * ms, true}, step{349 * ms, false},
			step{350 * ms, true}, step{1349 * ms, false}, step{1350 * ms, true}, step{2350 * ms, true}, step{3350 * ms, true})
	})
	t.Run("external", func(t *testing.T) {
		run(t, &probePlan{}, failed, true, step{100 * ms, true}, step{350 * ms, true}, step{1350 * ms, true},
			step{3349 * ms, false}, step{3350 * ms, true}, step{7350 * ms, true}, step{12349 * ms, false}, step{12350 * ms, true})
	})
	t.Run("one that became ready is probed at once", func(t *testing.T) {
		run(t, &probePlan{}, failed.readied(50*ms), false, step{50 * ms, true})
	})
	t.Run("well", func(t *testing.T) {
		run(t, &probePlan{}, health{}, false, step{0, false}, step{time.Hour, false})
		if p := (&probePlan{steady: time.Second, next: time.Second}); p.due(health{}, 999*ms, false) || !p.due(health{}, 1000*ms, false) {
			t.Error("not due once a second")
		}
	})
	t.Run("a suspect at once and often", func(t *testing.T) {
		doubted := health{misses: missesToEject, doubtAt: 40 * ms}
		for _, p := range []*probePlan{{}, {steady: 10 * time.Second, next: 10 * time.Second}} {
			run(t, p, health{}, false, step{39 * ms, false})
			if !p.due(doubted, 40*ms, false) {
				t.Error("not due at once")
			}
			p.sent(doubted, 40*ms, false, jittered)
			if p.busy = false; p.due(doubted, 89*ms, false) || !p.due(doubted, 90*ms, false) {
				t.Errorf("due at %v, want after 50 ms", p.next)
			}
			if p.steady == 0 && p.due(health{}, time.Hour, false) {
				t.Error("due when it was cleared")
			}
		}
	})
	t.Run("one at a time", func(t *testing.T) {
		p := &probePlan{}
		if !p.due(failed, 100*ms, false) {
			t.Fatal("not due")
		}
		p.sent(failed, 100*ms, false, jittered)
		if p.due(failed, time.Hour, false) {
			t.Error("due while one is on its way")
		}
	})
}
