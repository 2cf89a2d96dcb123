package upstream_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/upstream"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// tiered puts one server into each tier, nearest first.
func tiered(servers ...*server) upstream.Table {
	var table upstream.Table
	for i, s := range servers {
		table.Tiers[i] = []upstream.Member{s.member()}
	}
	return table
}

// served is how many replies came from each tier while n queries were asked.
func served(t *testing.T, g *upstream.Group, n int) (tiers [3]uint64) {
	t.Helper()
	before := g.Status().Served
	for i := range n {
		mustAnswer(t, g, nameOf(i), wire.NoError)
	}
	after := g.Status().Served
	for i := range tiers {
		tiers[i] = after[i] - before[i]
	}
	return tiers
}

// TestReturnAfterHardError has the local server restart, and looks at the way back.
func TestReturnAfterHardError(t *testing.T) {
	local, zone := serve(t, good(t)), serve(t, good(t))
	g := group(t, upstream.Config{}, tiered(local, zone))
	if n := served(t, g, 10); n != [3]uint64{10, 0, 0} {
		t.Fatalf("served %v", n)
	}
	local.stop()
	if n := served(t, g, 10); n != [3]uint64{0, 10, 0} {
		t.Fatalf("served %v while the local server is gone", n)
	}
	st := g.Status()
	if ts := st.Targets[0]; !ts.Out || ts.Share != 0 || ts.Ejections != 1 || st.Ejections != [4]uint64{1} {
		t.Errorf("target %+v, ejections %v", ts, st.Ejections)
	}
	waitFor(t, "a probe fails", func() bool { return g.Status().Probes > 0 })
	back := serveAt(t, local.addr, good(t))
	waitFor(t, "probes bring it back", func() bool { return !g.Status().Targets[0].Out })
	if n := back.count(); n < 2 {
		t.Errorf("back after %d good probes", n)
	}
	if share := g.Status().Targets[0].Share; share < 0.1 || share > 0.9 {
		t.Errorf("its share is %v at once", share)
	}
	if n := served(t, g, 200); n[0] == 0 || n[1] == 0 {
		t.Errorf("served %v while it takes its share step by step", n)
	}
	waitFor(t, "it takes all", func() bool { return g.Status().Targets[0].Share == 1 })
	if n := served(t, g, 10); n != [3]uint64{10, 0, 0} {
		t.Errorf("served %v", n)
	}
}

// TestReadyAgain has the table say that a server that failed is ready again.
func TestReadyAgain(t *testing.T) {
	local, zone := serve(t, good(t)), serve(t, good(t))
	g := group(t, upstream.Config{}, tiered(local, zone))
	local.stop()
	served(t, g, 1)
	table := tiered(local, zone)
	table.Tiers[0][0].State = upstream.NotReady
	g.Update(table)
	back := serveAt(t, local.addr, good(t))
	start := time.Now()
	g.Update(tiered(local, zone))
	waitFor(t, "one probe brings it back", func() bool { return !g.Status().Targets[0].Out })
	if took := time.Since(start); took > 700*time.Millisecond {
		t.Errorf("took %v: it was not probed at once", took)
	}
	if n := back.count(); n != 1 {
		t.Errorf("%d probes", n)
	}
}

// TestNewServer has a server appear that does not know its names yet.
func TestNewServer(t *testing.T) {
	old, slow := serve(t, good(t)), serve(t, func(r *request) {
		if r.number < 2 {
			r.reply(t, dns.RcodeServerFailure)
		} else {
			r.reply(t, dns.RcodeSuccess)
		}
	})
	g := group(t, upstream.Config{Probe: "probe.test"}, upstream.Table{Tiers: [3][]upstream.Member{1: {old.member()}}})
	served(t, g, 1)
	g.Update(tiered(slow, old))
	if ts := g.Status().Targets[0]; !ts.Fresh || !ts.Out {
		t.Errorf("target %+v", ts)
	}
	if n := served(t, g, 5); n != [3]uint64{0, 5, 0} {
		t.Errorf("served %v before a probe succeeded", n)
	}
	waitFor(t, "a probe brings it in", func() bool { return !g.Status().Targets[0].Out })
	if n := len(slow.requests(false)); n != 3 {
		t.Errorf("%d probes", n)
	}
	for _, r := range slow.requests(false) {
		var m dns.Msg
		if err := m.Unpack(r.msg); err != nil || m.Question[0].Name != "probe.test." || m.Question[0].Qtype != dns.TypeA {
			t.Errorf("probe %v (%v)", m.Question, err)
		}
	}
}

// TestProbeOfTheWrongName has servers that refuse the name of the probes and
// answer all others: they are taken for being in order.
func TestProbeOfTheWrongName(t *testing.T) {
	answer := func(r *request) {
		var m dns.Msg
		if err := m.Unpack(r.msg); err != nil || m.Question[0].Name == "probe.test." {
			r.reply(t, dns.RcodeRefused)
		} else {
			r.reply(t, dns.RcodeSuccess)
		}
	}
	local, zone := serve(t, answer), serve(t, answer)
	g := group(t, upstream.Config{Probe: "probe.test"}, tiered(local, zone))
	table := tiered(local, zone)
	table.Tiers[0][0].State = upstream.NotReady
	g.Update(table)
	g.Update(tiered(local, zone))
	waitFor(t, "a probe brings it back", func() bool { return !g.Status().Targets[0].Out })
}

