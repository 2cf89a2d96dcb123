package hostnet_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// only leaves one target, the pod coredns2, of which oneTarget knows nothing.
func only2(s hostnet.State) hostnet.State {
	s.Fallback = hostnet.Fallback{
		UDP: targets("10.2.0.53:5300", "[fd02::53]:5300"),
		TCP: targets("10.2.0.53:5301", "[fd02::53]:5301"),
	}
	return s
}

func TestAFixedPortFollowsAChangeOfTargets(t *testing.T) {
	n := newNode(t)
	n.apply(t, oneTarget(linkLocal()))
	udp := []cell{{"udp", dns(own4)}, {"udp", dns(own6)}}
	clients := []client{{space: n.Bridged, port: 7100}, {space: n.Routed, port: 7101}, {space: n.Space, port: 7102}}
	old, err := clients[0].dial("tcp", dns(own4))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = old.Close() }()

	for _, c := range clients {
		answers(t, "before", c, "coredns", udp)
	}
	n.apply(t, only2(linkLocal()))
	for _, c := range clients {
		answers(t, "after", c, "coredns2", udp)
	}
	if got, err := roundTrip(old, clients[0].patience()); err != nil || !strings.HasPrefix(got, "coredns ") {
		t.Errorf("an established TCP connection says %q: %v; want its old target", got, err)
	}
	if again := n.apply(t, only2(linkLocal())); again.Forgotten != 0 || len(again.Changed) != 0 {
		t.Errorf("the same once more: %+v", again)
	}
	n.apply(t, oneTarget(linkLocal()))
	for _, c := range clients {
		answers(t, "back", c, "coredns", udp)
	}
}

// TestAFixedPortFollowsTheFirstTarget, though it asked when there was none.
func TestAFixedPortFollowsTheFirstTarget(t *testing.T) {
	n := newNode(t)
	state := oneTarget(linkLocal())
	state.Fallback = hostnet.Fallback{}
	n.apply(t, state)
	c := client{space: n.Routed, port: 7200, wait: 100e6}
	answers(t, "no target", c, noAnswer, []cell{{"udp", dns(own4)}})
	n.apply(t, oneTarget(linkLocal()))
	c.wait = 0
	answers(t, "a target", c, "coredns", []cell{{"udp", dns(own4)}})
}

// TestTheFirstApplyForgetsToo what a guard before this one had no time for.
func TestTheFirstApplyForgetsToo(t *testing.T) {
	n := newNode(t)
	n.apply(t, only2(linkLocal()))
	n.deafPod(t)
	// Somebody else's table stands for the former one of ours.
	n.Run(t, "nft", "add table inet before")
	n.Run(t, "nft", "add chain inet before steer { type nat hook prerouting priority -120; }")
	n.Run(t, "nft", "add rule inet before steer ip daddr "+own4+" tcp dport 53 dnat ip to 10.1.0.99:5301")
	got := make(chan string, 1)
	go func() { got <- client{space: n.Bridged, wait: time.Minute}.ask(t, "tcp", dns(own4)) }()
	time.Sleep(200 * time.Millisecond)
	n.Run(t, "nft", "delete table inet before")
	n.host = n.openHost(t)
	if report := n.apply(t, only2(linkLocal())); report.Forgotten != 1 || len(report.Changed) != 0 {
		t.Errorf("report %+v, want one handshake forgotten and nothing changed", report)
	}
	if who := <-got; who != "coredns2" {
		t.Errorf("%s answers, want coredns2", who)
	}
}

// deafPod is a target that drops what it gets. Somebody has the address, so that the
// first packet leaves.
func (n node) deafPod(t *testing.T) {
	t.Helper()
	n.Answers.Address(t, "eth0", "10.1.0.99/24", "fd01::99/64")
	n.Answers.Run(t, "nft", "add", "table", "inet", "deaf")
	n.Answers.Run(t, "nft", "add chain inet deaf in { type filter hook input priority 0; }")
	n.Answers.Run(t, "nft", "add rule inet deaf in ip daddr 10.1.0.99 drop")
	n.Answers.Run(t, "nft", "add rule inet deaf in ip6 daddr fd01::99 tcp dport 5301 drop")
}

func TestCountersGoOn(t *testing.T) {
	n := newNode(t)
	n.apply(t, oneTarget(linkLocal()))
	ask := func() {
		for _, c := range []client{{space: n.Bridged, port: 7300}, {space: n.Space, port: 7301}} {
			answers(t, "dead", c, "coredns", []cell{{"udp", dns(own4)}, {"udp", dns(own4)}, {"udp", dns(own6)}})
		}
		answers(t, "dead", client{space: n.Routed}, "coredns", []cell{{"tcp", dns(own4)}, {"tcp", dns(own6)}, {"tcp", dns(own6)}})
	}
	ask()
	n.counted(t, 4, 1, 2, 2)
	n.apply(t, only2(linkLocal()))
	n.counted(t, 4, 1, 2, 2)
	n.apply(t, oneTarget(linkLocal()))
	ask()
	n.counted(t, 8, 2, 4, 4)

	n.server(t, own4, own6)
	answers(t, "alive", client{space: n.Bridged}, "server", cells(own4, own6))
	n.counted(t, 8, 2, 4, 4)
}

func (n node) counted(t *testing.T, udp4, tcp4, udp6, tcp6 uint64) {
	t.Helper()
	found, err := n.host.Read(linkLocal())
	if err != nil {
		t.Fatal(err)
	}
	c := found.Counts
	if got := [4]uint64{c.UDP4.Packets, c.TCP4.Packets, c.UDP6.Packets, c.TCP6.Packets}; got != [4]uint64{udp4, tcp4, udp6, tcp6} {
		t.Errorf("counted %v, want %v", got, []uint64{udp4, tcp4, udp6, tcp6})
	}
}

