package proof

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/bench/space"
)

// The rows of a local CoreDNS that goes without a word: killed, out of reach,
// stopped. Each is repeated, and begins when the node's own CoreDNS answers
// most of the misses.

// TestKilled kills the node's CoreDNS. Some of the times the API never hears of
// it, since the restart is faster.
func TestKilled(t *testing.T) {
	onBoth(t, func(t *testing.T, g ground) {
		c := newCluster(t, g, mustMix(t, 0))
		c.boot(1, 2, 3)
		d := c.startNodens(1, budget, "")
		tr := c.ask(d, usual(rate()))
		rounds := space.Form(2, 20)
		for round := range rounds {
			p := c.on(1)
			d.awaitLocal()
			tr.mark("after")
			p.process.End(syscall.SIGKILL)
			time.Sleep(time.Second)
			tr.mark("calm")
			if apiHears(round) {
				c.show(p, false, false, false)
			}
			c.restart(p)
			c.show(p, true, true, false)
		}
		d.awaitLocal()
		tr.stop().expectNone()
		_, slow := slowest(tr.misses(), "after")
		figure("local CoreDNS killed", groundName(t), []*traffic{tr}, "%d times; p99.9 of misses in the second after, the worst: %s ms", rounds, ms(slow))
		if limit := space.Form(2*time.Second, 200*time.Millisecond); slow > limit {
			t.Errorf("p99.9 of misses in the second after is %v, at most %v expected", slow, limit)
		}
	})
}

// apiHears tells whether the kubelet notices a failure before it is over. Where it
// does not, only probes bring the server back, and each time later.
func apiHears(round int) bool { return round%4 != 1 }

// awaitLocal waits until the node's own CoreDNS answers most of the misses, and
// tells how long that took.
func (d *daemon) awaitLocal() time.Duration {
	d.t.Helper()
	last, began := d.status(), time.Now()
	for {
		time.Sleep(100 * time.Millisecond)
		now := d.status()
		share := now.share(last, "node")
		if share > 0.9 {
			return time.Since(began)
		}
		last = now
		if time.Since(began) > time.Minute {
			for _, s := range now.Routes[0].Servers {
				d.t.Logf("%s %s, %s, healthy %v: %s", s.Tier, s.Address, s.State, s.Healthy, s.Why)
			}
			d.t.Fatalf("the node's own CoreDNS answers %.0f %% of the misses, a minute after it could", 100*share)
		}
	}
}

// TestBlackhole takes the address of the node's CoreDNS away: queries to it
// arrive nowhere, and nothing says so.
func TestBlackhole(t *testing.T) {
	n := newNetwork(t)
	c := newCluster(t, n, mustMix(t, 0))
	c.boot(1, 2, 3)
	d := c.startNodens(1, budget, "")
	tr := c.ask(d, usual(rate()))
	rounds, p := space.Form(2, 20), c.on(1)
	var avoided, back time.Duration
	var inFlight, knowingly uint64
	for round := range rounds {
		back = max(back, d.awaitLocal())
		before := d.status()
		tr.mark("after")
		n.takeAddress(p.place)
		took := waitFor(t, "the silent CoreDNS is avoided", 5*time.Second, func() bool { return !d.status().at(p.at).Healthy })
		avoided, inFlight = max(avoided, took), max(inFlight, d.status().at(p.at).Sent-before.at(p.at).Sent)
		time.Sleep(max(0, time.Second-took))
		tr.mark("calm")
		time.Sleep(space.Form(500*time.Millisecond, 2*time.Second))
		after := d.status()
		begun := after.at(p.at).Forced - before.at(p.at).Forced
		knowingly += begun
		// Where the others were avoided, too, the machine stood still, and the nearest is as good as any.
		steady := after.suspicions("node") == before.suspicions("node") && before.othersHealthy(p.at) && after.othersHealthy(p.at)
		if begun > 0 && steady {
			t.Errorf("%d misses were begun on the silent CoreDNS after the third was known", begun)
		}
		if apiHears(round) {
			c.show(p, false, false, false)
		}
		n.giveAddress(p.place)
		c.show(p, true, true, false)
	}
	back = max(back, d.awaitLocal())
	tr.stop().expectNone()
	_, slow := slowest(tr.misses(), "after")
	figure("local CoreDNS a black hole", "netns", []*traffic{tr}, "%d times; p99.9 of misses in the second after, the worst: %s ms; avoided after %s ms, when %d were in flight to it; begun on it after the third miss was known: %d; back after %s ms",
		rounds, ms(slow), ms(avoided), inFlight, knowingly, ms(back))
	if limit := space.Form(2*time.Second, 400*time.Millisecond); slow > limit {
		t.Errorf("p99.9 of misses in the second after is %v, at most %v expected", slow, limit)
	}
}

