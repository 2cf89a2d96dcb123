package main

import (
	"context"
	"sync"
)

// outlet is a task that goes by one part of the configuration, and is replaced
// when that changes. It never keeps a reload from going on: what it had is gone
// soon after.
type outlet struct {
	mu   sync.Mutex
	live *running
	work sync.WaitGroup
}

// replace ends the task that runs and starts another; nil starts none.
func (o *outlet) replace(next *task) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if old := o.live; old != nil {
		old.stop()
		o.work.Go(func() { <-old.done })
	}
	o.live = nil
	if next != nil {
		o.live = start(*next, nil)
	}
}

// end ends the task that runs, and waits for it and for those before it.
func (o *outlet) end() {
	o.replace(nil)
	o.work.Wait()
}

// runOutlets ends what watches the queries when ctx ends: the listeners have
// answered by then.
func (d *daemon) runOutlets(ctx context.Context) error {
	<-ctx.Done()
	d.queryLog.end()
	d.collector.end()
	return nil
}

// applyOutlets has the queries watched as a configuration says.
func (d *daemon) applyOutlets(c, old *Config) {
	if old == nil || !sameLog(c, old) {
		d.queryLog.apply(c, d.base)
	}
	if old == nil || c.Dnstap != old.Dnstap || c.Node.Name != old.Node.Name {
		d.collector.apply(c, d)
	}
}
