package neverdark

// upstream4 is the address of a second Service with the same pods behind it, which a
// daemon that has the address of the first one for itself asks.
const upstream4 = "10.96.0.11"

// kubeProxy puts rules of the shape of a kube-proxy's in nftables mode.
func (n *node) kubeProxy() {
	n.t.Helper()
	n.Run(n.t, "nft", "-f", n.write("kube-proxy.nft", `
table inet kube-proxy {
	chain nat-prerouting { type nat hook prerouting priority -100; policy accept; jump services; }
	chain nat-output { type nat hook output priority -100; policy accept; jump services; }
	chain services {
		ip daddr { 10.96.0.10, 10.96.0.11 } udp dport 53 dnat ip to 10.2.0.53:5300
		ip daddr { 10.96.0.10, 10.96.0.11 } tcp dport 53 dnat ip to 10.2.0.53:5300
		ip6 daddr fd10::a udp dport 53 dnat ip6 to [fd02::53]:5300
		ip6 daddr fd10::a tcp dport 53 dnat ip6 to [fd02::53]:5300
	}
}
`))
}
