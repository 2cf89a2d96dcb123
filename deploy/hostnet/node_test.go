package hostnet_test

import (
	"testing"

	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// node is a node with a host. Its answering pods are called coredns, on the bridge,
// and coredns2, and listen on port 5300 for UDP and 5301 for TCP.
type node struct {
	space.Node
	host *hostnet.Host
}

func newNode(t *testing.T) node {
	t.Helper()
	n := node{Node: space.NewNode(t)}
	n.host = n.openHost(t)
	start(t, n.Answers, "coredns", "udp/[::]:5300", "tcp/[::]:5301")
	start(t, n.FarAnswers, "coredns2", "udp/[::]:5300", "tcp/[::]:5301")
	return n
}

func (n node) openHost(t *testing.T) *hostnet.Host {
	t.Helper()
	host, err := hostnet.New(hostnet.Config{NetNS: n.FD()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(host.Close)
	return host
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
	return start(t, n.Space, "server", listen...)
}

// dns is an address with the port of the tests.
func dns(addr string) string {
	if addrs(addr)[0].Is6() {
		return "[" + addr + "]:53"
	}
	return addr + ":53"
}
