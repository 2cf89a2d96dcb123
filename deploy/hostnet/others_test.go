package hostnet_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// What kube-proxy and firewalls set up is told apart, and what is ours is not theirs.
func TestOthers(t *testing.T) {
	n := newNode(t)
	n.apply(t, linkLocal())
	see := func(want hostnet.Others) {
		t.Helper()
		got, err := n.host.Others()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	see(hostnet.Others{})
	n.Run(t, "iptables-nft", "-t", "nat", "-N", "KUBE-SERVICES")
	see(hostnet.Others{Proxies: []string{"iptables"}})
	n.Run(t, "nft", "add table ip6 kube-proxy")
	n.Run(t, "nft", "add chain ip6 kube-proxy services")
	n.Run(t, "ip", "link", "add", "kube-ipvs0", "type", "bridge")
	n.Run(t, "iptables-nft", "-P", "INPUT", "DROP")
	n.Run(t, "iptables-nft", "-N", "cali-INPUT")
	n.Run(t, "nft", "add table inet firewalld")
	n.Run(t, "nft", "add chain inet firewalld filter_INPUT { type filter hook input priority 10; }")
	see(hostnet.Others{
		Proxies: []string{"ipvs", "iptables", "nftables"},
		Firewalls: []string{
			"chain INPUT of table ip filter (policy drop)", "chain cali-INPUT of table ip filter (Calico)",
			"chain filter_INPUT of table inet firewalld (firewalld)",
		},
	})
}
