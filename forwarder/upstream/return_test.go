package upstream_test

import (
	"context"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/upstream"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

func TestReturnAfterHardError(t *testing.T) {
	clk := newClock()
	gone, alive := serve(t, silent), serve(t, good(t))
	gone.stop()
	cfg := inOrder
	cfg.Now = clk.now
	g := group(t, cfg, plain(gone, alive))
	mustAnswer(t, g, "a.test", wire.NoError)
	back := serveAt(t, gone.addr, good(t))
	mustAnswer(t, g, "b.test", wire.NoError)
	if n := back.count(); n != 0 {
		t.Errorf("the suspect was asked %d times before its time", n)
	}
	clk.move(200 * time.Millisecond)
	mustAnswer(t, g, "c.test", wire.NoError)
	waitFor(t, "the trial clears the target", func() bool { return !g.Status().Targets[0].Suspect })
	mustAnswer(t, g, "d.test", wire.NoError)
	if n := back.count(); n != 2 {
		t.Errorf("the server that is back was asked %d times", n)
	}
}

func TestLoneServerReturns(t *testing.T) {
	s := serve(t, silent)
	s.stop()
	clk := newClock()
	g := group(t, upstream.Config{Budget: 500 * time.Millisecond, Now: clk.now}, plain(s))
	for range 3 {
		if _, _, err := ask(t, g, "a.test"); err == nil {
			t.Fatal("a dead server answered")
		}
		clk.move(20 * time.Second)
	}
	serveAt(t, s.addr, good(t))
	mustAnswer(t, g, "a.test", wire.NoError)
	if g.Status().Targets[0].Suspect {
		t.Error("still suspect after a reply")
	}
}

// TestSlowServerTrial has a trial's reply come after the exchange that
// made it has ended.
func TestSlowServerTrial(t *testing.T) {
	for _, tcp := range []bool{false, true} {
		t.Run(map[bool]string{false: "UDP", true: "TCP"}[tcp], func(t *testing.T) {
			clk := newClock()
			gone, alive := serve(t, silent), serve(t, good(t))
			gone.stop()
			cfg := inOrder
			cfg.Now, cfg.ForceTCP = clk.now, tcp
			g := group(t, cfg, plain(gone, alive))
			mustAnswer(t, g, "a.test", wire.NoError)
			if !g.Status().Targets[0].Suspect {
				t.Fatal("not suspect")
			}
			ended := make(chan struct{})
			serveAt(t, gone.addr, func(r *request) {
				<-ended
				r.reply(t, dns.RcodeRefused) // any reply will do
			})
			clk.move(time.Second)
			mustAnswer(t, g, "b.test", wire.NoError)
			close(ended)
			waitFor(t, "the trial clears the target", func() bool { return !g.Status().Targets[0].Suspect })
		})
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
