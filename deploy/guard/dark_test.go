package guard_test

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// The bounds of these tests are wider than what is promised: the machine may be busy
// with something else. What was measured is logged.
const wide = time.Minute

// TestServeDies kills, stops and replaces serve: somebody answers at all times.
func TestServeDies(t *testing.T) {
	onNodes(t, func(t *testing.T, n *node) {
		n.start(t, n.coredns, true, "coredns")
		n.start(t, n.Space, true, "guard", n.folder)
		first := n.start(t, n.Space, true, "serve", n.folder, "one", 1)
		until(t, "start, pod", n.pod, serves, wide)
		until(t, "start, node", n.Space, serves, wide)

		first.kill()
		until(t, "killed, node", n.Space, behind, wide)
		expect(t, "killed, pod", n.pod, behind)
		if got := ask(n.pod, "tcp", wide); got != behind {
			t.Errorf("killed, pod over TCP: %s answers", got)
		}

		second := n.start(t, n.Space, true, "serve", n.folder, "two", 3)
		until(t, "again, pod", n.pod, serves, wide)
		until(t, "again, node", n.Space, serves, wide)

		second.signal(t, syscall.SIGSTOP)
		until(t, "stopped, pod", n.pod, behind, wide)
		until(t, "stopped, node", n.Space, behind, wide)
		second.signal(t, syscall.SIGCONT)
		until(t, "moves again, pod", n.pod, serves, wide)
		until(t, "moves again, node", n.Space, serves, wide)

		second.signal(t, syscall.SIGUSR1)
		until(t, "one socket of three frozen, pod", n.pod, behind, wide)
		second.signal(t, syscall.SIGUSR2)
		until(t, "no socket frozen, pod", n.pod, serves, wide)

		second.signal(t, syscall.SIGHUP)
		until(t, "one of three that accept connections frozen, pod", n.pod, behind, wide)
		second.signal(t, syscall.SIGUSR2)
		until(t, "all accept connections, pod", n.pod, serves, wide)

		// A successor comes and the predecessor leaves: nothing changes for anybody.
		third := n.start(t, n.Space, true, "serve", n.folder, "three", 1)
		time.Sleep(600 * time.Millisecond) // it has answered a probe
		second.end(t)
		expect(t, "handed over, pod", n.pod, serves)
		expect(t, "handed over, node", n.Space, serves)

		// Without a successor the queries are elsewhere before it is gone.
		third.end(t)
		expect(t, "left, pod", n.pod, behind)
		expect(t, "left, node", n.Space, behind)
		if n.nftHas(t, "expires") {
			eventually(t, "no set holds anything", wide, func() bool { return !n.nftHas(t, "expires") })
		}
	})
}

// TestNoBypassIntoNothing: while the servers behind do not answer, a serve that does not
// either keeps its queries, and has them at once when it moves again.
func TestNoBypassIntoNothing(t *testing.T) {
	onNodes(t, func(t *testing.T, n *node) {
		n.start(t, n.Space, true, "guard", n.folder)
		serve := n.start(t, n.Space, true, "serve", n.folder, "one", 1)
		until(t, "start, pod", n.pod, serves, wide)
		serve.signal(t, syscall.SIGSTOP)
		time.Sleep(3 * time.Second)
		set := "bypass4"
		if _, asked := setting(); asked.Is6() {
			set = "bypass6"
		}
		if held := n.Run(t, "nft", "list", "set", "inet", "nodens_v1", set); strings.Contains(held, "expires") {
			t.Errorf("queries go past serve into nothing:\n%s", held)
		}
		n.start(t, n.coredns, true, "coredns")
		until(t, "coredns comes, pod", n.pod, behind, wide)
		serve.signal(t, syscall.SIGCONT)
		until(t, "moves again, pod", n.pod, serves, wide)
	})
}