// calm is a time after the ramp, without failures, at whose end an ejection is
// forgotten.
const calm = 27 * time.Second

// TestStopped stops the node's CoreDNS as a process and lets it go on.
func TestStopped(t *testing.T) {
	onBoth(t, func(t *testing.T, g ground) {
		c := newCluster(t, g, mustMix(t, 0))
		c.boot(1, 2, 3)
		d := c.startNodens(1, budget, "")
		tr := c.ask(d, usual(rate()))
		rounds, p := space.Form(1, 20), c.on(1)
		var backs []time.Duration
		d.awaitLocal()
		for round := range rounds {
			if round > 0 {
				// One that fails again and again is kept out longer and longer.
				time.Sleep(calm)
			}
			tr.mark("after")
			p.process.Signal(syscall.SIGSTOP)
			time.Sleep(space.Form(budget+time.Second, 5*time.Second))
			tr.mark("calm")
			p.process.Signal(syscall.SIGCONT)
			backs = append(backs, d.awaitLocal())
		}
		tr.stop().expectNone()
		_, slow := slowest(tr.misses(), "after")
		slices.Sort(backs)
		longest := backs[len(backs)-1]
		figure("local CoreDNS stopped and continued", groundName(t), []*traffic{tr}, "%d times; p99.9 of misses while stopped, the worst: %s ms; back in the node tier after %s ms as a median, %s the longest", rounds, ms(slow), ms(backs[len(backs)/2]), ms(longest))
		if limit := space.Form(30*time.Second, 10*time.Second); longest > limit {
			t.Errorf("back in the node tier after %v, at most %v expected", longest, limit)
		}
	})
}

// TestPeerCutOff cuts the node of the only zone peer off, which the API goes on
// calling ready. The node that asks has no CoreDNS of its own.
func TestPeerCutOff(t *testing.T) {
	n := newNetwork(t)
	c := newCluster(t, n, mustMix(t, 0))
	c.boot(2, 3)
	d := c.startNodens(1, budget, "")
	tr := c.ask(d, usual(rate()))
	rounds := space.Form(1, 5)
	for range rounds {
		before := d.status()
		time.Sleep(time.Second)
		if share := d.status().share(before, "zone"); share < 0.5 {
			t.Errorf("the zone peer answered %.0f %% of the misses before it was cut off", 100*share)
		}
		tr.mark("after")
		n.cutOff(2)
		time.Sleep(time.Second)
		tr.mark("calm")
		time.Sleep(space.Form(3*time.Second, 15*time.Second)) // silence, then a host that the kernel calls unreachable
		n.joinAgain(2)
		last := d.status()
		waitFor(t, "the zone peer is asked again", 30*time.Second, func() bool {
			time.Sleep(100 * time.Millisecond)
			now := d.status()
			share := now.share(last, "zone")
			last = now
			return share > 0.9
		})
	}
	tr.stop().expectNone()
	_, slow := slowest(tr.misses(), "after")
	figure("zone peer's node cut off", "netns", []*traffic{tr}, "%d times; p99.9 of misses in the second after, the worst: %s ms", rounds, ms(slow))
}
