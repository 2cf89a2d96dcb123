package kube

import (
	"strconv"
	"time"

	discovery "k8s.io/api/discovery/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/nodens-dns/nodens/topology"
)

// store is where the reflector puts slices: straight into the sink, after
// projection. It keeps only their names, and whole slices only while a list is
// held back. Its methods are called by the reflector, one at a time.
type store struct {
	sink               topology.Sink
	contact            *contact
	namespace, service string
	now                func() time.Duration
	rewindHold         time.Duration

	// empty is told whether no slice is left, after each change of that. It
	// reports whether the empty set shall be emitted.
	empty func(bool) bool

	names  map[string]bool
	newest uint64 // the highest resource version known; 0 = none
	held   *held
}

// held is a set that is newer by arrival and older by version.
type held struct {
	since  time.Duration
	slices map[string]topology.Slice
}

var (
	_ cache.ReflectorStore         = (*store)(nil)
	_ cache.ReflectorBookmarkStore = (*store)(nil)
	_ cache.TransformingStore      = (*store)(nil)
)

// Transformer implements [cache.TransformingStore].
func (s *store) Transformer() cache.TransformFunc { return trim }

// Resync implements [cache.ReflectorStore]; there is nothing to replay.
func (s *store) Resync() error { return nil }

// Add implements [cache.ReflectorStore].
func (s *store) Add(object any) error { return s.Update(object) }

// Update implements [cache.ReflectorStore].
func (s *store) Update(object any) error {
	slice, ok := object.(*discovery.EndpointSlice)
	if !ok || !s.event(slice) {
		return nil
	}
	one := Project(slice, time.Now())
	if s.held != nil {
		s.held.slices[one.Name] = one
		s.release(slice.ResourceVersion)
		return nil
	}
	s.sink.Put(one)
	s.names[one.Name] = true
	s.empty(false)
	return nil
}

// Delete implements [cache.ReflectorStore].
func (s *store) Delete(object any) error {
	slice, ok := object.(*discovery.EndpointSlice)
	if !ok || !s.event(slice) {
		return nil
	}
	if s.held != nil {
		delete(s.held.slices, slice.Name)
		s.release(slice.ResourceVersion)
		return nil
	}
	s.sink.Delete(slice.Namespace, slice.Name)
	delete(s.names, slice.Name)
	s.empty(len(s.names) == 0)
	return nil
}

// Bookmark implements [cache.ReflectorBookmarkStore].
func (s *store) Bookmark(version string) error {
	s.contact.heard()
	s.contact.count(func(c *Counters) { c.Bookmarks++ })
	s.advance(version)
	s.release(version)
	return nil
}

// Replace implements [cache.ReflectorStore]. The set is complete: the reflector
// calls it only after a whole list or stream has arrived.
func (s *store) Replace(objects []any, version string) error {
	s.contact.heard()
	s.contact.count(func(c *Counters) { c.Lists++ })
	slices := make(map[string]topology.Slice, len(objects))
	seen := time.Now()
	for _, object := range objects {
		if slice, ok := object.(*discovery.EndpointSlice); ok && s.ours(slice) {
			slices[slice.Name] = Project(slice, seen)
		}
	}
	number := parseVersion(version)
	if number != 0 && number < s.newest {
		s.holdBack(slices, version)
		return nil
	}
	s.held = nil
	s.newest = number
	s.emit(slices)
	return nil
}

// holdBack keeps a list for later: it would take us back in time. The events
// that follow it are gathered with it.
func (s *store) holdBack(slices map[string]topology.Slice, version string) {
	if s.held == nil {
		s.contact.count(func(c *Counters) { c.Rewinds++ })
		s.held = &held{since: s.now()}
	}
	s.held.slices = slices
	s.release(version)
}

// release emits what is held back when the server has caught up, which its
// latest version tells, and gives in when it still says the same after a while.
func (s *store) release(version string) {
	number := parseVersion(version)
	if s.held == nil || number < s.newest && s.now()-s.held.since < s.rewindHold {
		return
	}
	slices := s.held.slices
	s.held, s.newest = nil, number
	s.emit(slices)
}

// emit replaces what the sink has.
func (s *store) emit(slices map[string]topology.Slice) {
	clear(s.names)
	all := make([]topology.Slice, 0, len(slices))
	for name, slice := range slices {
		s.names[name] = true
		all = append(all, slice)
	}
	if !s.empty(len(all) == 0) {
		return
	}
	s.sink.Replace(all)
	s.sink.Synced()
}

// event takes note of a change told by a watch, and reports whether it is ours.
func (s *store) event(slice *discovery.EndpointSlice) bool {
	s.contact.heard()
	s.contact.count(func(c *Counters) { c.Events++ })
	s.advance(slice.ResourceVersion)
	return s.ours(slice)
}

// ours reports whether a slice is of the Service that was asked for: a server
// that ignores the selector must not give us resolvers.
func (s *store) ours(slice *discovery.EndpointSlice) bool {
	if slice.Namespace == s.namespace && slice.Labels[discovery.LabelServiceName] == s.service {
		return true
	}
	s.contact.count(func(c *Counters) { c.Foreign++ })
	return false
}

// advance notes a version that was seen.
func (s *store) advance(version string) {
	if s.held == nil {
		s.newest = max(s.newest, parseVersion(version))
	}
}

// parseVersion turns a resource version into a number, 0 if it is none. They
// are ordered numbers since KEP-5504, and were before.
func parseVersion(version string) uint64 {
	number, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0
	}
	return number
}
