package hostnet_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// cell is one way of asking.
type cell struct{ proto, addr string }

func cells(list ...string) []cell {
	var out []cell
	for _, a := range list {
		out = append(out, cell{"udp", dns(a)}, cell{"tcp", dns(a)})
	}
	return out
}

// TestTheRightOneAnswers kills the server and starts it again, beside a stranger or
// not, with bridged packets in the hooks or not, tracked or not.
func TestTheRightOneAnswers(t *testing.T) {
	for _, tracked := range []bool{false, true} {
		for _, stranger := range []bool{false, true} {
			for _, bridgeNF := range []string{"0", "1"} {
				name := fmt.Sprintf("tracked=%v stranger=%v bridge-nf=%s", tracked, stranger, bridgeNF)
				t.Run(name, func(t *testing.T) {
					n := newNode(t)
					n.Sysctl(t, "bridge/bridge-nf-call-iptables", bridgeNF)
					n.Sysctl(t, "bridge/bridge-nf-call-ip6tables", bridgeNF)
					if stranger {
						start(t, n.Space, "stranger", "udp/0.0.0.0:53", "tcp/0.0.0.0:53", "udp/[::]:53", "tcp/[::]:53")
					}
					state := linkLocal()
					state.Tracked = tracked
					n.apply(t, state)
					n.lifeAndDeath(t)
				})
			}
		}
	}
}

// lifeAndDeath asks from every pod while the server lives, after it was killed, and
// when it is back: with fresh source ports, and with one that stays.
func (n node) lifeAndDeath(t *testing.T) {
	t.Helper()
	for _, phase := range []string{"alive", "dead", "back"} {
		var server *responder
		if phase != "dead" {
			server = n.server(t, own4, own6)
		}
		for i, c := range cells(own4, own6) {
			for pod, space := range map[string]space.Space{"bridged": n.Bridged, "routed": n.Routed} {
				for _, port := range []uint16{0, uint16(5000 + i)} {
					if port != 0 && c.proto == "tcp" {
						continue
					}
					got := client{space: space, port: port}.ask(t, c.proto, c.addr)
					if right := got == "server"; right != (phase != "dead") || (phase == "dead" && !strings.HasPrefix(got, "coredns")) {
						t.Errorf("%s: %s pod, %s %s, source port %d: %s answers", phase, pod, c.proto, c.addr, port, got)
					}
				}
			}
		}
		if phase == "alive" {
			server.kill()
		}
	}
}

func TestAConnectionEndsWhereItBegan(t *testing.T) {
	n := newNode(t)
	n.apply(t, linkLocal())
	pod := client{space: n.Routed}
	conn, err := pod.dial("tcp", dns(own4))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if got, err := roundTrip(conn, pod.patience()); err != nil || !strings.HasPrefix(got, "coredns") {
		t.Fatalf("without a server %q answers: %v", got, err)
	}
	server := n.server(t, own4)
	if got, err := roundTrip(conn, pod.patience()); err != nil || !strings.HasPrefix(got, "coredns") {
		t.Errorf("when the server is back the old connection says %q: %v", got, err)
	}
	ours, err := pod.dial("tcp", dns(own4))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ours.Close() }()
	n.hold(t, hostnet.Bypass, own4)
	if got, err := roundTrip(ours, pod.patience()); err != nil || !strings.HasPrefix(got, "server") {
		t.Errorf("during a bypass a connection of before says %q: %v", got, err)
	}
	server.kill()
}

// TestQueriesOfOneSocketTakeOneTarget asks for many ports, twice each.
func TestQueriesOfOneSocketTakeOneTarget(t *testing.T) {
	n := newNode(t)
	n.apply(t, linkLocal())
	took := map[string]int{}
	for port := uint16(6000); port < 6040; port++ {
		pod := client{space: n.Bridged, port: port}
		first, second := pod.ask(t, "udp", dns(own4)), pod.ask(t, "udp", dns(own4))
		if first != second {
			t.Errorf("port %d: first %s, then %s", port, first, second)
		}
		took[first]++
	}
	if took["coredns"] < 10 || took["coredns2"] < 10 {
		t.Errorf("40 ports took %v, want both about evenly", took)
	}
}

func TestTheClientIsHidden(t *testing.T) {
	n := newNode(t)
	n.apply(t, linkLocal())
	for addr, gateways := range map[string][]string{own4: {"10.1.0.1", "10.2.0.1"}, own6: {"fd01::1", "fd02::1"}} {
		got, err := client{space: n.Bridged}.exchange("udp", dns(addr))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(gateways, func(g string) bool { return strings.Contains(got, g) }) {
			t.Errorf("asked at %s, the target heard %q, want the node", addr, got)
		}
	}
}

// TestWithoutTargetsNobodyAnswers, and only TCP is refused, by the node itself: a client
// need not wait for a handshake that nobody will make.
func TestWithoutTargetsNobodyAnswers(t *testing.T) {
	n := newNode(t)
	state := linkLocal()
	state.Fallback = hostnet.Fallback{}
	report := n.apply(t, state)
	if len(report.Notes) != 4 {
		t.Errorf("notes %q, want one per protocol and family", report.Notes)
	}
	for _, addr := range []string{own4, own6} {
		pod := client{space: n.Routed, wait: 100e6}
		if got := pod.ask(t, "udp", dns(addr)); got != noAnswer {
			t.Errorf("%s: %s answers", addr, got)
		}
		if got := pod.ask(t, "tcp", dns(addr)); got != "refused" {
			t.Errorf("%s over TCP: %s answers", addr, got)
		}
		n.hold(t, hostnet.Alive, addr)
		if got := (client{space: n.Space, wait: 100e6}).ask(t, "udp", dns(addr)); got != noAnswer {
			t.Errorf("%s: from the node %s answers", addr, got)
		}
	}
}
