package forwarder

import (
	"bytes"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nodens-dns/nodens/forwarder/access"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

const (
	// maxTaps bounds who may watch at one time.
	maxTaps = 4
	// tapEvents is how many events wait for one who watches; more are dropped
	// and counted.
	tapEvents = 256
)

// Event is one query that was answered, or turned away.
type Event struct {
	Client netip.AddrPort
	Proto  Proto
	Type   wire.Type
	Class  wire.Class
	// Source and RCode are of the reply; RCode is NoReply without one.
	Source Source
	RCode  wire.RCode
	// Ruling says whether the query was turned away.
	Ruling access.Ruling
	// Route is the index of the route, -1 for none; Via is wire.Reply.Via of the
	// server's reply, also when that came before.
	Route int
	Via   uint8
	// At is when it was answered, on Config.Now's clock, and Took the time since
	// it was read with its batch.
	At, Took time.Duration

	size uint8
	name [wire.MaxName]byte
}

// NoReply stands for the code of a reply that was not given.
const NoReply = wire.RCode(1<<16 - 1)

// Name is the question's name in wire form, in the client's spelling.
func (e *Event) Name() []byte { return e.name[:e.size] }

// Filter says which events are wanted. The zero value wants all.
type Filter struct {
	// Below is a folded name in wire form: it and what is below it.
	Below []byte
	// Clients is where a client's address lies.
	Clients netip.Prefix
	// Type of the question.
	Type wire.Type
	// Sources and RCodes list what is wanted; empty for all.
	Sources []Source
	RCodes  []wire.RCode
	// Slower is the least Event.Took.
	Slower time.Duration
	// Every takes one of so many that are wanted. 0 and 1 take all.
	Every uint64
	// Routes are other filters for the routes of these indexes, in place of this
	// one; a nil one wants nothing. Theirs are not looked at.
	Routes map[int]*Filter
}

// matches reports whether an event is wanted.
func (f *Filter) matches(e *Event, folded []byte) bool {
	return (f.Type == 0 || f.Type == e.Type) &&
		e.Took >= f.Slower &&
		(!f.Clients.IsValid() || f.Clients.Contains(e.Client.Addr())) &&
		(len(f.Sources) == 0 || slices.Contains(f.Sources, e.Source)) &&
		(len(f.RCodes) == 0 || slices.Contains(f.RCodes, e.RCode)) &&
		(len(f.Below) == 0 || below(folded, f.Below))
}

// below reports whether name is zone or lies below it; both are folded and in
// wire form.
func below(name, zone []byte) bool {
	for len(name) > len(zone) {
		name = name[1+name[0]:]
	}
	return bytes.Equal(name, zone)
}

// Taps are those who watch the queries of a Forwarder, or of several that
// follow each other. While nobody does, a query costs one load. The zero value
// is ready.
type Taps struct {
	mu   sync.Mutex
	list atomic.Pointer[[]*Tap] // nil while nobody watches
}

// Tap is one who watches.
type Tap struct {
	taps    *Taps
	rest    sample
	routes  map[int]*sample
	events  chan Event
	dropped atomic.Uint64
}

// sample takes one of so many events that a filter wants.
type sample struct {
	filter *Filter // nil: none is wanted
	wanted atomic.Uint64
}

// takes reports whether an event is wanted, and the one of so many.
func (t *Tap) takes(e *Event, folded []byte) bool {
	s := t.routes[e.Route]
	if s == nil {
		s = &t.rest
	}
	f := s.filter
	return f != nil && f.matches(e, folded) && (f.Every <= 1 || s.wanted.Add(1)%f.Every == 0)
}

// Open begins to watch. Whoever does ends it with Close. It fails when too many
// watch already.
func (t *Taps) Open(filter Filter) (*Tap, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []*Tap
	if old := t.list.Load(); old != nil {
		list = slices.Clone(*old)
	}
	if len(list) >= maxTaps {
		return nil, errors.New("too many watch already; end one of them")
	}
	tap := &Tap{taps: t, rest: sample{filter: &filter}, routes: make(map[int]*sample, len(filter.Routes)), events: make(chan Event, tapEvents)}
	for route, other := range filter.Routes {
		tap.routes[route] = &sample{filter: other}
	}
	list = append(list, tap)
	t.list.Store(&list)
	return tap, nil
}

// Watched is how many watch now.
func (t *Taps) Watched() int {
	if list := t.list.Load(); list != nil {
		return len(*list)
	}
	return 0
}

// Events are what came to pass. The channel is never closed.
func (t *Tap) Events() <-chan Event { return t.events }

// Dropped is how many events found no room in Events.
func (t *Tap) Dropped() uint64 { return t.dropped.Load() }

// Close ends watching.
func (t *Tap) Close() {
	t.taps.mu.Lock()
	defer t.taps.mu.Unlock()
	list := slices.DeleteFunc(slices.Clone(*t.taps.list.Load()), func(o *Tap) bool { return o == t })
	if len(list) == 0 {
		t.taps.list.Store(nil)
		return
	}
	t.taps.list.Store(&list)
}

// watch shows a query and its answer to those who watch.
func (f *Forwarder) watch(q *question, zone uint8, a answer, rcode wire.RCode) {
	if list := f.taps.list.Load(); list != nil {
		f.show(*list, q, zone, a, rcode)
	}
}

func (f *Forwarder) show(list []*Tap, q *question, zone uint8, a answer, rcode wire.RCode) {
	now := f.now()
	e := Event{
		At: now, Client: q.from.Client, Proto: q.from.Proto, Type: q.Type, Class: q.Class, Source: a.source, RCode: rcode,
		Ruling: q.ruling, Route: f.table.routeIndex(f.table.zones[zone]), Took: max(0, now-q.from.Received),
	}
	if a.entry != nil {
		e.Via = a.entry.Via()
	}
	if q.HasQuestion() {
		e.size = uint8(copy(e.name[:], q.Name()))
	}
	var folded []byte
	if q.keyLen > 0 {
		folded = q.folded()
	}
	for _, t := range list {
		if !t.takes(&e, folded) {
			continue
		}
		select {
		case t.events <- e:
		default:
			t.dropped.Add(1)
		}
	}
}
