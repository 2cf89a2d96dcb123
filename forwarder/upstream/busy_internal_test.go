package upstream

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestBears(t *testing.T) {
	tests := map[string]struct {
		gap  time.Duration // between replies
		want int32
	}{
		"a fast server":            {50 * time.Microsecond, bearMost},
		"1000 a second":            {time.Millisecond, 20},
		"a slow server":            {10 * ms, bearLeast},
		"replies in one go":        {0, bearMost},
		"one that sleeps for once": {time.Second, bearLeast},
	}
	for name, tc := range tests {
		pace := time.Duration(0)
		if got := bearsAt(pace); got != bearUnknown {
			t.Errorf("%s: %d before anything is known", name, got)
		}
		for range 10 * paceWeight {
			pace = nextPace(pace, tc.gap)
		}
		if got := bearsAt(pace); got != tc.want && got != tc.want-1 {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

func TestPaceCountsBusyTimesOnly(t *testing.T) {
	s := newScore(rand.Uint64)
	replies := func(inFlight int32, every time.Duration) {
		s.inFlight[fast].Store(inFlight)
		for i := range 200 {
			s.paced(time.Duration(i) * every)
		}
	}
	replies(busyLeast-1, time.Second)
	if got := s.bears(&Config{}); got != bearUnknown {
		t.Errorf("%d are borne by a server with little to do", got)
	}
	replies(busyLeast, 10*ms)
	if got := s.bears(&Config{}); got != bearLeast {
		t.Errorf("%d are borne by a slow server", got)
	}
	replies(busyLeast, 50*time.Microsecond)
	if got := s.bears(&Config{}); got != bearMost {
		t.Errorf("%d are borne by one that is fast again", got)
	}
	if got := s.bears(&Config{Spill: 9}); got != 9 {
		t.Errorf("%d are borne, 9 are configured", got)
	}
}

func TestLate(t *testing.T) {
	s := newScore(rand.Uint64)
	if got := s.lateAt(0); got != 0 {
		t.Errorf("%v before the first", got)
	}
	for i, want := range []time.Duration{200 * ms, 400 * ms, 500 * ms, 500 * ms} {
		s.late(500*ms, 0, 100*ms)
		if got := s.lateAt(0); got != want {
			t.Errorf("late answer %d: %v, want %v", i, got, want)
		}
	}
	if got := s.lateAt(2 * time.Second); got > 100*ms {
		t.Errorf("%v after two seconds without", got)
	}
}
