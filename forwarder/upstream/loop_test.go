package upstream_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/upstream"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// TestLoop has a server forward everything to us.
func TestLoop(t *testing.T) {
	var g atomic.Pointer[upstream.Group]
	var news atomic.Int32
	looping := serve(t, func(r *request) {
		q, _ := wire.ParseQuery(r.msg)
		if !upstream.IsLoopName(q.Name()) {
			r.reply(t, dns.RcodeSuccess)
			return
		}
		server, isNew, found := g.Load().Looped(q.Name())
		if !found || server.Port() == 0 {
			t.Errorf("%v found: %v", server, found)
		}
		if isNew {
			news.Add(1)
		}
		r.reply(t, dns.RcodeServerFailure)
	})
	clk := newClock()
	cfg := external
	cfg.LoopZone, cfg.Now = "loop.test", clk.now
	made := group(t, cfg, plain(looping))
	g.Store(made)
	mustAnswer(t, made, "a.test", wire.NoError)
	waitFor(t, "the loop is found", func() bool { return made.Status().Targets[0].Looped })
	if _, _, err := ask(t, made, "b.test"); !errors.Is(err, upstream.ErrNoTargets) {
		t.Errorf("error %v", err)
	}
	if n := news.Load(); n != 1 || made.Status().Looped != 1 {
		t.Errorf("new %d times, %d names came back", n, made.Status().Looped)
	}
	good := serve(t, good(t))
	made.Update(plain(looping, good))
	waitFor(t, "the other is in use", func() bool { return !made.Status().Targets[1].Out })
	mustAnswer(t, made, "c.test", wire.NoError)
	clk.move(2 * 60e9)
	mustAnswer(t, made, "d.test", wire.NoError)
	if made.Status().Targets[0].Looped {
		t.Error("barred for ever")
	}
}

// TestLoopNames asks for names that others may ask, too.
func TestLoopNames(t *testing.T) {
	s := serve(t, good(t))
	cfg := external
	cfg.LoopZone = "."
	g := group(t, cfg, plain(s))
	waitFor(t, "a name is asked", func() bool { return s.count() == 2 || s.count() == 1 })
	var names []string
	for _, name := range asked(t, s, false) {
		names = append(names, name)
		q := query(t, name)
		if !upstream.IsLoopName(q.Name()) || len(name) != 34 {
			t.Errorf("asked for %s", name)
		}
		if _, isNew, found := g.Looped(q.Name()); !isNew || !found {
			t.Errorf("%s: new %v, found %v", name, isNew, found)
		}
	}
	for _, name := range []string{".", "a.test", "0123456789abcdef.0123456789abcdef.test", names[0] + "test."} {
		if _, _, found := g.Looped(query(t, name).Name()); found {
			t.Errorf("%s was found", name)
		}
	}
}
