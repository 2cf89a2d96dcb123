package neverdark

import (
	"fmt"
	"testing"
	"time"

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
func warmUp() { time.Sleep(form(700*time.Millisecond, 3*time.Second)) }

// TestRollingRestarts replaces nodens by another that runs beside it for a moment, as
// a DaemonSet with surge does.
func TestRollingRestarts(t *testing.T) {
	n := newNode(t, hostnet.LinkLocal)
	d := n.start()
	tr := n.ask(append(n.fromPods(own4, own6), n.fromNode(own4))...)
	warmUp()
	rolls := form(6, 50)
	for i := range rolls {
		tr.mark(fmt.Sprintf("roll %d", i))
		next := n.start()
		time.Sleep(form(300*time.Millisecond, time.Second))
		d.stop()
		d = next
		time.Sleep(form(100*time.Millisecond, 500*time.Millisecond))
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
			restarts := form(3, 20)
			for i := range restarts {
				tr.mark(fmt.Sprintf("restart %d", i))
				d.stop()
				time.Sleep(form(500*time.Millisecond, 3*time.Second))
				d = n.start()
				time.Sleep(form(500*time.Millisecond, time.Second))
			}
			tr.stop().figure(fmt.Sprintf("%d restarts without a successor", restarts), "%v", mode)
			tr.expectNone("", "")
		})
	}
}
