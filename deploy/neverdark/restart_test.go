package neverdark

import (
	"fmt"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// listenAt are the addresses of a mode that clients ask.
func listenAt(mode hostnet.Mode) (four, six string) {
	if mode == hostnet.Service {
		return cluster4, cluster6
	}
	return own4, own6
}

// warmUp lets caches fill, and the guard's probes be answered.
func warmUp() { time.Sleep(space.Form(700*time.Millisecond, 3*time.Second)) }

// TestRollingRestarts replaces nodens by another that runs beside it for a moment, as
// a DaemonSet with surge does.
func TestRollingRestarts(t *testing.T) {
	n := newNode(t, hostnet.LinkLocal)
	d := n.start()
	tr := n.ask(append(n.fromPods(own4, own6), n.fromNode(own4))...)
	warmUp()
	rolls := space.Form(6, 50)
	for i := range rolls {
		tr.mark(fmt.Sprintf("roll %d", i))
		next := n.start()
		time.Sleep(space.Form(300*time.Millisecond, time.Second))
		d.stop()
		d = next
		time.Sleep(space.Form(100*time.Millisecond, 500*time.Millisecond))
	}
	tr.stop().figure(fmt.Sprintf("%d rolling restarts with surge", rolls), "link-local")
	tr.expectNone("", "")
}

// TestRestartsWithoutSuccessor leaves the node to the kernel for a while. In service
// mode that is to say to kube-proxy.
func TestRestartsWithoutSuccessor(t *testing.T) {
	for _, mode := range []hostnet.Mode{hostnet.LinkLocal, hostnet.Service} {
		t.Run(mode.String(), func(t *testing.T) {
			n := newNode(t, mode)
			if mode == hostnet.Service {
				n.kubeProxy()
			}
			d := n.start()
			four, six := listenAt(mode)
			tr := n.ask(append(n.fromPods(four, six), n.fromNode(four))...)
			warmUp()
			restarts := space.Form(3, 20)
			for i := range restarts {
				tr.mark(fmt.Sprintf("restart %d", i))
				d.stop()
				time.Sleep(space.Form(500*time.Millisecond, 3*time.Second))
				d = n.start()
				time.Sleep(space.Form(500*time.Millisecond, time.Second))
			}
			tr.stop().figure(fmt.Sprintf("%d restarts without a successor", restarts), "%v", mode)
			tr.expectNone("", "")
		})
	}
}

// TestPair has two nodens that always run, and restarts or kills one or the other: with
// the second there is no need of a successor or of the kernel.
func TestPair(t *testing.T) {
	n := newNode(t, hostnet.LinkLocal)
	pair := []*daemon{n.start(), n.start()}
	tr := n.ask(append(n.fromPods(own4, own6), n.fromNode(own4))...)
	warmUp()
	turns := space.Form(4, 20)
	for i := range turns {
		pair[i%2].stop()
		time.Sleep(space.Form(200*time.Millisecond, 2*time.Second))
		pair[i%2] = n.start()
		time.Sleep(space.Form(500*time.Millisecond, time.Second))
	}
	before := n.fallbackPackets()
	tr.kill(pair[0], sigkill)
	time.Sleep(space.Form(300*time.Millisecond, 2*time.Second))
	tr.stop().figure(fmt.Sprintf("a pair, one restarted in turn %d times, then one killed", turns), "%d packets to the fallback", n.fallbackPackets())
	if before != n.fallbackPackets() {
		t.Errorf("%d packets to the fallback, want none while one of a pair lives", n.fallbackPackets()-before)
	}
	tr.expectNone("", "begin")
	tr.expectNone("pods", "after")
	tr.expectAtMost("pods", "kill", tr.mayLose(1))
}

// fallbackPackets is what the kernel sent to CoreDNS, of both families.
func (n *node) fallbackPackets() uint64 {
	n.t.Helper()
	found, err := n.host.Read(n.state())
	if err != nil {
		n.t.Fatal(err)
	}
	c := found.Counts
	return c.UDP4.Packets + c.UDP6.Packets + c.TCP4.Packets + c.TCP6.Packets
}
