package guard_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/nodens-dns/nodens/deploy/guard"
)

// source is what a guard follows by itself: it tells tables that a test gives it.
type source struct {
	mu      sync.Mutex
	calls   int
	publish func(guard.Table) // nil while nobody follows
	fails   error
}

func (s *source) follow(ctx context.Context, publish func(guard.Table)) error {
	s.mu.Lock()
	s.calls++
	s.publish = publish
	fails := s.fails
	s.mu.Unlock()
	if fails == nil {
		<-ctx.Done()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.publish = nil
	return fails
}

// followed is how often it was, and what publishes now.
func (s *source) followed() (calls int, publish func(guard.Table)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls, s.publish
}

func (h *house) fallsBackTo(server string) bool { return strings.Contains(h.host.String(), server) }

func (h *house) logged(text string) (times int) {
	for _, line := range h.logs.All() {
		if strings.Contains(line.Message, text) {
			times++
		}
	}
	return times
}

// TestGuardFollows: while no serve tells the servers of the fallback the guard finds
// them itself, and not otherwise.
func TestGuardFollows(t *testing.T) {
	var from source
	h := newHouse(t, t.TempDir(), func(c *guard.Config) { c.Follow = from.follow })
	var publish func(guard.Table)
	followed := func(times int) func() bool {
		return func() bool {
			calls, now := from.followed()
			publish = now
			return calls == times && now != nil && h.Status().Following
		}
	}
	eventually(t, "nobody tells them at the start", wide, followed(1))
	publish(tableOf("10.1.0.1:53"))
	eventually(t, "its first table", wide, func() bool { return h.fallsBackTo("10.1.0.1") })

	// A serve that has only what it remembers knows no better.
	first, end := h.serve(t, "one")
	remembered := tableOf("10.1.0.9:53")
	remembered.Provisional = true
	first.Publish(remembered)
	first.Sockets(sockets(), nil)
	eventually(t, "serve is connected", wide, func() bool { s := h.Status().Sessions; return len(s) == 1 && s[0].Sockets == 1 })
	publish(tableOf("10.1.0.2:53"))
	eventually(t, "a change", wide, func() bool { return h.fallsBackTo("10.1.0.2") })
	if h.fallsBackTo("10.1.0.9") {
		t.Errorf("what serve remembers is in the place of what is:\n%s", h.host)
	}

	first.Publish(tableOf("10.1.0.3:53"))
	eventually(t, "what serve's source tells", wide, func() bool { return h.fallsBackTo("10.1.0.3") })
	old := publish
	eventually(t, "serve tells them, and the guard does not follow", wide, func() bool {
		_, now := from.followed()
		return now == nil && !h.Status().Following
	})
	old(tableOf("10.1.0.4:53")) // too late
	if h.fallsBackTo("10.1.0.4") {
		t.Error("who does not follow any more is heard")
	}

	end()
	eventually(t, "serve is gone", wide, followed(2))
	publish(guard.Table{})
	publish(tableOf("10.1.0.5:53"))
	eventually(t, "a change while serve is away", wide, func() bool { return h.fallsBackTo("10.1.0.5") })

	// One that leaves tells no more.
	second, _ := h.serve(t, "two")
	second.Publish(tableOf("10.1.0.6:53"))
	eventually(t, "the next serve", wide, func() bool { return h.fallsBackTo("10.1.0.6") && !h.Status().Following })
	patience, cancel := context.WithTimeout(t.Context(), wide)
	defer cancel()
	second.Leave(patience)
	eventually(t, "it leaves", wide, followed(3))
	h.stop()
	if _, now := from.followed(); now != nil {
		t.Error("it goes on after the end of the guard")
	}
}

// TestGuardCannotFollow: then the last that were told stay, and it says so once.
func TestGuardCannotFollow(t *testing.T) {
	from := source{fails: errors.New("no token")}
	h := newHouse(t, t.TempDir(), func(c *guard.Config) { c.Follow = from.follow })
	const says = "the guard cannot follow the servers of the fallback itself"
	eventually(t, "it is told", wide, func() bool { return h.logged(says) > 0 })
	client, end := h.serve(t, "one")
	remembered := tableOf("10.1.0.1:53")
	remembered.Provisional = true
	client.Publish(remembered)
	eventually(t, "what serve remembers, since nobody knows better", wide, func() bool { return h.fallsBackTo("10.1.0.1") })
	end()
	eventually(t, "serve is gone", wide, func() bool { s := h.Status(); return len(s.Sessions) == 0 && !s.Following })
	if !h.fallsBackTo("10.1.0.1") {
		t.Errorf("the last that were told are gone:\n%s", h.host)
	}
	if n := h.logged(says); n != 1 {
		t.Errorf("it is told %d times", n)
	}
}

// Without Follow a guard never tries, and the end of serve changes no server.
func TestGuardDoesNotFollow(t *testing.T) {
	h := newHouse(t, t.TempDir(), nil)
	client, end := h.serve(t, "one")
	client.Publish(tableOf("10.1.0.1:53"))
	eventually(t, "what serve tells", wide, func() bool { return h.fallsBackTo("10.1.0.1") })
	end()
	rounds := h.Status().Counts.Rounds
	eventually(t, "time passes", wide, func() bool { return h.Status().Counts.Rounds >= rounds+3 })
	if h.Status().Following || !h.fallsBackTo("10.1.0.1") {
		t.Errorf("following %v:\n%s", h.Status().Following, h.host)
	}
}
