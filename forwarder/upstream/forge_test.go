package upstream_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/upstream"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// forgeries are what may arrive instead of a reply.
var forgeries = map[string]struct {
	make func(t *testing.T, query []byte) []byte
	kind upstream.Ignored
}{
	"11 random bytes": {func(*testing.T, []byte) []byte {
		return []byte("eleven byte")
	}, upstream.IgnoredShort},
	"nothing": {func(*testing.T, []byte) []byte {
		return []byte{}
	}, upstream.IgnoredShort},
	"another ID": {func(t *testing.T, q []byte) []byte {
		msg := makeReply(t, q, 0)
		msg[0]++
		return msg
	}, upstream.IgnoredWrongID},
	"another name": {func(t *testing.T, q []byte) []byte {
		return bytes.Replace(makeReply(t, q, 0), []byte("name"), []byte("nama"), 1)
	}, upstream.IgnoredWrongQuestion},
	"another type": {func(t *testing.T, q []byte) []byte {
		return makeReply(t, q, 0, func(m *dns.Msg) { m.Question[0].Qtype = dns.TypeAAAA })
	}, upstream.IgnoredWrongQuestion},
	"no question": {func(t *testing.T, q []byte) []byte {
		return makeReply(t, q, 0, func(m *dns.Msg) { m.Question = nil })
	}, upstream.IgnoredWrongQuestion},
	"our own query": {func(_ *testing.T, q []byte) []byte {
		return q
	}, upstream.IgnoredNotResponse},
	"cut off": {func(t *testing.T, q []byte) []byte {
		msg := makeReply(t, q, 0)
		return msg[:len(msg)-2]
	}, upstream.IgnoredUnparsable},
	"an address of 3 bytes": {func(t *testing.T, q []byte) []byte {
		msg := makeReply(t, q, 0)
		msg[len(msg)-5] = 3
		return msg[:len(msg)-1]
	}, upstream.IgnoredUnparsable},
}

func TestForgeriesAreIgnored(t *testing.T) {
	for name, f := range forgeries {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(r *request) {
				for range 3 {
					r.send(f.make(t, r.msg))
				}
				time.Sleep(50 * time.Millisecond)
				r.reply(t, dns.RcodeSuccess)
			})
			g := group(t, inOrder, plain(s))
			r, _ := mustAnswer(t, g, "name.test", wire.NoError)
			if r.Count(wire.Answer) != 1 {
				t.Errorf("%d answers", r.Count(wire.Answer))
			}
			if n := s.count(); n != 1 {
				t.Errorf("the server was asked %d times", n)
			}
			ts := g.Status().Targets[0]
			if ts.Ignored[f.kind] != 3 {
				t.Errorf("ignored %v", ts.Ignored)
			}
			if ts.Out {
				t.Error("a forgery made the target suspect")
			}
		})
	}
}

// TestMalformedRepliesEndEarly has every reply malformed: it is no use to wait
// for the end of the budget.
func TestMalformedRepliesEndEarly(t *testing.T) {
	bad := func(r *request) { r.send(forgeries["cut off"].make(t, r.msg)) }
	a, b := serve(t, bad), serve(t, bad)
	cfg := inOrder
	cfg.RetryMin, cfg.RetryMax = 50*time.Millisecond, 50*time.Millisecond
	g := group(t, cfg, plain(a, b))
	_, took, err := ask(t, g, "name.test")
	if err == nil || took > soon {
		t.Errorf("error %v after %v", err, took)
	}
	if a.count() > 2 || b.count() > 2 || a.count()+b.count() != 3 {
		t.Errorf("asked %d and %d times", a.count(), b.count())
	}
}

// TestLateReplyOnASharedSocket has the reply to one query come while another is
// in flight on the same socket.
func TestLateReplyOnASharedSocket(t *testing.T) {
	var mu sync.Mutex
	var first *request
	s := serve(t, func(r *request) {
		mu.Lock()
		defer mu.Unlock()
		if first == nil {
			first = r
			return
		}
		first.reply(t, dns.RcodeSuccess)
		time.Sleep(20 * time.Millisecond)
		r.reply(t, dns.RcodeNameError)
	})
	cfg := inOrder
	cfg.Sockets, cfg.Attempts = 1, 1
	g := group(t, cfg, plain(s))
	askInVain(t, g, s, "first.test")
	mustAnswer(t, g, "second.test", wire.NXDomain)
	ts := g.Status().Targets[0]
	if ts.Ignored[upstream.IgnoredLate] != 1 {
		t.Errorf("ignored %v", ts.Ignored)
	}
	if seen := s.requests(false); seen[0].from != seen[1].from {
		t.Error("the queries did not share a socket")
	}
}

// askInVain asks, and gives the query up once the server has it.
func askInVain(t *testing.T, g *upstream.Group, s *server, name string) {
	t.Helper()
	given, giveUp := context.WithCancel(t.Context())
	go func() {
		for s.count() == 0 {
			time.Sleep(time.Millisecond)
		}
		giveUp()
	}()
	if _, err := g.Exchange(given, nil, query(t, name)); !errors.Is(err, context.Canceled) {
		t.Fatalf("%s: %v", name, err)
	}
}

