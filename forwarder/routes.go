package forwarder

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/nodens-dns/nodens/forwarder/cache"
	"github.com/nodens-dns/nodens/forwarder/rules"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// Group asks a route's servers. *upstream.Group is one.
type Group interface {
	// Exchange asks q's question and returns the reply, made of dst's memory
	// where it is large enough. It returns within the group's own budget of
	// time; ctx ends with the process, but for the second question of DNS64,
	// which has less time than the budget when the first got no answer.
	Exchange(ctx context.Context, dst []byte, q *wire.Query) (wire.Reply, error)
}

// Route says who answers the names below some zones.
type Route struct {
	// Zones are names with or without a final dot, "." for all the rest. The
	// longest zone that a name is in, on label boundaries, decides.
	Zones []string
	// Group asks the servers.
	Group Group
	// Policy says what is kept.
	Policy cache.Policy
	// Rules change what the names are answered with. Answers that were kept under
	// rules that rewrite names or make addresses must not outlive them. Default
	// none.
	Rules *rules.Set
	// Search spares questions that clients ask because of their search lists.
	Search Search
	// MaxInFlight bounds the questions being asked at one time, at least 1.
	// Above it clients get a stale answer or SERVFAIL at once: one route whose
	// servers are dead must not starve the others. Half as many more may wait for
	// what others have asked already. While no server answers anything, an eighth
	// is left: more would only hold memory for clients who get nothing for it.
	MaxInFlight int
}

// zone is one line of the routing table.
type zone struct {
	name  string // as text with a final dot, for labels
	size  int    // of the name in wire form, in bytes
	index uint8
	route *route // nil when answered locally
	local localKind
}

// route is a Route at work.
type route struct {
	Route
	search   *search // nil without a domain
	inFlight atomic.Int64
	waiting  atomic.Int64   // followers
	shed     *atomic.Uint64 // refused because MaxInFlight were in flight
	// unanswered counts the questions in a row that no server answered.
	unanswered atomic.Uint32
}

// darkAfter is how many questions in a row without an answer say that no server
// is left. A few may be names that only seem to be the servers' fault.
const darkAfter = 8

// heard takes note of whether a question was answered.
func (r *route) heard(answered bool) {
	switch {
	case !answered:
		r.unanswered.Add(1)
	case r.unanswered.Load() != 0: // not written for every answer
		r.unanswered.Store(0)
	}
}

// darkShare is the part of MaxInFlight that a route in the dark has: enough to see
// at once that a server is back.
const darkShare = 8

// dark reports whether it is in vain to have clients wait for the servers.
func (r *route) dark() bool { return r.unanswered.Load() >= darkAfter }

// mayFly is how many questions the route may have in flight.
func (r *route) mayFly() int64 {
	if r.dark() {
		return max(1, int64(r.MaxInFlight)/darkShare)
	}
	return int64(r.MaxInFlight)
}

// busy reports whether a part of what may be in flight, of which share make the
// whole, is.
func (r *route) busy(share int64) bool {
	return r.inFlight.Load() >= max(1, r.mayFly()/share)
}

// mayWait is how many followers the route may have.
func (r *route) mayWait() int64 { return max(1, int64(r.MaxInFlight)/2) }

// table finds the zone of a name. It never changes once made.
type table struct {
	zones  []*zone
	byName map[string]*zone // folded wire form
	none   *zone            // for names in no zone, and messages without one
	routes []*route
	ruled  bool // some route has rules
}

// maxZones keeps zone indexes within a byte.
const maxZones = 250

func newTable(routes []Route, local []localZone) (*table, error) {
	t := &table{byName: make(map[string]*zone)}
	var errs []error
	for _, l := range local {
		errs = append(errs, t.add(l.name, &zone{local: l.kind}))
	}
	for i := range routes {
		r := &route{Route: routes[i]}
		if len(r.Zones) == 0 || r.Group == nil || r.MaxInFlight < 1 {
			errs = append(errs, fmt.Errorf("routes: route %d needs zones, a group and MaxInFlight", i))
			continue
		}
		s, err := newSearch(r.Search, r.Rules != nil && r.Rules.Renames())
		r.search, errs = s, append(errs, err)
		if r.Rules != nil {
			r.Group, t.ruled = r.Rules.Over(r.Group), true
		}
		t.routes = append(t.routes, r)
		for _, name := range r.Zones {
			errs = append(errs, t.add(name, &zone{route: r}))
		}
	}
	if len(t.zones) > maxZones {
		errs = append(errs, fmt.Errorf("routes: %d zones are too many; name at most %d", len(t.zones), maxZones))
	}
	t.none = &zone{name: noZone, index: uint8(min(len(t.zones), maxZones)), local: localNone}
	t.zones = append(t.zones, t.none)
	return t, errors.Join(errs...)
}

// noZone is the label of what belongs to no zone, as CoreDNS writes it.
const noZone = "dropped"

func (t *table) add(name string, z *zone) error {
	key, ok := wire.AppendName(nil, strings.ToLower(name))
	if !ok {
		return fmt.Errorf("routes: %q is not a domain name; write labels of 1 to 63 bytes with dots between", name)
	}
	if old := t.byName[string(key)]; old != nil {
		if old.local != localNone {
			if z.route != nil || z.local != localNone {
				old.route, old.local = z.route, z.local // one's own replaces the default
			}
			return nil
		}
		return fmt.Errorf("routes: zone %q is named twice; keep one", name)
	}
	z.name = string(wire.AppendText(nil, key))
	z.size, z.index = len(key), uint8(min(len(t.zones), maxZones))
	t.byName[string(key)] = z
	t.zones = append(t.zones, z)
	return nil
}

// routeIndex is the place of a zone's route in Config.Routes, -1 without one.
func (t *table) routeIndex(z *zone) int {
	for i, r := range t.routes {
		if r == z.route {
			return i
		}
	}
	return -1
}

// find returns the zone of a folded name. DS records live in the parent zone
// (RFC 4035 section 3.1.4.1), so a question for them is routed by the parent's
// name.
func (t *table) find(name []byte, qtype wire.Type) *zone {
	if qtype == wire.TypeDS && len(name) > 1 {
		name = name[1+name[0]:]
	}
	for {
		if z := t.byName[string(name)]; z != nil {
			return z
		}
		if len(name) <= 1 {
			return t.none
		}
		name = name[1+name[0]:]
	}
}
