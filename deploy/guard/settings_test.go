package guard_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// settingVariable names the setting of a test and of its roles, one of settings.
const settingVariable = "GUARD_TEST_SETTING"

// settings are the modes, and in each of them the families.
func settings() []string {
	return []string{"link-local", "link-local, IPv6", "service", "service, IPv6"}
}

// setting is the mode, and the address that clients ask.
func setting() (mode hostnet.Mode, asked netip.Addr) {
	switch os.Getenv(settingVariable) {
	case "link-local, IPv6":
		return hostnet.LinkLocal, netip.MustParseAddr(own6)
	case "service":
		return hostnet.Service, netip.MustParseAddr(cluster)
	case "service, IPv6":
		return hostnet.Service, netip.MustParseAddr(cluster6)
	}
	return hostnet.LinkLocal, netip.MustParseAddr(own)
}

// hostState is what a guard is asked for.
func hostState() hostnet.State {
	mode, asked := setting()
	s := hostnet.State{Mode: mode, Own: []netip.Addr{asked}, ProbeMark: mark}
	if mode == hostnet.Service {
		s.Own, s.Service = []netip.Addr{netip.MustParseAddr(own)}, []netip.Addr{asked}
		if asked.Is6() {
			s.Own = []netip.Addr{netip.MustParseAddr(own6)}
		}
	}
	return s
}

// onNodes runs f in every setting, each in a process with a network of its own.
func onNodes(t *testing.T, f func(t *testing.T, n *node)) {
	t.Helper()
	for _, name := range settings() {
		t.Run(name, func(t *testing.T) {
			t.Setenv(settingVariable, name)
			onNode(t, f)
		})
	}
}

// kubeProxy puts rules of the shape of a kube-proxy's, which lead to coredns.
func (n *node) kubeProxy(t *testing.T) {
	t.Helper()
	file := filepath.Join(n.folder, "kube-proxy.nft")
	if err := os.WriteFile(file, []byte(`
table inet kube-proxy {
	chain nat-prerouting { type nat hook prerouting priority -100; policy accept; jump services; }
	chain nat-output { type nat hook output priority -100; policy accept; jump services; }
	chain services {
		ip daddr `+cluster+` meta l4proto { tcp, udp } th dport 53 dnat ip to `+coredns+`:53
		ip6 daddr `+cluster6+` meta l4proto { tcp, udp } th dport 53 dnat ip6 to [`+coredns6+`]:53
	}
	chain filter-output-post-dnat { type filter hook output priority -90; policy accept; ct state new jump cluster-ips-check; }
	chain cluster-ips-check {
		ip daddr `+cluster+` reject
		ip6 daddr `+cluster6+` reject
	}
}`), 0o644); err != nil {
		t.Fatal(err)
	}
	n.Run(t, "nft", "-f", file)
}