func TestLoneServerReturns(t *testing.T) {
	s := serve(t, silent)
	s.stop()
	g := group(t, upstream.Config{Budget: 300 * time.Millisecond}, plain(s))
	for range 3 {
		if _, _, err := ask(t, g, "a.test"); err == nil {
			t.Fatal("a dead server answered")
		}
	}
	serveAt(t, s.addr, good(t))
	mustAnswer(t, g, "a.test", wire.NoError)
	if g.Status().Targets[0].Out {
		t.Error("still out after a reply, when there is no other")
	}
}

// TestLateReplies has replies come after their exchanges have ended. They speak
// for the server all the same.
func TestLateReplies(t *testing.T) {
	for _, tcp := range []bool{false, true} {
		t.Run(map[bool]string{false: "UDP", true: "TCP"}[tcp], func(t *testing.T) {
			ended := make(chan struct{})
			end := sync.OnceFunc(func() { close(ended) })
			late := serve(t, func(r *request) {
				<-ended
				r.reply(t, dns.RcodeSuccess)
			})
			t.Cleanup(end)
			cfg := inOrder
			cfg.ForceTCP = tcp
			cfg.RetryMin, cfg.RetryMax, cfg.PacketRate = 30*time.Millisecond, 2*time.Second, 0
			g := group(t, cfg, plain(late, serve(t, good(t))))
			waitFor(t, "the server is avoided", func() bool {
				mustAnswer(t, g, "a.test", wire.NoError)
				time.Sleep(50 * time.Millisecond)
				ts := g.Status().Targets[0]
				return ts.Suspect || ts.Out
			})
			end()
			waitFor(t, "the server is back", func() bool {
				ts := g.Status().Targets[0]
				return !ts.Suspect && !ts.Out
			})
		})
	}
}

// TestPacketsWhileAllAreOut has many names asked of servers that are dead.
func TestPacketsWhileAllAreOut(t *testing.T) {
	a, b := serve(t, silent), serve(t, silent)
	g := group(t, upstream.Config{Budget: 300 * time.Millisecond}, plain(a, b))
	flood := func(n int) {
		var asking sync.WaitGroup
		for range n {
			asking.Go(func() { _, _, _ = ask(t, g, "a.test") })
		}
		asking.Wait()
	}
	waitFor(t, "both are out", func() bool {
		flood(20)
		st := g.Status()
		return st.Targets[0].Out && st.Targets[1].Out
	})
	before, start := g.Status(), time.Now()
	for range 5 {
		flood(100)
	}
	after := g.Status()
	most := 20 + uint64(time.Since(start)/(50*time.Millisecond)) + 1
	if sent := after.Attempts - before.Attempts; sent > most || sent == 0 {
		t.Errorf("%d questions put for 500 queries, want at most %d", sent, most)
	}
	if after.Held == before.Held {
		t.Error("nothing was held back")
	}
}

// TestSignalLeavesTheQueryOpen has the kernel report the server unreachable
// while a query is in flight. Such a report can be forged, and the reply that
// comes all the same must be taken.
func TestSignalLeavesTheQueryOpen(t *testing.T) {
	for _, tc := range []struct {
		name  string
		other bool // there is another server, which gets the query at once
	}{{"lone", false}, {"another is silent", true}} {
		t.Run(tc.name, func(t *testing.T) {
			entered := make(chan *request, 3)
			s := serve(t, func(r *request) { entered <- r })
			table := plain(s)
			other := serve(t, silent)
			if tc.other {
				table = plain(s, other)
			}
			g := group(t, upstream.Config{
				Policy: upstream.Sequential, Sockets: 1, Attempts: 2,
				RetryMin: 2 * time.Second, RetryMax: 2 * time.Second,
			}, table)
			done := make(chan time.Duration)
			go func() {
				_, took := mustAnswer(t, g, "first.test", wire.NoError)
				done <- took
			}()
			first := <-entered
			s.stop()
			// A second query on the same socket brings the error for both.
			second, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_, _ = g.Exchange(second, nil, query(t, "second.test"))
			}()
			waitFor(t, "the error arrives", func() bool { return g.Status().Targets[0].HardErrors >= 2 })
			if tc.other {
				waitFor(t, "the next is asked at once", func() bool { return other.count() == 2 })
			}
			back := serveAt(t, s.addr, silent)
			_, err := back.udp.WriteToUDPAddrPort(makeReply(t, first.msg, dns.RcodeSuccess), first.from)
			if err != nil {
				t.Fatal(err)
			}
			if took := <-done; took > 1500*time.Millisecond {
				t.Errorf("took %v", took)
			}
			cancel()
			<-ended
		})
	}
}
