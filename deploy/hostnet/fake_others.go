package hostnet

import (
	"context"
	"slices"
)

// Flush is somebody else's flush of the rule set: the table is gone.
func (f *Fake) Flush() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.table, f.held, f.counts = nil, nil, Counts{}
	f.tell()
}

// DropLink is somebody else's deletion of the link.
func (f *Fake) DropLink() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.link = Link{}
	f.tell()
}

// Leave puts leftovers of node-cache on the host.
func (f *Fake) Leave(sentences ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leftovers = append(f.leftovers, sentences...)
	f.tell()
}

// Count sets what the table counted.
func (f *Fake) Count(c Counts) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts = c
}

// tell wakes those that watch. Called with the lock held.
func (f *Fake) tell() {
	for _, w := range f.watchers {
		select {
		case w <- struct{}{}:
		default:
		}
	}
}

// Watch is as Host.Watch. It reports Flush, DropLink and Leave.
func (f *Fake) Watch(ctx context.Context, changed func()) error {
	wake := make(chan struct{}, 1)
	f.mu.Lock()
	f.watchers = append(f.watchers, wake)
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.watchers = slices.DeleteFunc(f.watchers, func(w chan struct{}) bool { return w == wake })
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-wake:
			changed()
		}
	}
}
