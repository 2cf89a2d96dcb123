package neverdark

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// usesNear tells whether the fallback leads to the near pod.
func (n *node) usesNear() bool {
	return strings.Contains(n.Run(n.t, "nft", "list", "table", "inet", "nodens_v1"), "10.1.0.53")
}

// show changes the endpoints, and tells how long the kernel took to follow.
func (n *node) show(near bool) time.Duration {
	n.t.Helper()
	const applied = "the host was changed"
	before := strings.Count(n.guard.Said(), applied)
	n.showEndpoints(near)
	return waitFor(n.t, "the fallback follows the endpoints", 60*time.Second, func() bool {
		return n.usesNear() == near && strings.Count(n.guard.Said(), applied) > before
	})
}

// TestEndpointsChange while nodens runs, while it is down and its guard follows them
// alone, and while nobody does. A pod that the endpoints do not list any more is gone
// a second later, and nobody asks it, from a port that he keeps as little as from a
// fresh one.
func TestEndpointsChange(t *testing.T) {
	n := newNode(t, hostnet.LinkLocal)
	d := n.start()
	warmUp()
	told := max(n.show(false), n.show(true))
	tr := n.ask(n.fromPods(own4, own6)...)
	warmUp()
	alone := func() int { return strings.Count(n.guard.Said(), "the guard follows them itself") }
	before := alone()
	tr.kill(d, sigkill)
	waitFor(t, "the guard follows the endpoints", 60*time.Second, func() bool { return alone() > before })
	followed := max(n.show(false), n.show(true), n.show(false))
	time.Sleep(space.Form(3*time.Second, time.Second-followed))
	n.near.End(syscall.SIGKILL)
	tr.mark("gone")
	time.Sleep(space.Form(time.Second, 3*time.Second))

	tr.mark("both dead")
	n.guard.End(syscall.SIGKILL)
	n.showEndpoints(true)
	time.Sleep(space.Form(time.Second, 3*time.Second))
	if n.usesNear() {
		t.Error("somebody follows the endpoints though everybody is dead")
	}
	tr.stop().figure("endpoints changed", "the fallback followed after %v, with the guard alone after %v; the last known were used when both were dead",
		told.Round(time.Millisecond), followed.Round(time.Millisecond))
	tr.expectAtMost("pods", "kill", tr.mayLose(1))
	for _, phase := range []string{"after", "gone", "both dead"} {
		tr.expectNone("pods", phase)
	}
	if space.Full() && max(told, followed) > time.Second {
		t.Errorf("the fallback followed after %v and %v, want 1 s", told, followed)
	}
}
