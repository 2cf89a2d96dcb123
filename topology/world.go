package topology

import (
	"cmp"
	"slices"
	"time"
)

// world is everything known now. State is kept per slice, because an endpoint
// may move between slices: the event of one must not erase what the other says.
// The Watcher's lock guards it.
type world struct {
	rules   Rules
	records map[key]*record
	clock   uint64 // changes so far
}

// record is one slice after projection.
type record struct {
	key       key
	service   string     // namespace/name of its Service
	endpoints []Endpoint // all of one family
	ignored   Ignored
	written   time.Time
	arrival   uint64 // breaks ties of written
}

func newWorld(rules Rules) world {
	return world{rules: rules, records: make(map[key]*record)}
}

// put stores s and returns what was there before and what is there now.
func (w *world) put(s *Slice) (before, after *record) {
	before = w.records[s.key()]
	after = &record{key: s.key(), service: s.service(), written: s.written()}
	after.endpoints, after.ignored = Project(s, w.rules)
	if before.sameAs(after) {
		// Seen again, in a list or with a change that is nothing to us: it
		// was not written again unless its trigger time says so.
		after.arrival = before.arrival
		if s.Changed.IsZero() {
			after.written = before.written
		}
	} else {
		w.clock++
		after.arrival = w.clock
	}
	w.records[s.key()] = after
	return before, after
}

// remove forgets a slice and returns what was there, nil for nothing.
func (w *world) remove(k key) *record {
	before := w.records[k]
	if before != nil {
		w.clock++
		delete(w.records, k)
	}
	return before
}

// sameAs reports whether both say the same.
func (r *record) sameAs(other *record) bool {
	return r != nil && r.ignored == other.ignored && slices.Equal(r.endpoints, other.endpoints)
}

// byAge returns the records, the oldest first.
func (w *world) byAge() []*record {
	records := make([]*record, 0, len(w.records))
	for _, r := range w.records {
		records = append(records, r)
	}
	slices.SortFunc(records, func(a, b *record) int {
		return cmp.Or(a.written.Compare(b.written), cmp.Compare(a.arrival, b.arrival))
	})
	return records
}

// located is an endpoint with its slice.
type located struct {
	*Endpoint
	slice key
	age   int // 0 = the oldest slice
}

// family lists the endpoints of a family ordered by address, and the copies of
// one address the oldest first, which is what Rank asks for. The order does not
// depend on the order of events, so equal worlds give equal tables.
func (w *world) family(records []*record, f Family) ([]Endpoint, []key) {
	var list []located
	for age, r := range records {
		if len(r.endpoints) == 0 || familyOf(r.endpoints[0].Addr) != f {
			continue
		}
		for i := range r.endpoints {
			list = append(list, located{&r.endpoints[i], r.key, age})
		}
	}
	slices.SortFunc(list, func(a, b located) int {
		return cmp.Or(a.Addr.Compare(b.Addr), cmp.Compare(a.age, b.age))
	})
	endpoints := make([]Endpoint, len(list))
	owners := make([]key, len(list))
	for i, l := range list {
		endpoints[i], owners[i] = *l.Endpoint, l.slice
	}
	return endpoints, owners
}

// zoneOf returns the zone that the newest slice gives to a node, "" if none
// does. The controller copies it from the Node's label.
func zoneOf(records []*record, node string) string {
	if node == "" {
		return ""
	}
	for _, r := range slices.Backward(records) {
		for i := range r.endpoints {
			if e := &r.endpoints[i]; e.Node == node && e.Zone != "" {
				return e.Zone
			}
		}
	}
	return ""
}

// losesLocal reports whether a ready endpoint of the node is no longer one. A
// nil record is an empty one.
func losesLocal(before, after *record, node string) bool {
	if before == nil || node == "" {
		return false
	}
	for i := range before.endpoints {
		if e := &before.endpoints[i]; e.Ready && e.Node == node && !after.readyAt(e) {
			return true
		}
	}
	return false
}

// readyAt reports whether the record holds e's address as ready.
func (r *record) readyAt(e *Endpoint) bool {
	if r == nil {
		return false
	}
	return slices.ContainsFunc(r.endpoints, func(o Endpoint) bool {
		return o.Ready && o.Asked() == e.Asked()
	})
}
