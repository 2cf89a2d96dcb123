package hostnet_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// kubeProxy puts rules of the shape of a kube-proxy's, which send the addresses of the
// DNS Service to the pod coredns. In mode iptables it uses the program of that name,
// which is one of two.
func (n node) kubeProxy(t *testing.T, mode string) {
	t.Helper()
	if mode == "nftables" {
		n.load(t, kubeProxyTable)
		return
	}
	for _, f := range []struct{ command, cluster, udp, tcp string }{
		{mode, cluster4, "10.1.0.53:5300", "10.1.0.53:5301"},
		{strings.Replace(mode, "ip", "ip6", 1), cluster6, "[fd01::53]:5300", "[fd01::53]:5301"},
	} {
		n.Run(t, f.command, "-t", "nat", "-N", "KUBE-SERVICES")
		for _, hook := range []string{"PREROUTING", "OUTPUT"} {
			n.Run(t, f.command, "-t", "nat", "-A", hook, "-m", "comment", "--comment", "kubernetes service portals", "-j", "KUBE-SERVICES")
		}
		for proto, target := range map[string]string{"udp": f.udp, "tcp": f.tcp} {
			n.Run(t, f.command, "-t", "nat", "-A", "KUBE-SERVICES", "-d", f.cluster, "-p", proto, "-m", proto, "--dport", "53",
				"-j", "DNAT", "--to-destination", target)
		}
	}
}

// load gives text to nft.
func (n node) load(t *testing.T, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rules.nft")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	n.Run(t, "nft", "-f", file)
}

const kubeProxyTable = `
table inet kube-proxy {
	chain nat-prerouting { type nat hook prerouting priority -100; policy accept; jump services; }
	chain nat-output { type nat hook output priority -100; policy accept; jump services; }
	chain services {
		ip daddr 10.96.0.10 udp dport 53 dnat ip to 10.1.0.53:5300
		ip daddr 10.96.0.10 tcp dport 53 dnat ip to 10.1.0.53:5301
		ip6 daddr fd10::a udp dport 53 dnat ip6 to [fd01::53]:5300
		ip6 daddr fd10::a tcp dport 53 dnat ip6 to [fd01::53]:5301
	}
	chain filter-input { type filter hook input priority filter; policy accept; ct state new jump firewall; }
	chain firewall { ip daddr 10.96.0.11 reject; }
	chain filter-output-post-dnat { type filter hook output priority -90; policy accept; ct state new jump cluster-ips-check; }
	chain cluster-ips-check {
		ip daddr 10.96.0.10 reject comment "what was not translated is for a port that the Service does not have"
		ip6 daddr fd10::a reject
	}
}
`

// TestServiceMode asks a pod beyond the bridge, since kube-proxy does not hide the
// client from a pod on its own bridge.
func TestServiceMode(t *testing.T) {
	for _, proxy := range []string{"iptables-nft", "iptables-legacy", "nftables"} {
		for _, tracked := range []bool{false, true} {
			t.Run(proxy+map[bool]string{true: ", tracked"}[tracked], func(t *testing.T) {
				n := newNode(t)
				n.kubeProxy(t, proxy)
				state := oneTarget(service())
				state.Tracked = tracked
				state.Exempt = hostnet.Exempt{UIDs: []uint32{65532}, Marks: []uint32{0x77}}
				n.apply(t, state)
				for range 2 {
					n.inServiceMode(t)
				}
			})
		}
	}
}

// inServiceMode is one life of the server. Source ports that stay are used in every
// phase.
func (n node) inServiceMode(t *testing.T) {
	t.Helper()
	all := cells(own4, own6, cluster4, cluster6)
	clusters := cells(cluster4, cluster6)
	udp := []cell{{"udp", dns(cluster4)}, {"udp", dns(cluster6)}}
	pod, fixed := client{space: n.Routed}, client{space: n.Routed, port: 7001}
	here, fixedHere := client{space: n.Space}, client{space: n.Space, port: 7002}
	exempt := []client{{space: n.Space, uid: 65532}, {space: n.Space, mark: 0x77}}

	server := n.server(t, own4, own6, cluster4, cluster6)
	n.hold(t, hostnet.Alive, own4, own6, cluster4, cluster6)
	answers(t, "alive, pod", pod, "server", all)
	answers(t, "alive, pod on the bridge", client{space: n.Bridged}, "server", all)
	answers(t, "alive, pod with a fixed port", fixed, "server", udp)
	answers(t, "alive, node", here, "server", all)
	answers(t, "alive, node with a fixed port", fixedHere, "server", udp)
	for _, c := range exempt {
		answers(t, "alive, exempt", c, "coredns", clusters)
	}

	n.hold(t, hostnet.Bypass, cluster4, cluster6)
	answers(t, "bypass, pod", pod, "coredns", clusters)
	answers(t, "bypass, node", here, "coredns", clusters)
	n.release(t, hostnet.Bypass, cluster4, cluster6)

	server.kill()
	answers(t, "dead, pod", pod, "coredns", all)
	answers(t, "dead, pod with a fixed port", fixed, "coredns", udp)
	n.release(t, hostnet.Alive, own4, own6, cluster4, cluster6)
	answers(t, "dead, node", here, "coredns", all)
	answers(t, "dead, node with a fixed port", fixedHere, "coredns", udp)
}

// TestWithoutEndpointsOfTheService holds kube-proxy's refusal against the ways in
// which we take a query: it looks at new connections, so untracked ones pass.
func TestWithoutEndpointsOfTheService(t *testing.T) {
	n := newNode(t)
	n.load(t, `
table inet kube-proxy {
	chain filter-input { type filter hook input priority filter; policy accept; ct state new jump no-endpoints; }
	chain no-endpoints { ip daddr 10.96.0.10 reject; }
}`)
	state := oneTarget(service())
	n.apply(t, state)
	n.server(t, cluster4)
	udp := []cell{{"udp", dns(cluster4)}}
	pod := client{space: n.Routed, wait: 300e6}
	answers(t, "untracked", pod, "server", udp)

	state.Tracked = true
	n.apply(t, state)
	answers(t, "tracked, which is a known loss", pod, noAnswer, udp)
}

// TestWhoIsHiddenInServiceMode asks what the target heard: a pod that kube-proxy
// brought there as itself, and everybody else as the node.
func TestWhoIsHiddenInServiceMode(t *testing.T) {
	n := newNode(t)
	n.kubeProxy(t, "nftables")
	n.apply(t, oneTarget(service()))
	for _, c := range []struct {
		name        string
		from        space.Space
		addr, heard string
	}{
		{"pod to the Service", n.Routed, cluster4, "10.2.0.7:"},
		{"pod to the Service, IPv6", n.Routed, cluster6, "[fd02::7]:"},
		{"pod to our address", n.Routed, own4, "10.1.0.1:"},
		{"pod to our address, IPv6", n.Routed, own6, "[fd01::1]:"},
		{"node to the Service", n.Space, cluster4, "10.1.0.1:"},
		{"node to the Service, IPv6", n.Space, cluster6, "[fd01::1]:"},
		{"node to our address", n.Space, own4, "10.1.0.1:"},
	} {
		for _, proto := range []string{"udp", "tcp"} {
			got, err := client{space: c.from}.exchange(proto, dns(c.addr))
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if want := "coredns " + c.heard; !strings.HasPrefix(got, want) {
				t.Errorf("%s, %s: %q, want %q", c.name, proto, got, want)
			}
		}
	}
}