// TestWhatWeAnswerIsNotForgotten because it leads to no target.
func TestWhatWeAnswerIsNotForgotten(t *testing.T) {
	n := newNode(t)
	state := oneTarget(linkLocal())
	state.Tracked = true
	n.apply(t, state)
	n.server(t, own4, own6)
	answers(t, "alive", client{space: n.Routed}, "server", cells(own4, own6))
	state = only2(state)
	if report := n.apply(t, state); report.Forgotten != 0 {
		t.Errorf("%d tracked connections forgotten, want none", report.Forgotten)
	}
}

// TestAChangeLosesNothing asks all the while the table is replaced.
func TestAChangeLosesNothing(t *testing.T) {
	n := newNode(t)
	n.apply(t, oneTarget(linkLocal()))
	done := make(chan int, 1)
	go func() {
		changes := 0
		for ; changes < 40; changes++ {
			state := oneTarget(linkLocal())
			if changes%2 == 0 {
				state = only2(state)
			}
			if _, err := n.host.Apply(state); err != nil {
				break
			}
		}
		done <- changes
	}()
	asked := 0
	for ; len(done) == 0; asked++ {
		c := cells(own4, own6)[asked%4]
		got := client{space: n.Bridged}.ask(t, c.proto, c.addr)
		if !strings.HasPrefix(got, "coredns") {
			t.Errorf("query %d, %s to %s: %s answers", asked, c.proto, c.addr, got)
		}
	}
	if changes := <-done; changes != 40 || asked < 4 {
		t.Errorf("%d changes during %d queries, want 40 during many", changes, asked)
	}
}

// TestWhatFormerTargetsOweArrives at a client that keeps its source port, though the
// targets change, to and fro, faster than any of them answers.
func TestWhatFormerTargetsOweArrives(t *testing.T) {
	n := newNode(t)
	start(t, n.Answers, "coredns", "slow/[::]:5310")
	start(t, n.FarAnswers, "coredns2", "slow/[::]:5310")
	state, other := linkLocal(), linkLocal()
	state.Fallback.UDP = targets("10.1.0.53:5310", "[fd01::53]:5310")
	other.Fallback.UDP = targets("10.2.0.53:5310", "[fd02::53]:5310")
	n.apply(t, state)
	took := map[string]int{}
	for i, addr := range []string{own4, own6} {
		conn, err := client{space: n.Bridged, port: 7500 + uint16(i)}.dial("udp", dns(addr))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		const queries = 40
		for i := range queries {
			if _, err := conn.Write([]byte("who?")); err != nil {
				t.Fatal(err)
			}
			if i%4 == 3 {
				state, other = other, state
				n.apply(t, state)
			}
		}
		_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
		for i := range queries {
			buf := make([]byte, 64)
			length, err := conn.Read(buf)
			if err != nil {
				t.Fatalf("%s: %d of %d answers: %v", addr, i, queries, err)
			}
			name, _, _ := strings.Cut(string(buf[:length]), " ")
			took[name]++
		}
	}
	if took["coredns"] != 40 || took["coredns2"] != 40 {
		t.Errorf("%v answered, want 40 each", took)
	}
}

// TestAHandshakeWithAFormerTargetIsForgotten when nobody answers it: the client's
// next packet reaches a target of now.
func TestAHandshakeWithAFormerTargetIsForgotten(t *testing.T) {
	n := newNode(t)
	gone := oneTarget(linkLocal())
	gone.Fallback.TCP = targets("10.1.0.99:5301", "[fd01::99]:5301")
	n.apply(t, gone)
	n.deafPod(t)
	got := make(chan string, 2)
	for _, addr := range []string{own4, own6} {
		go func() { got <- client{space: n.Bridged, wait: time.Minute}.ask(t, "tcp", dns(addr)) }()
	}
	time.Sleep(200 * time.Millisecond)
	if report := n.apply(t, only2(linkLocal())); report.Forgotten != 2 {
		t.Errorf("%d handshakes forgotten, want 2", report.Forgotten)
	}
	for range 2 {
		if who := <-got; who != "coredns2" {
			t.Errorf("%s answers, want coredns2", who)
		}
	}
}

// TestManyChangesLoseNothing: a packet that is under way while the rules change meets the
// former ones or the new ones.
func TestManyChangesLoseNothing(t *testing.T) {
	const changes, clients = 150, 4
	n := newNode(t)
	for _, file := range []string{"nf_conntrack_udp_timeout", "nf_conntrack_udp_timeout_stream"} {
		n.Sysctl(t, "netfilter/"+file, "1") // a long list of connections makes a change slow
	}
	n.apply(t, oneTarget(linkLocal()))
	ctx, stop := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	var asked, lost atomic.Int64
	for i := range clients {
		asking.Go(func() {
			for ctx.Err() == nil {
				asked.Add(1)
				if got := (client{space: n.Bridged}).ask(t, "udp", dns([]string{own4, own6}[i%2])); !strings.HasPrefix(got, "coredns") {
					lost.Add(1)
				}
			}
		})
	}
	both := linkLocal()
	for i := range changes {
		n.apply(t, []hostnet.State{only2(linkLocal()), both, oneTarget(linkLocal())}[i%3])
	}
	stop()
	asking.Wait()
	if lost.Load() > 0 || asked.Load() < changes {
		t.Errorf("%d of %d queries are lost during %d changes", lost.Load(), asked.Load(), changes)
	}
	t.Logf("%d queries during %d changes", asked.Load(), changes)
}
