package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// diary notes what happened, in order.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) note(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
}

func (d *diary) task(name string) task {
	return task{name: name, run: func(ctx context.Context) error {
		<-ctx.Done()
		d.note("stop " + name)
		return nil
	}}
}

func TestTasksStopInReverseOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		slow := task{name: "slow", run: func(ctx context.Context) error {
			<-ctx.Done()
			time.Sleep(3 * time.Second)
			d.note("stop slow")
			return nil
		}}
		err := runTasks(ctx, atMost(10*time.Second), d.task("first"), d.task("second"), slow)
		if err != nil {
			t.Errorf("runTasks: %v", err)
		}
		want := []string{"stop slow", "stop second", "stop first"}
		if diff := cmp.Diff(want, d.lines); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
	})
}

func TestTaskErrorEndsTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		broken := errors.New("broken")
		bad := task{name: "bad", run: func(context.Context) error { return broken }}
		alsoBad := task{name: "also bad", run: func(ctx context.Context) error {
			<-ctx.Done()
			return errors.New("torn")
		}}
		err := runTasks(t.Context(), atMost(time.Second), d.task("good"), bad, alsoBad)
		if !errors.Is(err, broken) || !strings.Contains(err.Error(), "bad: broken") || !strings.Contains(err.Error(), "also bad: torn") {
			t.Errorf("error is %v, want both errors with the names of their tasks", err)
		}
		if diff := cmp.Diff([]string{"stop good"}, d.lines); diff != "" {
			t.Errorf("stopped (-want +got):\n%s", diff)
		}
	})
}

func TestTaskMayEndEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		begin := time.Now()
		if err := runTasks(ctx, atMost(time.Second), task{"short", func(context.Context) error { return nil }}); err != nil {
			t.Error(err)
		}
		if time.Since(begin) != time.Hour {
			t.Errorf("the tasks ended after %s, want an hour", time.Since(begin))
		}
	})
}

func TestOneGracePeriodForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		hang := func(name string) task {
			return task{name, func(ctx context.Context) error { <-ctx.Done(); time.Sleep(time.Minute); return nil }}
		}
		var d diary
		begin := time.Now()
		err := runTasks(ctx, atMost(5*time.Second), d.task("quick"), hang("one"), hang("two"))
		if took := time.Since(begin); took != 5*time.Second {
			t.Errorf("the stop took %s, want 5s in all", took)
		}
		for _, want := range []string{"one was still busy", "two was still busy"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error is %v, want it to say %q", err, want)
			}
		}
		time.Sleep(time.Hour) // let the tasks left behind end
	})
}

func atMost(grace time.Duration) func() time.Duration {
	return func() time.Duration { return grace }
}
