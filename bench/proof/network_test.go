package proof

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/nodens-dns/nodens/bench/space"
)

// ground is what a cluster stands on: places for its nodes and pods, and
// addresses for them.
type ground interface {
	node(i int) place // i from 1
	// listen is where the nodens of a node listens, and admin its HTTP.
	listen(i int) netip.AddrPort
	admin(i int) netip.AddrPort
	// newPod makes a place with an address on a node, where DNS may be served
	// at the given port.
	newPod(i int) (place, netip.AddrPort)
	// removePod takes place and address away.
	removePod(place)
	// client is a place from where pods of the node ask.
	client(i int) place
}

// network is a ground of namespaces. Nodes hang on a switch, pods on their node
// by a routed veth each, as most CNIs have it: a pod's address is known to its
// node by a route and a fixed neighbour, so that nothing but the pod itself
// decides whether it answers.
type network struct {
	t       *testing.T
	prefix  string
	pods    map[string]wiring
	made    int // pods, ever
	clients [4]place
}

// wiring is how a pod hangs on its node.
type wiring struct {
	node       int
	link       string // on the node
	address    netip.Addr
	inner, out string // link addresses
}

const (
	nodeAddress = "169.254.20.10" // of nodens, on every node
	gateway     = "169.254.1.1"   // of every pod
)

// newNetwork makes three nodes with a client pod each.
func newNetwork(t *testing.T) *network {
	t.Helper()
	space.Needs(t, "root", os.Geteuid() == 0)
	n := &network{t: t, prefix: fmt.Sprintf("ndp%d-", os.Getpid()), pods: make(map[string]wiring)}
	probe := n.prefix + "try"
	err := exec.Command("ip", "netns", "add", probe).Run()
	space.Needs(t, "netns", err == nil)
	n.ip("", "netns del "+probe)
	n.add("sw")
	n.ip("sw", "link add br0 type bridge", "link set br0 up")
	for i := 1; i <= 3; i++ {
		n.addNode(i)
		n.clients[i], _ = n.newPod(i)
	}
	return n
}

// ip does lines of the ip command in a namespace of ours.
func (n *network) ip(namespace string, lines ...string) {
	n.t.Helper()
	args := []string{"-batch", "-"}
	if namespace != "" {
		args = append([]string{"-n", n.prefix + namespace}, args...)
	}
	c := exec.Command("ip", args...)
	c.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	if out, err := c.CombinedOutput(); err != nil {
		n.t.Fatalf("ip in %q: %v\n%s%s", namespace, err, strings.Join(lines, "\n"), out)
	}
}

// add makes a namespace that goes with the test.
func (n *network) add(name string) place {
	n.t.Helper()
	n.ip("", "netns add "+n.prefix+name)
	n.t.Cleanup(func() { n.drop(n.prefix + name) })
	n.ip(name, "link set lo up")
	return place{n.prefix + name}
}

// drop removes a namespace, which takes its links along. It may be gone.
func (n *network) drop(namespace string) {
	_ = exec.Command("ip", "netns", "del", namespace).Run()
}

func (n *network) addNode(i int) {
	n.t.Helper()
	name := fmt.Sprintf("n%d", i)
	p := n.add(name)
	n.ip("", fmt.Sprintf("link add trunk netns %s type veth peer name up%d netns %ssw", p.namespace, i, n.prefix))
	n.ip("sw", fmt.Sprintf("link set up%d master br0", i), fmt.Sprintf("link set up%d up", i))
	lines := []string{"link set trunk up", fmt.Sprintf("addr add 10.99.0.%d/24 dev trunk", i), "addr add " + nodeAddress + "/32 dev lo"}
	for j := 1; j <= 3; j++ {
		if j != i {
			lines = append(lines, fmt.Sprintf("route add 10.99.%d.0/24 via 10.99.0.%d", 10+j, j))
		}
	}
	n.ip(name, lines...)
	err := p.do(func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o600) })
	if err != nil {
		n.t.Fatal(err)
	}
}

