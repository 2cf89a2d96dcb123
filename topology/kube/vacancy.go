package kube

import (
	"sync"
	"time"
)

// vacancy ends a watch some time after its Service had no slices left.
type vacancy struct {
	every  time.Duration
	cancel func()

	mu    sync.Mutex
	timer *time.Timer // runs while there are no slices
	found bool        // the watch was ended by it
}

// set says whether there are no slices now. With atOnce the watch ends now, and
// the empty set shall not be emitted, which false says.
func (v *vacancy) set(empty, atOnce bool) (emit bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case !empty && v.timer != nil:
		v.timer.Stop()
		v.timer = nil
	case empty && atOnce:
		v.found = true
		v.cancel()
		return false
	case empty && v.timer == nil:
		v.timer = time.AfterFunc(v.every, v.notice)
	}
	return true
}

func (v *vacancy) notice() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.timer == nil {
		return // slices came in the same moment
	}
	v.found = true
	v.cancel()
}

func (v *vacancy) noticed() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.found
}

func (v *vacancy) stop() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.timer != nil {
		v.timer.Stop()
	}
}
