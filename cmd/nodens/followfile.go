package main

import (
	"context"
	"os"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	slowPoll = 30 * time.Second
	// settle is how long a changing file must rest before it is looked at:
	// many editors write a file in several steps.
	settle = 50 * time.Millisecond
)

// followFile calls look once, and again whenever the file at path may have
// changed, until ctx ends. It watches the folder and not the file, because
// files are mostly replaced, and also the folder that a symbolic link leads
// to; where nothing can be watched, or the link leads through several folders
// (as in a mounted ConfigMap), the poll finds out. 0 for poll means 30 s.
// look runs in the goroutine of the caller, never twice at once.
func followFile(ctx context.Context, path string, poll time.Duration, look func()) error {
	return followFiles(ctx, func() []string { return []string{path} }, poll, nil, func(bool) time.Duration { look(); return 0 })
}

// followFiles is followFile for several, which may be others from look to look. now
// makes it look at once; it may be nil. look hears whether that was so, and says after
// what time it wants to be called again in any case; 0 for the poll.
func followFiles(ctx context.Context, files func() []string, poll time.Duration, now <-chan os.Signal, look func(asked bool) time.Duration) error {
	if poll == 0 {
		poll = slowPoll
	}
	var events chan fsnotify.Event
	var failures chan error
	watcher, err := fsnotify.NewWatcher()
	if err == nil {
		defer watcher.Close()
		events, failures = watcher.Events, watcher.Errors
	}
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	var settled, again <-chan time.Time
	lookAt := func(asked bool) {
		watchFiles(watcher, files())
		again = nil
		if wait := look(asked); wait > 0 {
			again = time.After(wait)
		}
	}
	lookAt(false)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-now:
			lookAt(true)
		case <-failures: // events were lost; the poll finds what they said
		case <-events:
			if settled == nil {
				settled = time.After(settle)
			}
		case <-settled:
			settled = nil
			lookAt(false)
		case <-again:
			lookAt(false)
		case <-ticker.C:
			lookAt(false)
		}
	}
}
