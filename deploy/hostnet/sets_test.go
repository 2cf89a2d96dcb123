package hostnet_test

import (
	"errors"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/deploy/hostnet"
)

func (n node) hold(t *testing.T, s hostnet.Set, list ...string) {
	t.Helper()
	if err := n.host.Hold(s, time.Minute, addrs(list...)...); err != nil {
		t.Fatal(err)
	}
}

func (n node) release(t *testing.T, s hostnet.Set, list ...string) {
	t.Helper()
	if err := n.host.Release(s, addrs(list...)...); err != nil {
		t.Fatal(err)
	}
}

// answers checks who answers in every cell.
func answers(t *testing.T, when string, c client, want string, cells []cell) {
	t.Helper()
	for _, cell := range cells {
		if got := c.ask(t, cell.proto, cell.addr); got != want {
			t.Errorf("%s: %s %s: %s answers, want %s", when, cell.proto, cell.addr, got, want)
		}
	}
}

// oneTarget leaves only one, so that its name is known.
func oneTarget(s hostnet.State) hostnet.State {
	s.Fallback = hostnet.Fallback{
		UDP: targets("10.1.0.53:5300", "[fd01::53]:5300"),
		TCP: targets("10.1.0.53:5301", "[fd01::53]:5301"),
	}
	return s
}

func TestTheNodeItselfGoesByTheSetAlive(t *testing.T) {
	for _, tracked := range []bool{false, true} {
		n := newNode(t)
		state := oneTarget(linkLocal())
		state.Tracked = tracked
		n.apply(t, state)
		n.server(t, own4, own6)
		both := cells(own4, own6)
		here := client{space: n.Space}

		answers(t, "not alive", here, "coredns", both)
		n.hold(t, hostnet.Alive, own4, own6)
		answers(t, "alive", here, "server", both)
		answers(t, "alive, from a pod", client{space: n.Bridged}, "server", both)
		n.release(t, hostnet.Alive, own4, own6)
		answers(t, "released", here, "coredns", both)
		n.release(t, hostnet.Alive, own4, own6) // not there: no error
	}
}

// TestAFixedPortOfTheNodeFollows also when it is one that tracking knows.
func TestAFixedPortOfTheNodeFollows(t *testing.T) {
	for _, tracked := range []bool{false, true} {
		n := newNode(t)
		state := oneTarget(linkLocal())
		state.Tracked = tracked
		n.apply(t, state)
		n.server(t, own4, own6)
		here := client{space: n.Space, port: 7000}
		udp := []cell{{"udp", dns(own4)}, {"udp", dns(own6)}}
		for range 2 {
			answers(t, "not alive", here, "coredns", udp)
			n.hold(t, hostnet.Alive, own4, own6)
			answers(t, "alive", here, "server", udp)
			n.release(t, hostnet.Alive, own4, own6)
		}
	}
}

func TestABypassEndsByItself(t *testing.T) {
	n := newNode(t)
	state := oneTarget(linkLocal())
	state.ProbeMark = 0x6e64
	n.apply(t, state)
	n.server(t, own4, own6)
	n.hold(t, hostnet.Alive, own4, own6)
	both := cells(own4, own6)
	here, pod := client{space: n.Space}, client{space: n.Bridged}
	probe := client{space: n.Space, mark: 0x6e64}

	// What is asked while it holds takes a tenth of its time, or less.
	began := time.Now()
	for _, from := range []client{pod, here, probe} {
		answers(t, "before the bypass", from, "server", both)
	}
	hold := 700*time.Millisecond + 10*time.Since(began)
	if err := n.host.Hold(hostnet.Bypass, hold, addrs(own4, own6)...); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	answers(t, "bypass, from a pod", pod, "coredns", both)
	answers(t, "bypass, from the node", here, "coredns", both)
	answers(t, "bypass, probe", probe, "server", both)
	time.Sleep(time.Until(start.Add(hold + 200*time.Millisecond)))
	answers(t, "after the bypass, from a pod", pod, "server", both)
	answers(t, "after the bypass, from the node", here, "server", both)
}

func TestHoldRenews(t *testing.T) {
	n := node{Node: space.Node{Space: space.New(t)}}
	n.host = n.openHost(t)
	if err := n.host.Hold(hostnet.Alive, time.Second, addrs(own4)...); !errors.Is(err, hostnet.ErrNoTable) {
		t.Errorf("without a table: %v, want ErrNoTable", err)
	}
	n.apply(t, linkLocal())
	n.hold(t, hostnet.Alive, own4)
	if err := n.host.Hold(hostnet.Alive, time.Hour, addrs(own4, own6)...); err != nil {
		t.Fatal(err)
	}
	// A change of the table keeps what is held.
	n.apply(t, oneTarget(linkLocal()))
	found, err := n.host.Read(linkLocal())
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Held) != 2 {
		t.Fatalf("held: %v, want two", found.Held)
	}
	for _, h := range found.Held {
		if h.Set != hostnet.Alive || h.Left < 59*time.Minute || h.Left > time.Hour {
			t.Errorf("held: %v for %v, want an hour of %v", h.Addr, h.Left, hostnet.Alive)
		}
	}
}