// TestGuardDies kills the guard, alone and with serve, and lets another take over.
func TestGuardDies(t *testing.T) {
	onNodes(t, func(t *testing.T, n *node) {
		n.start(t, n.coredns, true, "coredns")
		first := n.start(t, n.Space, true, "guard", n.folder)
		serve := n.start(t, n.Space, true, "serve", n.folder, "one", 1)
		until(t, "start, node", n.Space, serves, wide)

		// Both at once, stuck: what goes past serve comes back by itself.
		serve.signal(t, syscall.SIGSTOP)
		until(t, "stopped, pod", n.pod, behind, wide)
		first.kill()
		serve.signal(t, syscall.SIGCONT)
		until(t, "guard killed, pod", n.pod, serves, wide)
		until(t, "guard killed, node", n.Space, behind, wide)

		serve.kill()
		expect(t, "both killed, pod", n.pod, behind)
		expect(t, "both killed, node", n.Space, behind)

		// The next guard knows the servers from the disk, without serve.
		n.Run(t, "nft", "delete", "table", "inet", "nodens_v1")
		second := n.start(t, n.Space, true, "guard", n.folder)
		until(t, "restarted without serve, pod", n.pod, behind, wide)

		// One that was stopped before this guard began cannot connect, and is found.
		stopped := n.start(t, n.Space, true, "serve", n.folder, "stopped", 1)
		until(t, "another serve, pod", n.pod, serves, wide)
		stopped.signal(t, syscall.SIGSTOP)
		second.kill()
		second = n.start(t, n.Space, true, "guard", n.folder)
		until(t, "stopped before the guard began, pod", n.pod, behind, wide)
		stopped.kill()

		// A further guard waits for the lock, and has the node when the other is gone.
		third := n.start(t, n.Space, false, "guard", n.folder)
		n.start(t, n.Space, true, "serve", n.folder, "two", 1)
		until(t, "two guards, node", n.Space, serves, wide)
		second.kill()
		until(t, "handed over, node", n.Space, serves, wide)
		n.Run(t, "nft", "delete", "table", "inet", "nodens_v1")
		eventually(t, "the third guard repairs", wide, func() bool { return n.nftHas(t, "table inet nodens_v1") })
		third.end(t)
		if !n.nftHas(t, "table inet nodens_v1") {
			t.Error("a guard that ends takes its table along")
		}
	})
}

// TestOthersMeddle has somebody else break what the guard set up.
func TestOthersMeddle(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		n.start(t, n.coredns, true, "coredns")
		n.Run(t, "nft", "add", "table", "inet", "nodens_v0") // of a former version
		n.Run(t, "nft", "add", "table", "inet", "nodens_v9") // of a later one: a downgrade
		n.start(t, n.Space, true, "guard", n.folder)
		if n.nftHas(t, "nodens_v0") || n.nftHas(t, "nodens_v9") {
			t.Error("tables of other layouts are still there")
		}
		n.start(t, n.Space, true, "serve", n.folder, "one", 1)
		until(t, "start, node", n.Space, serves, wide)
		for _, do := range []string{
			"ip link del nodens", "ip link set nodens down", "ip addr del 169.254.20.10/32 dev nodens",
			"nft flush ruleset", "nft flush chain inet nodens_v1 hide", "nft delete table inet nodens_v1",
		} {
			words := strings.Fields(do)
			n.Run(t, words[0], words[1:]...)
			whole := func() bool {
				rules := n.Run(t, "nft", "list", "ruleset")
				links := n.links(t)
				return strings.Contains(rules, "masquerade") && strings.Contains(links, own) && !strings.Contains(links, "state DOWN")
			}
			eventually(t, do, wide, whole)
			until(t, do+", node", n.Space, serves, wide)
			until(t, do+", pod", n.pod, serves, wide)
		}
	})
}

// TestLeftovers: what a dead node-cache left goes, what a living one uses stays.
func TestLeftovers(t *testing.T) {
	onNode(t, func(t *testing.T, n *node) {
		n.Run(t, "ip", "link", "add", "nodelocaldns", "type", "bridge")
		n.Run(t, "ip", "addr", "add", "169.254.25.10/32", "dev", "nodelocaldns")
		living := n.start(t, n.Space, true, "stranger", "169.254.25.10:53")
		n.start(t, n.Space, true, "guard", n.folder)
		time.Sleep(time.Second)
		if !strings.Contains(n.links(t), "nodelocaldns") {
			t.Fatal("the link of a node-cache that serves is gone")
		}
		living.kill()
		eventually(t, "the link of a dead node-cache goes", wide, func() bool { return !strings.Contains(n.links(t), "nodelocaldns") })
	})
}

func (n *node) links(t *testing.T) string {
	t.Helper()
	return n.Run(t, "ip", "addr", "show")
}
