package space

import "testing"

// Node is a node with two pods that ask and two that answer, one each on its bridge
// and on a routed veth of its own:
//
//	bridge br0 10.1.0.1/24 fd01::1/64   asks: 10.1.0.7, fd01::7   answers: 10.1.0.53, fd01::53
//	veth       10.2.0.1    fd02::1      asks: 10.2.0.7, fd02::7   answers: 10.2.0.53, fd02::53
type Node struct {
	Space
	Bridged, Routed     Space // pods that ask
	Answers, FarAnswers Space // pods that answer, on the bridge and routed
}

// NewNode makes a node with its pods, in which nothing runs yet.
func NewNode(t testing.TB) Node {
	t.Helper()
	n := Node{Space: New(t), Bridged: New(t), Routed: New(t), Answers: New(t), FarAnswers: New(t)}
	for _, key := range []string{"ipv4/ip_forward", "ipv6/conf/all/forwarding"} {
		n.Sysctl(t, key, "1")
	}
	n.Run(t, "ip", "link", "add", "br0", "type", "bridge")
	n.Address(t, "br0", "10.1.0.1/24", "fd01::1/64")
	n.plug(t, "vb7", n.Bridged, "10.1.0.7/24", "fd01::7/64")
	n.plug(t, "vb53", n.Answers, "10.1.0.53/24", "fd01::53/64")
	n.join(t, "vr7", n.Routed, "10.2.0.7", "fd02::7")
	n.join(t, "vr53", n.FarAnswers, "10.2.0.53", "fd02::53")
	return n
}

// plug puts a pod on the bridge.
func (n Node) plug(t testing.TB, port string, pod Space, cidr4, cidr6 string) {
	t.Helper()
	n.Veth(t, port, pod)
	if err := n.nl.LinkSetMaster(n.Link(t, port), n.Link(t, "br0")); err != nil {
		t.Fatal(err)
	}
	pod.Address(t, "eth0", cidr4, cidr6)
	pod.Route(t, "0.0.0.0/0", "10.1.0.1", "")
	pod.Route(t, "::/0", "fd01::1", "")
}

// join routes to a pod by a veth without a subnet.
func (n Node) join(t testing.TB, name string, pod Space, addr4, addr6 string) {
	t.Helper()
	n.Veth(t, name, pod)
	n.Address(t, name, "10.2.0.1/32", "fd02::1/128")
	n.Route(t, addr4+"/32", "", name)
	n.Route(t, addr6+"/128", "", name)
	pod.Address(t, "eth0", addr4+"/32", addr6+"/128")
	pod.Route(t, "10.2.0.1/32", "", "eth0")
	pod.Route(t, "fd02::1/128", "", "eth0")
	pod.Route(t, "0.0.0.0/0", "10.2.0.1", "")
	pod.Route(t, "::/0", "fd02::1", "")
}