// TestForgedLate has forgeries come under the ID of a query that was given up:
// they are not its late reply.
func TestForgedLate(t *testing.T) {
	gone := make(chan struct{})
	s := serve(t, func(r *request) {
		if r.number == 0 {
			<-gone
			r.send(forgeries["another type"].make(t, r.msg))
			r.send(bytes.Replace(makeReply(t, r.msg, 0), []byte("name"), []byte("nama"), 1))
			r.send(makeReply(t, r.msg, 0)[:14])
			return
		}
		r.reply(t, dns.RcodeSuccess)
	})
	cfg := inOrder
	cfg.Sockets, cfg.Attempts = 1, 1
	g := group(t, cfg, plain(s))
	askInVain(t, g, s, "name.test")
	close(gone)
	wrong := func() uint64 { return g.Status().Targets[0].Ignored[upstream.IgnoredWrongQuestion] }
	waitFor(t, "all are ignored", func() bool { return wrong() == 3 })
	if ts := g.Status().Targets[0]; ts.Ignored[upstream.IgnoredLate] != 0 || ts.SRTT != 0 {
		t.Errorf("ignored %v, round trip %v", ts.Ignored, ts.SRTT)
	}
}

// TestIDs looks at the IDs and ports of many queries.
func TestIDs(t *testing.T) {
	const queries = 3000
	s := serve(t, good(t))
	g := group(t, upstream.Config{Sockets: 8, SocketQueries: 100}, plain(s))
	q := query(t, "a.test")
	for range queries {
		if _, err := g.Exchange(t.Context(), nil, q); err != nil {
			t.Fatal(err)
		}
	}
	ids, ports := map[uint16]int{}, map[uint16]int{}
	var high [16]int
	steps := map[uint16]int{}
	var last uint16
	for _, r := range s.requests(false) {
		id := r.id()
		ids[id]++
		steps[id-last]++
		last = id
		high[id>>12]++
		ports[r.from.Port()]++
	}
	// Of 3000 random IDs about 2932 are different.
	if len(ids) < 2850 || len(steps) < 2850 {
		t.Errorf("%d different IDs, %d different steps, of %d", len(ids), len(steps), queries)
	}
	for i, n := range high { // 187 each, standard deviation 13
		if n < 100 || n > 280 {
			t.Errorf("%d IDs begin with %x", n, i)
		}
	}
	if len(ports) < queries/100 {
		t.Errorf("%d ports", len(ports))
	}
	for port, n := range ports {
		if n > 100 {
			t.Errorf("port %d was used %d times", port, n)
		}
	}
	waitFor(t, "replaced sockets close", func() bool { return g.Status().Open <= 8 })
}

func TestSocketsAge(t *testing.T) {
	clk := newClock()
	s := serve(t, good(t))
	g := group(t, upstream.Config{Sockets: 1, Now: clk.now}, plain(s))
	for range 3 {
		mustAnswer(t, g, "a.test", wire.NoError)
		mustAnswer(t, g, "b.test", wire.NoError)
		clk.move(40 * time.Second)
	}
	ports := map[uint16]int{}
	for _, r := range s.requests(false) {
		ports[r.from.Port()]++
	}
	if len(ports) != 3 {
		t.Errorf("ports %v", ports)
	}
}

// TestIdleSocketsClose has nobody look at the sockets after the query.
func TestIdleSocketsClose(t *testing.T) {
	g := group(t, upstream.Config{SocketAge: 50 * time.Millisecond}, plain(serve(t, good(t))))
	mustAnswer(t, g, "a.test", wire.NoError)
	waitFor(t, "the socket closes", func() bool { return g.Status().Open == 0 })
	mustAnswer(t, g, "b.test", wire.NoError)
}

// TestOldSocketAnswers has a socket replaced while a query is in flight on it.
func TestOldSocketAnswers(t *testing.T) {
	clk := newClock()
	entered, go2 := make(chan struct{}), make(chan struct{})
	s := serve(t, func(r *request) {
		if r.number == 0 {
			close(entered)
			<-go2
		}
		r.reply(t, dns.RcodeSuccess)
	})
	g := group(t, upstream.Config{Sockets: 1, Now: clk.now, Budget: time.Hour, Attempts: 1}, plain(s))
	done := make(chan struct{})
	go func() {
		defer close(done)
		mustAnswer(t, g, "first.test", wire.NoError)
	}()
	<-entered
	clk.move(time.Minute)
	mustAnswer(t, g, "second.test", wire.NoError)
	close(go2)
	<-done
	waitFor(t, "the old socket closes", func() bool { return g.Status().Open == 1 })
}

func TestOpenIsBounded(t *testing.T) {
	s := serve(t, good(t))
	g := group(t, upstream.Config{Sockets: 32, MaxOpen: 3}, plain(s))
	for range 100 {
		mustAnswer(t, g, "a.test", wire.NoError)
		if open := g.Status().Open; open > 3 {
			t.Fatalf("%d open", open)
		}
	}
}

func TestLargeReplyOverUDP(t *testing.T) {
	s := serve(t, func(r *request) {
		r.reply(t, 0, func(m *dns.Msg) {
			for range 400 {
				m.Answer = append(m.Answer, m.Answer[0])
			}
		})
	})
	g := group(t, upstream.Config{}, plain(s))
	r, _ := mustAnswer(t, g, "a.test", wire.NoError)
	if r.Count(wire.Answer) != 401 || len(r.Msg) < 6000 {
		t.Errorf("%d answers in %d bytes", r.Count(wire.Answer), len(r.Msg))
	}
}
