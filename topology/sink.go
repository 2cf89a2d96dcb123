package topology

import "context"

// Source emits the slices of a cluster, or of a file, into a sink.
type Source interface {
	// Run emits until ctx ends and then returns nil. An error means that the
	// source cannot go on; what it emitted before stays in force.
	Run(ctx context.Context, sink Sink) error
}

// Sink receives slices. A [Watcher] is one, for one Source. Its methods may be
// called from any goroutine, never wait for the outcome, and keep nothing of
// their arguments but strings.
type Sink interface {
	// Put adds a slice or replaces the one of the same namespace and name.
	Put(s Slice)
	// Delete removes a slice; one that is not there is no mistake.
	Delete(namespace, name string)
	// Replace puts all given slices and removes all others in one step, so
	// that no reader ever sees an empty moment in between.
	Replace(all []Slice)
	// Synced says that everything that existed at the start was emitted.
	// Nothing is published before; more calls do nothing.
	Synced()
}
