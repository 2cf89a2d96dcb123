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
