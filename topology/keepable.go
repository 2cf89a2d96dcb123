package topology

import (
	"net/netip"
	"strings"
)

// The methods of this file are how a Keeper and its Watcher speak.

// confirmed reports whether a source has said what there is.
func (w *Watcher) confirmed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.synced && !w.restored
}

// keepable returns the world as slices that stand for the same endpoints, and a
// number that tells one state of it from another. There are none while no
// source has confirmed them, and none of an empty world: that must not replace
// a good snapshot.
func (w *Watcher) keepable() (list []Slice, zone string, state uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.synced || w.restored {
		return nil, "", 0
	}
	for _, r := range w.world.byAge() {
		if len(r.endpoints) > 0 {
			list = append(list, r.slice(&w.world.rules))
		}
	}
	self, _ := w.where()
	return list, self.Zone, w.world.clock
}

// slice is the inverse of Project.
func (r *record) slice(rules *Rules) Slice {
	first := &r.endpoints[0]
	s := Slice{
		Namespace: r.key.namespace, Name: r.key.name, Service: rules.Service,
		AddressType: familyOf(first.Addr).String(),
		Changed:     r.written,
		Endpoints:   make([]SliceEndpoint, len(r.endpoints)),
	}
	if len(rules.ManagedBy) > 0 {
		s.ManagedBy = rules.ManagedBy[0] // it was one of them
	}
	if first.UDPPort != 0 {
		s.Ports = append(s.Ports, Port{Name: rules.UDPPort, Protocol: "UDP", Number: int32(first.UDPPort)})
	}
	if first.TCPPort != 0 {
		s.Ports = append(s.Ports, Port{Name: rules.TCPPort, Protocol: "TCP", Number: int32(first.TCPPort)})
	}
	for i := range r.endpoints {
		s.Endpoints[i] = r.endpoints[i].slice()
	}
	return s
}

// slice is the inverse of endpoint, but for the ports.
func (e *Endpoint) slice() SliceEndpoint {
	out := SliceEndpoint{
		Addresses: []string{e.Addr.String()},
		Ready:     &e.Ready, Serving: &e.Serving, Terminating: &e.Terminating,
		Node: e.Node, Zone: e.Zone, ForNodes: e.ForNodes.List(), ForZones: e.ForZones.List(),
	}
	if e.Pod != e.PodName {
		out.TargetUID = e.Pod
	}
	if namespace, name, ok := strings.Cut(e.PodName, "/"); ok {
		out.TargetNamespace, out.TargetName = namespace, name
	}
	return out
}

// preview is the Table that slices would make, and that nobody is given.
func (w *Watcher) preview(list []Slice, zone string) Table {
	w.mu.Lock()
	self, _ := w.where()
	w.mu.Unlock()
	if self.Zone == "" {
		self.Zone = zone
	}
	world := newWorld(w.cfg.Rules)
	for i := range list {
		world.put(&list[i])
	}
	return table(world.views(world.byAge(), self, w.cfg.Options))
}

// restore puts the endpoints of a snapshot that have a good address, all of
// them for nil, in force, unless a source came first. It returns how many.
func (w *Watcher) restore(from *Snapshot, good map[netip.Addr]bool) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.synced && !w.restored {
		return 0
	}
	n := 0
	for i := range from.Slices {
		s := from.Slices[i]
		if good != nil {
			s.Endpoints = only(s.Endpoints, good)
		}
		_, after := w.world.put(&s)
		n += len(after.endpoints)
	}
	if n > 0 {
		w.savedZone = from.Zone
		w.restored, w.synced = true, true
		w.touch(true)
	}
	return n
}

// only keeps the endpoints whose first address is good.
func only(list []SliceEndpoint, good map[netip.Addr]bool) []SliceEndpoint {
	var kept []SliceEndpoint
	for i := range list {
		if len(list[i].Addresses) == 0 {
			continue
		}
		if addr, err := netip.ParseAddr(list[i].Addresses[0]); err == nil && good[addr] {
			kept = append(kept, list[i])
		}
	}
	return kept
}
