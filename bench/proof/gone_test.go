package proof

import (
	"syscall"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/bench/load"
	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/bench/world"
)

// TestAllGone removes every CoreDNS of the cluster for a while. Names that were
// answered before go on being answered, past their time to live; the others
// fail within the budget. When a CoreDNS is ready again nothing fails any more,
// and it is not run over.
func TestAllGone(t *testing.T) {
	onBoth(t, func(t *testing.T, g ground) {
		outage := space.Form(7*time.Second, 60*time.Second)
		c := newCluster(t, g, mustMix(t, 5)) // so that every answer ends during the outage
		c.boot(1, 2, 3)
		d := c.startNodens(1, budget, "")
		c.warm(d)
		want := usual(rate())
		want.patience = space.Form(budget+2*time.Second, 0)
		tr := c.ask(d, want)
		time.Sleep(2 * time.Second)
		tr.mark("gone")
		time.Sleep(500 * time.Millisecond) // what left before is answered
		for len(c.pods) > 0 {
			p := c.pods[0]
			p.process.End(syscall.SIGKILL)
			g.removePod(p.place)
			c.forget(p)
		}
		time.Sleep(outage)
		c.boot(2)
		p := c.on(2)
		began := d.status().at(p.at).Sent
		tr.mark("back")
		grace := space.Form(3*time.Second, time.Second)
		time.Sleep(grace)
		tr.mark("recovered")
		asked := d.status().at(p.at).Sent - began
		time.Sleep(3 * time.Second)
		tr.stop()

		c.judgeOutage(tr)
		offered := phases(tr.misses(), "back").Sent
		// What was held back is asked at last, once, and so are ended answers.
		const held = 2048 + 2*world.Popular
		if limit := 2*offered + held; asked > limit {
			t.Errorf("%d queries went to the servers in the %v after the first was ready, for %d misses: more than %d", asked, grace, offered, limit)
		}
		figure("all endpoints gone", groundName(t), []*traffic{tr}, "for %v; %d of %d misses failed meanwhile, %d of %d hits; %d queries to servers in the %v after, for %d misses",
			outage, phases(tr.misses(), "gone").ServFail, phases(tr.misses(), "gone").Sent, tr.hits().Total.ServFail, tr.hits().Total.Sent, asked, grace, offered)
	})
}

// judgeOutage asserts what must hold before, during and after an outage.
func (c *cluster) judgeOutage(tr *traffic) {
	c.t.Helper()
	c.t.Log(tr.summary())
	tr.expectAtMost(tr.hits().Total, 0)
	tr.expectAtMost(tr.misses().Total, tr.misses().Total.Sent)
	for _, phase := range []string{"begin", "recovered"} {
		if got := phases(tr.misses(), phase); got.ServFail != 0 || got.Sent == 0 {
			c.t.Errorf("%d of %d misses of the phase %q failed", got.ServFail, got.Sent, phase)
		}
	}
	if got := phases(tr.misses(), "gone"); got.ServFail == 0 {
		c.t.Error("no miss failed while every CoreDNS was gone: they were not")
	}
}

// warm asks for every popular name once, so that all of them are known.
func (c *cluster) warm(d *daemon) {
	c.t.Helper()
	every, count := c.mix.Every()
	var run *load.Run
	err := c.ground.client(d.node).do(func() (err error) {
		run, err = load.New(load.Config{
			Target: d.at, AllowRemote: true, Source: func(int) load.Source { return every }, Transport: load.UDP,
			Stages: []load.Stage{load.Steady("warm", 0, 0)}, Outstanding: 20, Queries: uint64(count),
		})
		return err
	})
	if err != nil {
		c.t.Fatal(err)
	}
	report, err := run.Run(c.t.Context())
	if err != nil || report.Total.Right != uint64(count) {
		c.t.Fatalf("of %d names %d were answered: error %v", count, report.Total.Right, err)
	}
}
