package guard

import (
	"testing"
	"time"
)

func TestPlaceRounds(t *testing.T) {
	for _, c := range []struct {
		name   string
		rounds string // s silent, c calm, u unclear, a absent
		want   bool
	}{
		{"nothing yet", "", false},
		{"three silent rounds are bad luck", "sss", false},
		{"four are not", "ssss", true},
		{"one answered round in between starts anew", "ssscsss", false},
		{"an unclear round changes nothing", "ssuss", true},
		{"it comes back after four calm rounds", "sssscccc", false},
		{"not after three", "ssssccc", true},
		{"whoever was stuck is gone", "ssssa", false},
		{"silence does not add up over an absence", "sssasss", false},
		{"not after four that are not in a row", "sssscccsc", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var p place
			changes := 0
			for _, r := range c.rounds {
				if p.round(map[rune]outcome{'s': silent, 'c': calm, 'u': unclear, 'a': absent}[r]) {
					changes++
				}
			}
			if p.stuck != c.want || changes > 2 || (c.want && changes != 1) {
				t.Errorf("stuck %v after %d changes, want %v", p.stuck, changes, c.want)
			}
		})
	}
}

func TestDeaths(t *testing.T) {
	const s = time.Second
	var d deaths
	for i, c := range []struct {
		lived, now time.Duration
		open       time.Duration // from now on
	}{
		{lived: s, now: 10 * s},
		{lived: s, now: 20 * s},
		{lived: s, now: 30 * s, open: 10 * s},
		{lived: s, now: 41 * s, open: 20 * s},
		{lived: s, now: 62 * s, open: 40 * s},
		{lived: 11 * s, now: 200 * s}, // it had proved itself
		{lived: s, now: 210 * s},
	} {
		d.died(c.lived, c.now)
		if got := max(d.until-c.now, 0); got != c.open {
			t.Errorf("death %d: queries go elsewhere for %v, want %v", i, got, c.open)
		}
		if d.open(c.now) != (c.open > 0) || d.open(c.now+c.open) {
			t.Errorf("death %d: open does not say so", i)
		}
	}
	for range 20 {
		d.died(0, 300*s)
	}
	if d.until != 300*s+maxPause {
		t.Errorf("after many deaths the pause is %v, want %v", d.until-300*s, maxPause)
	}
	// Time without queries proves nothing.
	if d.lived(300*s, d.until+s); d.inRow == 0 {
		t.Error("an instance that had no queries counts as good")
	}
	if d.lived(300*s, d.until+youngFor); d.inRow != 0 {
		t.Error("an instance that lives is not forgiven")
	}
}

func TestAnswered(t *testing.T) {
	p := place{heard: map[string]time.Duration{"a": time.Second, "b": 1300 * time.Millisecond}}
	for _, c := range []struct {
		name string
		gone map[string]bool
		now  time.Duration
		want bool
	}{
		{"both", nil, 1400 * time.Millisecond, true},
		{"one is dead", map[string]bool{"b": true}, 1400 * time.Millisecond, true},
		{"both are", map[string]bool{"a": true, "b": true}, 1400 * time.Millisecond, false},
		{"the living one was silent for long", map[string]bool{"b": true}, 1700 * time.Millisecond, false},
	} {
		if got := p.answered(c.gone, c.now); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestBehind(t *testing.T) {
	for _, c := range []struct {
		name    string
		b       behind
		service bool
		want    bool
	}{
		{"not asked", behind{}, false, false},
		{"not asked, kube-proxy's", behind{}, true, true},
		{"good", behind{known: true, good: true}, false, true},
		{"bad", behind{known: true}, false, false},
		{"bad, kube-proxy's", behind{known: true}, true, false},
	} {
		if got := c.b.answers(c.service); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
