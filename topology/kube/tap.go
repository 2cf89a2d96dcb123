package kube

import (
	"sync"

	"k8s.io/apimachinery/pkg/watch"
)

// tap is a watch whose events are seen on their way by another. It has one
// goroutine, which ends when the watch ends or is stopped.
type tap struct {
	inner  watch.Interface
	see    func(watch.Event)
	events chan watch.Event
	stop   sync.Once
	done   chan struct{}
}

func newTap(inner watch.Interface, see func(watch.Event)) *tap {
	t := &tap{inner: inner, see: see, events: make(chan watch.Event), done: make(chan struct{})}
	go t.run()
	return t
}

// ResultChan implements [watch.Interface].
func (t *tap) ResultChan() <-chan watch.Event { return t.events }

// Stop implements [watch.Interface].
func (t *tap) Stop() {
	t.stop.Do(func() { close(t.done) })
	t.inner.Stop()
}

func (t *tap) run() {
	defer close(t.events)
	for event := range t.inner.ResultChan() {
		select {
		case <-t.done:
			return // an error now is only that of being stopped
		default:
		}
		t.see(event)
		select {
		case t.events <- event:
		case <-t.done:
			return
		}
	}
}
