package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// task is something that lives as long as the daemon.
type task struct {
	name string
	// run works until ctx ends, then finishes what it holds and returns. A
	// return before that is the end of the task; with an error it is the end
	// of them all.
	run func(ctx context.Context) error
}

// running is a task that was started.
type running struct {
	name string
	stop context.CancelFunc
	done chan struct{} // closed when the task returned; err is final then
	err  error
}

// runTasks starts the tasks in order and waits until ctx ends or one of them
// fails. It then stops them one by one in reverse order, all within one grace
// period, which is asked for only then, and returns their errors joined. A task that outlasts the grace
// period is an error too; nobody waits for it any longer.
//
// The daemon's order is admin, routes, listeners, reload, readiness, and so a
// stop is: first readiness goes off, so that nobody new is sent here, and no
// reload can start parts again; then the listeners answer what they have
// received, for which they need the routes; then the routes close their
// sockets, since no client asks them any more, and the forwarder is closed, which
// waits for what was asked in the background and now fails at once; the admin
// side is last, so that the stop can be watched.
func runTasks(ctx context.Context, grace func() time.Duration, tasks ...task) error {
	failed := make(chan struct{}, 1)
	started := make([]*running, len(tasks))
	for i, t := range tasks {
		started[i] = start(t, failed)
	}
	select {
	case <-ctx.Done():
	case <-failed:
	}
	deadline, cancel := context.WithTimeout(context.Background(), grace())
	defer cancel()
	var errs []error
	for i := len(started) - 1; i >= 0; i-- {
		errs = append(errs, started[i].end(deadline))
	}
	return errors.Join(errs...)
}

// start runs t in a goroutine of its own. failed, which has room for one, hears
// of an error that came before anybody stopped the task; it may be nil.
func start(t task, failed chan<- struct{}) *running {
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{name: t.name, stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.err = t.run(ctx)
		if r.err != nil && ctx.Err() == nil {
			select {
			case failed <- struct{}{}:
			default:
			}
		}
	}()
	return r
}

// end stops the task and waits for it until the deadline.
func (r *running) end(deadline context.Context) error {
	r.stop()
	select {
	case <-r.done:
	case <-deadline.Done():
		select {
		case <-r.done:
		default:
			return fmt.Errorf("%s was still busy when the time for a stop (stopGrace) was over", r.name)
		}
	}
	if r.err != nil {
		return fmt.Errorf("%s: %w", r.name, r.err)
	}
	return nil
}
