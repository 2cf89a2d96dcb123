package upstream_test

import (
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/upstream"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

var watched = upstream.Config{Probe: "probe.test"}

func TestWatchSeesTheServerGo(t *testing.T) {
	local, zone := serve(t, good(t)), serve(t, good(t))
	g := group(t, watched, tiered(local, zone))
	waitFor(t, "the watch asks", func() bool { return len(local.requests(true)) == 1 })
	local.stop()
	waitFor(t, "the server is out", func() bool { return g.Status().Targets[0].Out })
	if st := g.Status(); st.Exchanges != 0 || len(local.requests(false)) != 0 {
		t.Errorf("%d queries and %d probes before it was seen", st.Exchanges, len(local.requests(false)))
	}
	mustAnswer(t, g, "a.test", wire.NoError)
}

// TestWatchHurries has a query in flight at the server that goes.
func TestWatchHurries(t *testing.T) {
	entered := make(chan struct{}, 9)
	local := serve(t, func(r *request) {
		if r.tcp {
			r.reply(t, dns.RcodeSuccess)
		} else {
			entered <- struct{}{}
		}
	})
	cfg := watched
	cfg.Attempts = 2
	cfg.RetryMin, cfg.RetryMax, cfg.Budget = 5*time.Second, 5*time.Second, 20*time.Second
	g := group(t, cfg, tiered(local, serve(t, good(t))))
	g.Update(tiered(local)) // nobody to send a hedge to
	waitFor(t, "the watch asks", func() bool { return len(local.requests(true)) == 1 })
	done := make(chan time.Duration)
	go func() {
		_, took := mustAnswer(t, g, "a.test", wire.NoError)
		done <- took
	}()
	<-entered
	other := serve(t, good(t))
	g.Update(tiered(local, other))
	local.stop()
	if took := <-done; took > 3*time.Second {
		t.Errorf("took %v: it waited for the retry time", took)
	}
}

// TestWatchBearsAReload has the server close its connections and go on.
func TestWatchBearsAReload(t *testing.T) {
	local := serve(t, good(t))
	g := group(t, watched, tiered(local, serve(t, good(t))))
	for n := 1; n <= 3; n++ {
		waitFor(t, "the watch asks", func() bool { return len(local.requests(true)) == n })
		_ = local.requests(true)[n-1].stream.Close()
	}
	if ts := g.Status().Targets[0]; ts.Out || ts.HardErrors != 0 {
		t.Errorf("target %+v", ts)
	}
}

// TestWatchNeedsAnAnswerFirst has a server without TCP.
func TestWatchNeedsAnAnswerFirst(t *testing.T) {
	local := serve(t, good(t))
	_ = local.tcp.Close()
	g := group(t, watched, tiered(local, serve(t, good(t))))
	time.Sleep(100 * time.Millisecond)
	mustAnswer(t, g, "a.test", wire.NoError)
	if ts := g.Status().Targets[0]; ts.Out || ts.HardErrors != 0 {
		t.Errorf("target %+v", ts)
	}
}

func TestWatchEndsWithItsTarget(t *testing.T) {
	local, zone := serve(t, good(t)), serve(t, good(t))
	g := group(t, watched, tiered(local, zone))
	waitFor(t, "the watch asks", func() bool { return g.Status().Open == 1 })
	g.Update(upstream.Table{Tiers: [3][]upstream.Member{1: {zone.member()}}})
	waitFor(t, "the watch ends", func() bool { return g.Status().Open == 0 })
}

// TestSteadyProbes has nobody ask anything.
func TestSteadyProbes(t *testing.T) {
	local, zone := serve(t, good(t)), serve(t, good(t))
	g := group(t, watched, tiered(local, zone))
	waitFor(t, "the local server is probed", func() bool { return len(local.requests(false)) == 2 })
	if n := zone.count(); n != 0 {
		t.Errorf("the zone's was probed %d times", n)
	}
	// Probes are questions, but those of no client: how these find sockets is not told of.
	if ts := g.Status().Targets[0]; ts.Sent < 2 || ts.ReusedUDP+ts.OpenedUDP+ts.ReusedTCP+ts.OpenedTCP != 0 {
		t.Errorf("%d sent, %d and %d over UDP, %d and %d over TCP", ts.Sent, ts.ReusedUDP, ts.OpenedUDP, ts.ReusedTCP, ts.OpenedTCP)
	}
	if st := g.Status(); st.Probes < 2 || st.Served != [4]uint64{} || st.Targets[0].Replies[upstream.ClassNoError].Count() != 0 {
		t.Errorf("status %+v", st)
	}
}

// TestProbesOverTCP has a route that asks over TCP only, as where UDP is filtered.
func TestProbesOverTCP(t *testing.T) {
	local, zone := serve(t, good(t)), serve(t, good(t))
	cfg := watched
	cfg.ForceTCP = true
	g := group(t, cfg, tiered(local, zone))
	waitFor(t, "the local server is probed", func() bool { return g.Status().Probes >= 3 })
	if n := len(local.requests(false)) + zone.count(); n != 0 {
		t.Errorf("%d questions over UDP or to the zone's", n)
	}
	from := map[uint16]bool{}
	for _, r := range local.requests(true) {
		from[r.from.Port()] = true
	}
	if len(from) > 2 { // of the probes, and of the watch
		t.Errorf("%d connections", len(from))
	}
}
