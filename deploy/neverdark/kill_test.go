package neverdark

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// A process that is killed takes with it what it had received and not answered. For a
// moment after the kill its sockets are still there, up to 10 ms for 64 MB of memory.
// On a machine that does other things it takes as long as the process needs to die.
const (
	moment = 10 * time.Millisecond
	// expiry is how long the node's own queries take to go elsewhere by themselves.
	expiry = 1200 * time.Millisecond
)

// kill ends a nodens in some way. What is meant to be sent until its sockets are gone
// is of the phase "kill", what comes then of the phase "after".
func (tr *traffic) kill(d *daemon, how func(*daemon)) {
	tr.mark("kill")
	time.Sleep(onTheWay()) // what is on its way now was meant to be sent in this phase
	how(d)
	sent := time.Now()
	time.Sleep(moment)
	select {
	case <-d.Done():
	default:
		<-d.Done()
		tr.outlived = append(tr.outlived, time.Since(sent))
		time.Sleep(space.Form(moment, 0))
	}
	tr.mark("after")
}

// lives says how many processes were there longer than the moment.
func (tr *traffic) lives() string {
	if len(tr.outlived) == 0 {
		return "none was there 10 ms later"
	}
	return fmt.Sprintf("%d were there 10 ms later, %v at most", len(tr.outlived), slices.Max(tr.outlived).Round(100*time.Microsecond))
}

// onTheWay is how long a query may be on its way, from when it was meant to be sent:
// what those who ask are late, and what waits for those who answer.
func onTheWay() time.Duration { return space.Form(700*time.Millisecond, 100*time.Millisecond) }

func sigkill(d *daemon) { d.Signal(syscall.SIGKILL) }

// judgeKills asserts what may be lost by kills. Queries of the node itself are moved by
// the guard, or by the end of the address in the set alive.
func (tr *traffic) judgeKills(kills int) {
	tr.n.t.Helper()
	tr.expectAtMost("pods", "kill", tr.mayLose(kills))
	tr.expectNone("pods", "after")
	tr.expectNone("", "begin")
	share := rate() * tr.n.fromNode(own4).share
	tr.expectAtMost("node", "", uint64(float64(kills)*share*space.Form(expiry, 2*moment).Seconds()))
}

// mayLose is how many queries of pods kills may cost: those of the moment, 200 in a full
// run. In the short form the phase is as long as a busy machine needs, and what counts is
// that nothing is lost after it.
func (tr *traffic) mayLose(kills int) uint64 {
	return space.Form(tr.counts("pods", "kill").Sent, uint64(float64(kills)*rate()*moment.Seconds()))
}

// proveItself lets a nodens live until its guard does not take its death for one of a
// crash loop, in which the queries go past it.
func proveItself() { time.Sleep(space.Form(700*time.Millisecond, 11*time.Second)) }

// TestKill kills nodens with SIGKILL and starts it again later.
func TestKill(t *testing.T) {
	n := newNode(t, hostnet.LinkLocal)
	d := n.start()
	tr := n.ask(append(n.fromPods(own4, own6), n.fromNode(own4))...)
	warmUp()
	kills := space.Form(3, 50)
	var memory int
	for range kills {
		proveItself()
		memory = max(memory, d.rss())
		tr.kill(d, sigkill)
		time.Sleep(space.Form(300*time.Millisecond, 2*time.Second))
		d = n.start()
	}
	tr.stop().figure(fmt.Sprintf("%d times SIGKILL, restarted later", kills), "RSS up to %d MB, %d lost per kill by pods, %d by the node; %s",
		memory>>20, tr.counts("pods", "").Lost/uint64(kills), tr.counts("node", "").Lost/uint64(kills), tr.lives())
	tr.judgeKills(kills)
}

// TestCrashLoop restarts it later each time, as the kubelet does.
func TestCrashLoop(t *testing.T) {
	n := newNode(t, hostnet.LinkLocal)
	d := n.start()
	tr := n.ask(append(n.fromPods(own4, own6), n.fromNode(own4))...)
	warmUp()
	delays := space.Form([]time.Duration{0, 100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond},
		[]time.Duration{0, 10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second})
	for _, delay := range delays {
		tr.kill(d, sigkill)
		time.Sleep(delay)
		d = n.start()
		warmUp()
	}
	tr.stop().figure(fmt.Sprintf("crash loop, restarted after %v", delays), "SIGKILL each time; %s", tr.lives())
	tr.judgeKills(len(delays))
}

// TestOutOfMemory lets the kernel kill it at the limit of its control group.
func TestOutOfMemory(t *testing.T) {
	n := newNode(t, hostnet.LinkLocal)
	group := newGroup(t)
	d := n.start()
	tr := n.ask(append(n.fromPods(own4, own6), n.fromNode(own4))...)
	warmUp()
	kills := space.Form(2, 5)
	for range kills {
		proveItself()
		group.take(d)
		tr.kill(d, group.exhaust)
		time.Sleep(space.Form(300*time.Millisecond, 2*time.Second))
		d = n.start()
	}
	tr.stop().figure(fmt.Sprintf("%d times out of memory", kills), "killed by the limit of a control group (v1); %d lost per kill by pods", tr.counts("pods", "").Lost/uint64(kills))
	tr.judgeKills(kills)
}

// TestGuardIsKilled kills the guard alone, which nobody notices, and then both.
func TestGuardIsKilled(t *testing.T) {
	n := newNode(t, hostnet.LinkLocal)
	d := n.start()
	tr := n.ask(append(n.fromPods(own4, own6), n.fromNode(own4))...)
	warmUp()
	tr.mark("alone")
	n.guard.End(syscall.SIGKILL)
	time.Sleep(space.Form(2*time.Second, 5*time.Second))
	tr.kill(d, sigkill)
	time.Sleep(space.Form(time.Second, 3*time.Second))
	tr.stop().figure("guard killed, then both", "%d lost by the node; %s", tr.counts("node", "").Lost, tr.lives())
	tr.expectNone("", "alone")
	tr.judgeKills(1)
	found, err := n.host.Read(n.state())
	if err != nil || len(found.Held) > 0 {
		t.Errorf("the sets hold %v, error %v: want nothing", found.Held, err)
	}
}
