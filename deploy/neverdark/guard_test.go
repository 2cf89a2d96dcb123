package neverdark

import (
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// local is a question that nodens answers itself, with an address, and CoreDNS does not.
const local = "\x12\x35\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x09localhost\x00\x00\x01\x00\x01"

// byNodens tells whether nodens answers, and not CoreDNS or nobody.
func byNodens(from space.Space, server string) bool {
	var conn net.Conn
	if from.Try(func() (err error) { conn, err = net.Dial("udp", server); return err }) != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(200 * time.Millisecond))
	reply := make([]byte, 512)
	if _, err := conn.Write([]byte(local)); err != nil {
		return false
	}
	size, err := conn.Read(reply)
	return err == nil && size > 12 && reply[3]&0xf == 0 && reply[7] == 1
}

// inARow waits until something holds five times in a row, and tells since when.
func inARow(t *testing.T, what string, patience time.Duration, holds func() bool) time.Duration {
	t.Helper()
	began, since := time.Now(), time.Now()
	for row := 0; row < 5; row++ {
		if !holds() {
			row, since = -1, time.Now()
		}
		if time.Since(began) > patience {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
	return since.Sub(began)
}

// TestStopped stops the process with SIGSTOP and lets it go on. That one loop of many
// is found when it hangs is a test of package guard, TestServeDies.
func TestStopped(t *testing.T) {
	n := newNode(t, hostnet.LinkLocal)
	d := n.start()
	for _, from := range []space.Space{n.Routed, n.Space} {
		inARow(t, "nodens answers", 10*time.Second, func() bool { return byNodens(from, own4+":53") })
	}
	var away, back time.Duration
	for range space.Form(1, 10) {
		d.Signal(syscall.SIGSTOP)
		away = max(away, inARow(t, "bypass", 10*time.Second, func() bool { return asksWithin(100*time.Millisecond, n.Routed, "udp", own4+":53") == nil }))
		d.Signal(syscall.SIGCONT)
		back = max(back, inARow(t, "return", 10*time.Second, func() bool { return byNodens(n.Routed, own4+":53") }))
	}
	keep("SIGSTOP and SIGCONT", "bypass after %v at most, back after %v at most", away.Round(time.Millisecond), back.Round(time.Millisecond))
	t.Logf("bypass after %v, back after %v", away, back)
	if space.Full() && (away > 1500*time.Millisecond || back > 2*time.Second) {
		t.Errorf("bypass after %v, want 1.5 s; back after %v, want 2 s", away, back)
	}
}

// TestOthersMeddle removes what we put on the host, under load.
func TestOthersMeddle(t *testing.T) {
	n := newNode(t, hostnet.LinkLocal)
	n.start()
	tr := n.ask(n.fromPods(own4, own6)...)
	warmUp()
	var slow time.Duration
	for _, do := range []string{
		"ip link del nodens", "ip addr del 169.254.20.10/32 dev nodens", "nft flush ruleset", "nft delete table inet nodens_v1",
	} {
		words := strings.Fields(do)
		n.Run(t, words[0], words[1:]...)
		slow = max(slow, waitFor(t, "repair after "+do, 10*time.Second, func() bool {
			found, err := n.host.Read(n.state())
			return err == nil && found.Link.Up && len(found.Link.Addrs) == 2 && n.hasTable()
		}))
		time.Sleep(200 * time.Millisecond)
	}
	tr.mark("repaired")
	time.Sleep(space.Form(500*time.Millisecond, 3*time.Second))
	tr.stop().figure("link, address, table removed by others", "repaired within %v", slow.Round(time.Millisecond))
	tr.expectNone("", "repaired")
	if space.Full() && slow > time.Second {
		t.Errorf("repaired after %v, want 1 s", slow)
	}
}

func (n *node) hasTable() bool {
	return strings.Contains(n.Run(n.t, "nft", "list", "ruleset"), "chain fallback_udp4")
}
