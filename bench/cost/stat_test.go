package cost

import "testing"

func TestTicks(t *testing.T) {
	for name, c := range map[string]struct {
		stat         string
		user, system uint64
		bad          bool
	}{
		"plain":        {"7 (nodens) S 1 7 7 0 -1 4194304 1 0 0 0 12 34 0 0 20 0", 12, 34, false},
		"odd name":     {"7 (a) R (b c) S 1 7 7 0 -1 4194304 1 0 0 0 12 34 0 0 20 0", 12, 34, false},
		"cut off":      {"7 (nodens) S 1 7 7 0 -1 4194304 1 0 0 0 12", 0, 0, true},
		"not a number": {"7 (nodens) S 1 7 7 0 -1 4194304 1 0 0 0 x 34 0 0 20 0", 0, 0, true},
	} {
		user, system, err := ticks(c.stat)
		if user != c.user || system != c.system || (err != nil) != c.bad {
			t.Errorf("%s: %d, %d, %v", name, user, system, err)
		}
	}
}
