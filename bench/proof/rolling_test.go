package proof

import (
	"strings"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/bench/space"
)

// TestRollingUpgrade replaces every CoreDNS pod of the cluster, one at a time,
// while the pods of all three nodes ask.
func TestRollingUpgrade(t *testing.T) {
	onBoth(t, func(t *testing.T, g ground) {
		rounds := space.Form(1, 10)
		if _, ok := g.(*loopback); ok {
			rounds = space.Form(1, 3) // once more, not all over again
		}
		c := newCluster(t, g, mustMix(t, 0))
		c.boot(1, 2, 3)
		traffics := c.everywhere(rate())
		time.Sleep(space.Form(time.Second, 5*time.Second)) // caches fill
		for _, tr := range traffics {
			tr.daemon.awaitLocal()
			tr.mark("upgrade")
		}
		for round := range rounds {
			for node := 1; node <= 3; node++ {
				c.upgrade(c.on(node), (round+node)%2 == 0)
			}
		}
		var slow time.Duration
		for _, tr := range traffics {
			tr.daemon.awaitLocal()
			tr.stop().expectNone()
			p99, _ := slowest(tr.misses(), "upgrade")
			slow = max(slow, p99)
		}
		figure("rolling upgrade, maxUnavailable 1", groundName(t), traffics, "%d rounds; p99 of misses during it %s ms", rounds, ms(slow))
		if limit := space.Form(2*time.Second, 25*time.Millisecond); slow > limit {
			t.Errorf("p99 of misses is %v, at most %v expected", slow, limit)
		}
	})
}

// everywhere starts a nodens and traffic on every node: the first at the given
// rate, the others at a fifth of it.
func (c *cluster) everywhere(rate float64) []*traffic {
	c.t.Helper()
	var traffics []*traffic
	for node := 1; node <= 3; node++ {
		d := c.startNodens(node, budget, "")
		each := rate
		if node > 1 {
			each /= 5
		}
		traffics = append(traffics, c.ask(d, usual(each)))
	}
	return traffics
}

// onBoth runs a row in namespaces and on loopback.
func onBoth(t *testing.T, row func(t *testing.T, g ground)) {
	t.Run("loopback", func(t *testing.T) { row(t, newLoopback(t)) })
	t.Run("netns", func(t *testing.T) { row(t, newNetwork(t)) })
}

// groundName is what the figures call the ground of a test.
func groundName(t *testing.T) string { return t.Name()[strings.LastIndexByte(t.Name(), '/')+1:] }
