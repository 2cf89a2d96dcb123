package upstream

import "time"

const (
	missesToSuspect = 3
	// healthJitter spreads the trials of many nodes: waits are within a fifth.
	healthJitter = 0.2
)

// The waits before the next trial of a suspect target, the last one repeated. A
// hard error is often a restart, which is over soon.
var (
	afterSilence = [...]time.Duration{
		500 * time.Millisecond, time.Second, 2 * time.Second,
		4 * time.Second, 8 * time.Second, 10 * time.Second,
	}
	afterHardError = [...]time.Duration{
		100 * time.Millisecond, 250 * time.Millisecond, time.Second,
		2 * time.Second, 4 * time.Second, 8 * time.Second, 10 * time.Second,
	}
)

// health is what silences and errors say of a target; the zero value is
// healthy. It is a small value: its methods return the next one. There is no
// state that a reply does not end.
type health struct {
	misses   uint8         // silences in a row
	strikes  uint8         // waits begun; 0 when not suspect
	hard     bool          // the first failure was a hard error
	failedAt time.Duration // the last failure
	until    time.Duration // a suspect target gets one trial from then on
}

func (h health) suspect() bool { return h.strikes > 0 }

// due reports whether it is time to see if a suspect target is back.
func (h health) due(now time.Duration) bool { return h.suspect() && now >= h.until }

// missed is the state after a silence. jitter is in [0, 1).
func (h health) missed(now time.Duration, jitter float64) health {
	h.failedAt = now
	h.misses = min(h.misses+1, missesToSuspect)
	if h.misses < missesToSuspect || h.suspect() && !h.due(now) {
		return h
	}
	return h.strike(now, jitter)
}

// failed is the state after a hard error: refused, unreachable, reset.
func (h health) failed(now time.Duration, jitter float64) health {
	h.failedAt = now
	if h.suspect() && !h.due(now) {
		return h
	}
	h.hard = h.hard || !h.suspect()
	return h.strike(now, jitter)
}

// tried is the state when a trial goes out. It counts as failed until a reply
// comes, so that nothing has to wait for its silence.
func (h health) tried(now time.Duration, jitter float64) health { return h.strike(now, jitter) }

// strike begins the next wait.
func (h health) strike(now time.Duration, jitter float64) health {
	waits := afterSilence[:]
	if h.hard {
		waits = afterHardError[:]
	}
	wait := waits[min(int(h.strikes), len(waits)-1)]
	factor := 1 + healthJitter*(2*jitter-1)
	h.until = now + time.Duration(float64(wait)*factor)
	h.strikes = min(h.strikes+1, 100)
	return h
}
