package listener

import (
	"net/netip"
	"testing"
	"time"
)

// floor is connections on an admission with room for three, two of them of one
// client, whose names are letters: a, b and c are clients, a1 a connection.
type floor struct {
	*admission
	now   time.Duration
	conns map[string]*conn
}

func (f *floor) enter(name string) (evicted string) {
	host := netip.AddrFrom4([4]byte{10, 0, 0, name[0]})
	f.conns[name] = &conn{from: Peer{Client: netip.AddrPortFrom(host, 1)}}
	gone, _ := f.admission.enter(f.conns[name], f.now)
	return f.name(gone)
}

func (f *floor) name(of *conn) string {
	for name, c := range f.conns {
		if c == of {
			return name
		}
	}
	return ""
}

func (f *floor) begin(name string)  { f.admission.begin(&f.conns[name].seat, f.now) }
func (f *floor) finish(name string) { f.admission.finish(&f.conns[name].seat) }
func (f *floor) leave(name string)  { f.admission.leave(&f.conns[name].seat) }
func (f *floor) asks(name string)   { f.begin(name); f.finish(name) }

func TestWhoIsEvicted(t *testing.T) {
	for name, c := range map[string]struct {
		do    func(f *floor)
		enter string
		want  string
	}{
		"nobody while there is room": {func(f *floor) { f.enter("a1"); f.enter("b1") }, "c1", ""},
		"nobody after one left":      {func(f *floor) { f.enter("a1"); f.enter("b1"); f.enter("c1"); f.leave("b1") }, "d1", ""},
		"the silent one before idle ones": {func(f *floor) {
			f.enter("a1")
			f.enter("b1")
			f.enter("c1")
			f.asks("a1")
			f.asks("c1")
			f.now += youth
		}, "d1", "b1"},
		"an idle one before a silent one that just opened": {func(f *floor) {
			f.enter("a1")
			f.asks("a1")
			f.now += time.Hour
			f.enter("b1")
			f.enter("c1")
			f.now += youth - 1
		}, "d1", "a1"},
		"the silent one that waits longest":                        {func(f *floor) { f.enter("b1"); f.enter("a1"); f.enter("c1"); f.now += youth }, "d1", "b1"},
		"the silent one that waits longest though all just opened": {func(f *floor) { f.enter("c1"); f.enter("a1"); f.enter("b1") }, "d1", "c1"},
		"the idle one that asked last of all": {func(f *floor) {
			for _, name := range []string{"a1", "b1", "c1", "a1"} {
				if f.conns[name] == nil {
					f.enter(name)
				}
				f.asks(name)
			}
		}, "d1", "b1"},
		"an idle one before busy ones": {func(f *floor) {
			f.enter("a1")
			f.begin("a1")
			f.enter("b1")
			f.asks("b1")
			f.enter("c1")
			f.begin("c1")
			f.now += time.Hour
		}, "d1", "b1"},
		"busy until the last of its queries is answered": {func(f *floor) {
			f.enter("a1")
			f.begin("a1")
			f.begin("a1")
			f.finish("a1")
			f.enter("b1")
			f.asks("b1")
			f.enter("c1")
			f.asks("c1")
		}, "d1", "b1"},
		"a busy one that asked before a silent one opened": {func(f *floor) {
			f.enter("a1")
			f.begin("a1")
			f.enter("b1")
			f.begin("b1")
			f.now++
			f.enter("c1")
			f.now++
			f.begin("a1") // asks again
		}, "d1", "b1"},
		"a silent one that opened before a busy one asked": {func(f *floor) {
			f.enter("a1")
			f.enter("b1")
			f.enter("c1")
			f.begin("a1")
			f.begin("c1")
			f.now += youth - 1
			f.begin("a1")
			f.begin("c1")
		}, "d1", "b1"},
		"the busy one that takes longest if all are busy": {func(f *floor) {
			for _, name := range []string{"b1", "a1", "c1"} {
				f.enter(name)
				f.begin(name)
			}
		}, "d1", "b1"},
		"one of its client if that has too many": {func(f *floor) {
			f.enter("a1")
			f.enter("b1")
			f.begin("b1")
			f.enter("b2")
			f.asks("b2")
			f.now += time.Hour
		}, "b3", "b2"},
		"one of its client though it is busy": {func(f *floor) {
			f.enter("b1")
			f.begin("b1")
			f.enter("a1")
			f.enter("b2")
			f.begin("b2")
		}, "b3", "b1"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &floor{admission: newAdmission(3, 2), conns: map[string]*conn{}}
			c.do(f)
			if got := f.enter(c.enter); got != c.want {
				t.Errorf("%s made %q go, want %q", c.enter, got, c.want)
			}
			if f.inUse() > 3 {
				t.Errorf("%d are open", f.inUse())
			}
			expectEmpty(t, f)
		})
	}
}

// expectEmpty ends everything that is open or was evicted.
func expectEmpty(t *testing.T, f *floor) {
	t.Helper()
	for name := range f.conns {
		f.asks(name) // what an evicted one still does changes nothing
		f.leave(name)
		f.leave(name)
	}
	if f.inUse() != 0 || len(f.clients) != 0 || len(f.admission.conns()) != 0 {
		t.Errorf("after all left %d are open of %d clients", f.inUse(), len(f.clients))
	}
}

// For want of file descriptors no query is lost.
func TestWhoIsEvictedToRelieve(t *testing.T) {
	f := &floor{admission: newAdmission(9, 9), conns: map[string]*conn{}}
	for _, name := range []string{"a1", "b1", "c1"} {
		f.enter(name)
	}
	f.asks("a1")
	f.begin("b1")
	f.now += youth
	f.enter("d1")
	for _, want := range []string{"c1", "a1", ""} {
		gone, _ := f.relieve(f.now)
		if got := f.name(gone); got != want {
			t.Errorf("%q went, want %q", got, want)
		}
	}
	expectEmpty(t, f)
}
