package hostnet_test

import (
	"testing"

	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// node is a node with two pods that ask and two that answer, one each on its bridge
// and on a routed veth of its own:
//
//	bridge br0 10.1.0.1/24 fd01::1/64   asks: 10.1.0.7, fd01::7   answers: 10.1.0.53, fd01::53
//	veth       10.2.0.1    fd02::1      asks: 10.2.0.7, fd02::7   answers: 10.2.0.53, fd02::53
//
// The answering pods listen on port 5300 for UDP and 5301 for TCP.
type node struct {
	space
	bridged, routed   space // pods that ask
	coredns, coredns2 space // pods that answer
	host              *hostnet.Host
}

func newNode(t *testing.T) node {
	t.Helper()
	n := node{
		space: newSpace(t), bridged: newSpace(t), routed: newSpace(t), coredns: newSpace(t), coredns2: newSpace(t),
	}
	for _, key := range []string{"ipv4/ip_forward", "ipv6/conf/all/forwarding"} {
		n.sysctl(t, key, "1")
	}
	n.run(t, "ip", "link", "add", "br0", "type", "bridge")
	n.address(t, "br0", "10.1.0.1/24", "fd01::1/64")
	n.plug(t, "vb7", n.bridged, "10.1.0.7/24", "fd01::7/64")
	n.plug(t, "vb53", n.coredns, "10.1.0.53/24", "fd01::53/64")
	n.join(t, "vr7", n.routed, "10.2.0.7", "fd02::7")
	n.join(t, "vr53", n.coredns2, "10.2.0.53", "fd02::53")
	n.host = n.openHost(t)

	n.coredns.start(t, "coredns", "udp/[::]:5300", "tcp/[::]:5301")
	n.coredns2.start(t, "coredns2", "udp/[::]:5300", "tcp/[::]:5301")
	return n
}

func (n node) openHost(t *testing.T) *hostnet.Host {
	t.Helper()
	host, err := hostnet.New(hostnet.Config{NetNS: n.fd()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(host.Close)
	return host
}

// plug puts a pod on the bridge.
func (n node) plug(t *testing.T, port string, pod space, cidr4, cidr6 string) {
	t.Helper()
	n.veth(t, port, pod)
	if err := n.nl.LinkSetMaster(n.link(t, port), n.link(t, "br0")); err != nil {
		t.Fatal(err)
	}
	pod.address(t, "eth0", cidr4, cidr6)
	pod.route(t, "0.0.0.0/0", "10.1.0.1", "")
	pod.route(t, "::/0", "fd01::1", "")
}

// join routes to a pod by a veth without a subnet.
func (n node) join(t *testing.T, name string, pod space, addr4, addr6 string) {
	t.Helper()
	n.veth(t, name, pod)
	n.address(t, name, "10.2.0.1/32", "fd02::1/128")
	n.route(t, addr4+"/32", "", name)
	n.route(t, addr6+"/128", "", name)
	pod.address(t, "eth0", addr4+"/32", addr6+"/128")
	pod.route(t, "10.2.0.1/32", "", "eth0")
	pod.route(t, "fd02::1/128", "", "eth0")
	pod.route(t, "0.0.0.0/0", "10.2.0.1", "")
	pod.route(t, "::/0", "fd02::1", "")
}

// Listen addresses of the tests.
const (
	own4     = "169.254.20.10"
	own6     = "fd00:90de:d95::1"
	cluster4 = "10.96.0.10"
	cluster6 = "fd10::a"
)

func linkLocal() hostnet.State {
	return hostnet.State{
		Mode: hostnet.LinkLocal,
		Own:  addrs(own4, own6),
		Fallback: hostnet.Fallback{
			UDP: targets("10.1.0.53:5300", "10.2.0.53:5300", "[fd01::53]:5300", "[fd02::53]:5300"),
			TCP: targets("10.1.0.53:5301", "10.2.0.53:5301", "[fd01::53]:5301", "[fd02::53]:5301"),
		},
	}
}

func service() hostnet.State {
	s := linkLocal()
	s.Mode, s.Service = hostnet.Service, addrs(cluster4, cluster6)
	return s
}

func (n node) apply(t *testing.T, s hostnet.State) hostnet.Report {
	t.Helper()
	report, err := n.host.Apply(s)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// server starts what stands for our process: a socket for each protocol and address.
func (n node) server(t *testing.T, list ...string) *responder {
	t.Helper()
	var listen []string
	for _, a := range list {
		listen = append(listen, "udp/"+dns(a), "tcp/"+dns(a))
	}
	return n.start(t, "server", listen...)
}

// dns is an address with the port of the tests.
func dns(addr string) string {
	if addrs(addr)[0].Is6() {
		return "[" + addr + "]:53"
	}
	return addr + ":53"
}
