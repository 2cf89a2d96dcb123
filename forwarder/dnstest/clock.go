package dnstest

import (
	"sync/atomic"
	"time"
)

// Clock is a monotonic clock that only the test turns. The zero value stands
// at 0.
type Clock struct{ now atomic.Int64 }

// Now is the time since the clock's epoch.
func (c *Clock) Now() time.Duration { return time.Duration(c.now.Load()) }

// Turn lets time pass.
func (c *Clock) Turn(d time.Duration) { c.now.Add(int64(d)) }
