package topology

import "go.uber.org/zap"

var _ Sink = (*Watcher)(nil)

// Put implements [Sink].
func (w *Watcher) Put(s Slice) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counters.Puts++
	w.touch(w.put(&s))
}

// Delete implements [Sink].
func (w *Watcher) Delete(namespace, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counters.Deletes++
	before := w.world.remove(key{namespace, name})
	w.touch(losesLocal(before, nil, w.self.Node))
}

// Replace implements [Sink].
func (w *Watcher) Replace(all []Slice) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counters.Replaces++
	w.restored = false
	urgent := false
	kept := make(map[key]bool, len(all))
	for i := range all {
		kept[all[i].key()] = true
		urgent = w.put(&all[i]) || urgent
	}
	for k := range w.world.records {
		if !kept[k] {
			before := w.world.remove(k)
			urgent = losesLocal(before, nil, w.self.Node) || urgent
		}
	}
	w.touch(urgent)
}

// Synced implements [Sink].
func (w *Watcher) Synced() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.synced {
		return
	}
	w.synced = true
	w.cfg.Log.Info("endpoints are synced", zap.Int("slices", len(w.world.records)))
	w.touch(true)
}

// Relocate says where this node is from now on, e.g. after its zone label
// changed.
func (w *Watcher) Relocate(self Self) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if self == w.self {
		return
	}
	if self.Node != w.self.Node {
		w.seenZone = ""
	}
	w.cfg.Log.Info("this node is somewhere else", zap.String("node", self.Node), zap.String("zone", self.Zone))
	w.self = self
	w.touch(false)
}

// put stores a slice and reports whether that must not wait. The lock is held.
func (w *Watcher) put(s *Slice) (urgent bool) {
	before, after := w.world.put(s)
	for _, k := range faulty() {
		if after.ignored[k] > 0 && !w.told[k] {
			w.told[k] = true
			w.cfg.Log.Warn("a slice holds what is ignored; this kind is told once, and counted in the status",
				zap.Stringer("slice", after.key), zap.Stringer("kind", k), zap.Int("count", after.ignored[k]))
		}
	}
	return losesLocal(before, after, w.self.Node)
}

// NodeZone says which zone the Node object of this node names, "" for none. It
// counts when neither Self nor an endpoint on this node tells the zone: those
// agree with the zones of the other endpoints by construction.
func (w *Watcher) NodeZone(zone string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if zone == w.nodeZone {
		return
	}
	w.cfg.Log.Info("the Node of this node is in another zone", zap.String("zone", zone), zap.String("before", w.nodeZone))
	if w.nodeZone != "" {
		// The node has moved: what an endpoint said that is gone is old. One
		// that is there says it again.
		w.seenZone = ""
	}
	w.nodeZone = zone
	w.touch(false)
}

// touch wakes Run. The lock is held.
func (w *Watcher) touch(urgent bool) {
	w.dirty = true
	w.lastEvent = w.cfg.Now()
	if urgent {
		signal(w.urgent)
	}
	signal(w.wake)
}

// signal leaves a token in a channel of capacity 1; one token stands for many.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