func (n *network) node(i int) place            { return place{fmt.Sprintf("%sn%d", n.prefix, i)} }
func (n *network) client(i int) place          { return n.clients[i] }
func (n *network) listen(int) netip.AddrPort   { return netip.MustParseAddrPort(nodeAddress + ":53") }
func (n *network) admin(int) netip.AddrPort    { return netip.MustParseAddrPort("127.0.0.1:9253") }
func (n *network) name(p place) (short string) { return strings.TrimPrefix(p.namespace, n.prefix) }

func (n *network) newPod(i int) (place, netip.AddrPort) {
	n.t.Helper()
	n.made++
	k, name := n.made, fmt.Sprintf("p%d", n.made)
	p := n.add(name)
	w := wiring{
		node: i, link: fmt.Sprintf("v%d", k), address: netip.AddrFrom4([4]byte{10, 99, byte(10 + i), byte(k)}),
		inner: fmt.Sprintf("02:00:00:00:%02x:01", k), out: fmt.Sprintf("02:00:00:00:%02x:02", k),
	}
	n.pods[p.namespace] = w
	n.ip("", fmt.Sprintf("link add eth0 netns %s address %s type veth peer name %s netns %s address %s",
		p.namespace, w.inner, w.link, n.node(i).namespace, w.out))
	n.ip(name, "link set eth0 up")
	n.giveAddress(p)
	n.ip(fmt.Sprintf("n%d", i),
		fmt.Sprintf("link set %s up", w.link),
		fmt.Sprintf("neigh add %v lladdr %s dev %s nud permanent", w.address, w.inner, w.link),
		fmt.Sprintf("route add %v/32 dev %s", w.address, w.link))
	return p, netip.AddrPortFrom(w.address, 53)
}

func (n *network) giveAddress(p place) {
	n.t.Helper()
	w := n.pods[p.namespace]
	n.ip(n.name(p),
		fmt.Sprintf("addr add %v/32 dev eth0", w.address),
		fmt.Sprintf("neigh replace %s lladdr %s dev eth0 nud permanent", gateway, w.out),
		fmt.Sprintf("route replace %s dev eth0 scope link", gateway),
		fmt.Sprintf("route replace default via %s dev eth0", gateway))
}

// takeAddress makes a pod a black hole: what is sent to it arrives and is
// dropped there, without a refusal, because it is for nobody.
func (n *network) takeAddress(p place) {
	n.t.Helper()
	n.ip(n.name(p), fmt.Sprintf("addr del %v/32 dev eth0", n.pods[p.namespace].address))
}

func (n *network) removePod(p place) {
	n.drop(p.namespace)
	delete(n.pods, p.namespace)
}

// cutOff lets no frame pass between a node and the switch, as if its power were
// gone; joinAgain ends that.
func (n *network) cutOff(i int)    { n.port(i, 0) }
func (n *network) joinAgain(i int) { n.port(i, 3) }

func (n *network) port(i, state int) {
	n.t.Helper()
	c := exec.Command("bridge", "-n", n.prefix+"sw", "link", "set", "dev", fmt.Sprintf("up%d", i), "state", strconv.Itoa(state))
	if out, err := c.CombinedOutput(); err != nil {
		n.t.Fatalf("%v: %v\n%s", c.Args, err, out)
	}
}

// removeLeftovers removes the namespaces of runs that died. Their processes
// died with them.
func removeLeftovers() {
	out, err := exec.Command("ip", "netns", "list").Output()
	if err != nil {
		return
	}
	for line := range strings.Lines(string(out)) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		number, rest := strings.CutPrefix(name, "ndp")
		number, _, found := strings.Cut(number, "-")
		pid, err := strconv.Atoi(number)
		if rest && found && err == nil && syscall.Kill(pid, 0) == syscall.ESRCH {
			_ = exec.Command("ip", "netns", "del", name).Run()
		}
	}
}
