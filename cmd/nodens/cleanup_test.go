package main

import (
	"net"
	"strings"
	"testing"
)

// A node on its way from node-cache: it is looked at before anything of ours is there,
// and what node-cache left goes once it does not serve any more. What is ours stays.
func TestCleanupOfNodeCache(t *testing.T) {
	onNode(t, func(t *testing.T) {
		config, _ := newNode(t)
		expect := func(line string, status int, want string) {
			t.Helper()
			if got, text := runSelf(strings.Fields(line)...); got != status || !strings.Contains(text, want) {
				t.Errorf("%s: status %d, want %d with %q:\n%s", line, got, status, want, text)
			}
		}
		expect("doctor -before -fail bad -config "+config, 0, "guard: none runs on this node yet")
		expect("doctor -fail bad -config "+config, 1, "bad      guard: none runs")
		expect("doctor -fail worse", 2, `-fail is "worse"`)
		guard := begin(t, "guard", "-config", config)
		await(t, "the table", func() bool { return strings.Contains(shell(t, "nft list ruleset"), "nodens_v1") })
		_ = guard.Process.Kill()
		_ = guard.Wait()
		expect("cleanup -node-cache -config "+config, 0, "there was nothing to remove")
		for _, line := range []string{"ip link add nodelocaldns type bridge", "ip addr add 169.254.25.10/32 dev nodelocaldns", "ip link set nodelocaldns up"} {
			shell(t, line)
		}
		nodeCache, err := net.ListenPacket("udp", "169.254.25.10:53")
		if err != nil {
			t.Fatal(err)
		}
		expect("cleanup -node-cache -config "+config, 1, "somebody still serves 169.254.25.10 on link nodelocaldns")
		if err := nodeCache.Close(); err != nil {
			t.Fatal(err)
		}
		expect("cleanup -node-cache -config "+config, 0, "node-cache: removed: link nodelocaldns")
		if rest := shell(t, "nft list ruleset") + shell(t, "ip -o addr show"); !strings.Contains(rest, "nodens_v1") || !strings.Contains(rest, "169.254.20.10") {
			t.Errorf("what is ours is gone:\n%s", rest)
		}
	})
}

// A node that went back to node-cache: what nodens left goes, and what the node-cache that
// serves there works with stays, by whatever name its link goes.
func TestCleanupBesideNodeCache(t *testing.T) {
	for name, link := range map[string]string{"its usual link": "nodelocaldns", "a link of another name": "dns0"} {
		t.Run(name, func(t *testing.T) { onNode(t, func(t *testing.T) { cleanBeside(t, link) }) })
	}
}

func cleanBeside(t *testing.T, link string) {
	config, _ := newNode(t)
	guard := begin(t, "guard", "-config", config)
	await(t, "table and address", func() bool {
		return strings.Contains(shell(t, "nft list ruleset"), "nodens_v1") && strings.Contains(shell(t, "ip -o addr show"), "169.254.20.10")
	})
	_ = guard.Process.Kill()
	_ = guard.Wait()
	for _, line := range []string{
		"ip link add " + link + " type bridge", "ip addr add 169.254.25.10/32 dev " + link, "ip link set " + link + " up", "nft add table ip raw",
		"nft add chain ip raw OUTPUT { type filter hook output priority -300; }", "nft add rule ip raw OUTPUT ip daddr 169.254.25.10 udp dport 53 notrack",
	} {
		shell(t, line)
	}
	nodeCache, err := net.ListenPacket("udp", "169.254.25.10:53")
	if err != nil {
		t.Fatal(err)
	}
	picture := func() string { return shell(t, "nft list ruleset") + shell(t, "ip -o addr show") }
	expect := func(line string, want, never []string) {
		t.Helper()
		status, text := runSelf(strings.Fields(line)...)
		if strings.HasPrefix(line, "cleanup") && status != 0 {
			t.Errorf("%s: status %d:\n%s", line, status, text)
		}
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s: not told: %q in\n%s", line, w, text)
			}
		}
		for _, n := range never {
			if strings.Contains(text, n) {
				t.Errorf("%s: told: %q in\n%s", line, n, text)
			}
		}
	}
	expect("doctor -before -config "+config, []string{"node-cache: somebody serves 169.254.25.10"}, []string{"leftovers: of node-cache", "nodens cleanup"})
	expect("cleanup -config "+config, []string{"link nodens: not wanted", "note: somebody still serves 169.254.25.10"}, []string{"node-cache: removed"})
	if rest := picture(); strings.Contains(rest, "nodens_v1") || strings.Contains(rest, "169.254.20.10") || !strings.Contains(rest, "notrack") || !strings.Contains(rest, link) {
		t.Errorf("after the clean-up beside node-cache:\n%s", rest)
	}
	if err := nodeCache.Close(); err != nil {
		t.Fatal(err)
	}
	expect("doctor -before -config "+config, []string{"leftovers: of node-cache: rule"}, []string{"somebody serves"})
	expect("cleanup -config "+config, []string{"node-cache: removed: rule"}, []string{"note:"})
	if rest := picture(); strings.Contains(rest, "notrack") || link == "nodelocaldns" && strings.Contains(rest, link) {
		t.Errorf("after the clean-up:\n%s", rest)
	}
}
