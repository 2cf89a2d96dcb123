package forwarder

import "sync"

// background runs the questions that are asked whether or not a client waits.
// Their number is bounded by the routes'.
type background struct {
	mu     sync.Mutex
	closed bool
	work   sync.WaitGroup
}

// start runs a function in a goroutine of its own; false when closed.
func (b *background) start(run func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.work.Go(run)
	return true
}

// close lets nothing start any more and waits for what runs.
func (b *background) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.work.Wait()
}
