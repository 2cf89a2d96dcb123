package guard

import (
	"testing"
	"time"
)

// A guard that starts a moment later is found at once; one that is not there is not asked
// for all the time.
func TestConnectWait(t *testing.T) {
	var at time.Duration
	for failures, want := 1, 10*time.Millisecond; failures < 200; failures++ {
		switch {
		case at >= 6*time.Second:
			want = time.Second
		case at >= time.Second:
			want = 100 * time.Millisecond
		}
		got := connectWait(failures)
		if got != want {
			t.Errorf("try %d, after %v: waits %v, want %v", failures, at, got, want)
		}
		at += got
	}
}
