package e2e

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/deploy/e2e/cluster"
)

// proxied is a node in a network namespace, with the real kube-proxy, a pod that is
// CoreDNS, pods that ask, and the API server where the kubeconfig says it is.
type proxied struct {
	space.Node
	t     *testing.T
	stage *cluster.Stage
	dir   string
	vips  []netip.Addr // of the Service, of both families
}

// TestKubeProxy puts each mode of ours beside the real kube-proxy in each of its modes,
// which makes its rules of what the real API server says. It asks everywhere, as a pod
// and as the node, while nodens lives, when it and its guard were killed, and after the
// clean-up.
func TestKubeProxy(t *testing.T) {
	for name, tools := range map[string]struct{ mode, iptables string }{
		"iptables":        {"iptables", "xtables-nft-multi"},
		"iptables-legacy": {"iptables", "xtables-legacy-multi"},
		"nftables":        {"nftables", "xtables-nft-multi"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newProxied(t)
			n.startProxy(tools.mode, tools.iptables)
			n.expect("kube-proxy alone", map[string]string{"Service": byCoreDNS})
			for _, mode := range []string{"mode: link-local", "mode: service", "mode: service, tracked: true"} {
				n.lifeAndDeath(mode)
			}
		})
	}
}

// lifeAndDeath is one life of nodens in a mode, and what comes after.
func (n *proxied) lifeAndDeath(mode string) {
	n.t.Helper()
	config := n.configure(mode)
	program := os.Getenv("NODENS_BINARY")
	run := func(command string) *space.Process {
		cmd := exec.Command(program, command, "-config", config)
		cmd.Env = append(os.Environ(), "KUBERNETES_SERVICE_HOST="+apiAddress)
		return n.Start(n.t, cmd)
	}
	guard, serve := run("guard"), run("serve")
	service := map[bool]string{true: byNodens, false: byCoreDNS}[strings.HasPrefix(mode, "mode: service")]
	n.expect(mode+", alive", map[string]string{"own": byNodens, "Service": service})
	n.awaitFallback()
	if service == byNodens {
		n.expectProbes(mode)
	}
	for _, p := range []*space.Process{serve, guard} {
		p.End(syscall.SIGKILL)
	}
	n.expect(mode+", dead", map[string]string{"own": byCoreDNS, "Service": byCoreDNS})
	cleanup := n.Start(n.t, exec.Command(program, "cleanup", "-config", config))
	<-cleanup.Done()
	if rest := n.Run(n.t, "nft", "list", "ruleset") + n.Run(n.t, "ip", "addr"); strings.Contains(rest, "nodens") {
		n.t.Errorf("%s: after the clean-up, which said\n%s\nthere is:\n%s", mode, cleanup.Said(), rest)
	}
	n.expect(mode+", cleaned up", map[string]string{"Service": byCoreDNS})
}

func newProxied(t *testing.T) *proxied {
	t.Helper()
	s := stage(t)
	if os.Geteuid() != 0 {
		missing(t, "root", "only root can make a network namespace")
	}
	if os.Getenv("NODENS_COREDNS") == "" || os.Getenv("NODENS_BINARY") == "" {
		missing(t, "coredns", "NODENS_COREDNS and NODENS_BINARY name no CoreDNS and no nodens; use make e2e")
	}
	n := &proxied{Node: space.NewNode(t), t: t, stage: s, dir: t.TempDir()}
	// A node has a default route, without which the kernel sends nothing to a Service. It
	// must not lead to where pods are, who would be told to go there by themselves.
	n.Route(t, "0.0.0.0/0", "", "vr53")
	n.Route(t, "::/0", "", "vr53")
	s.AddNode("n1", "za")
	s.AddService(cluster.DualStack)
	n.vips = s.ClusterIPs()
	s.AddPod("a1", "n1")
	four, six := s.Addresses("a1")
	n.FarAnswers.Address(t, "eth0", four.String()+"/32", six.String()+"/128")
	n.Route(t, four.String()+"/32", "", "vr53")
	n.Route(t, six.String()+"/128", "", "vr53")
	corefile := n.write("Corefile", `.:53 {
	template IN A . {
		answer "{{ .Name }} 5 IN A `+apiAddress+`"
	}
	template IN AAAA . {
		rcode NOERROR
	}
}
`)
	n.FarAnswers.Start(t, exec.Command(os.Getenv("NODENS_COREDNS"), "-conf", corefile))
	for _, address := range []netip.Addr{four, six} {
		waitFor(t, "CoreDNS", patience, func() bool { return answersOf(n.Routed, "udp", address) == byCoreDNS })
	}
	s.Ready("a1", true)

	var listener net.Listener
	n.In(t, func() (err error) { listener, err = net.Listen("tcp", shared.cluster.Address()); return err })
	t.Cleanup(cluster.NewProxyOn(listener, shared.cluster.Address()).Close)
	return n
}

// write writes a file.
func (n *proxied) write(name, text string) string {
	n.t.Helper()
	path := filepath.Join(n.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		n.t.Fatal(err)
	}
	return path
}

// startProxy starts kube-proxy with one of the two programs that are called iptables.
func (n *proxied) startProxy(mode, iptables string) {
	n.t.Helper()
	path := filepath.Join(n.dir, "bin")
	err := os.Mkdir(path, 0o755)
	for _, family := range []string{"iptables", "ip6tables"} {
		for _, what := range []string{"", "-save", "-restore"} {
			if err == nil {
				err = os.Symlink("/usr/sbin/"+iptables, filepath.Join(path, family+what))
			}
		}
	}
	if err != nil {
		n.t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(os.Getenv("NODENS_CONTROL_PLANE"), "kube-proxy"),
		"--kubeconfig="+shared.cluster.Kubeconfig(), "--hostname-override="+n.stage.NodeName("n1"), "--proxy-mode="+mode,
		"--cluster-cidr=10.0.0.0/9,fd00::/16", "--healthz-bind-address=127.0.0.1:10256", "--metrics-bind-address=127.0.0.1:10249",
		// The table of connections is the machine's.
		"--conntrack-max-per-core=0", "--conntrack-min=0", "--conntrack-tcp-timeout-established=0s", "--conntrack-tcp-timeout-close-wait=0s")
	cmd.Env = append(os.Environ(), "PATH="+path+":"+os.Getenv("PATH"))
	n.Start(n.t, cmd)
}

// The addresses of the node's own in link-local and service mode.
const (
	own4 = "169.254.20.10"
	own6 = "fd00:90de:d95::1"
)

// addresses are those of a kind: own, or of the Service.
func (n *proxied) addresses(kind string) []netip.Addr {
	if kind == "own" {
		return []netip.Addr{netip.MustParseAddr(own4), netip.MustParseAddr(own6)}
	}
	return n.vips
}

func (n *proxied) configure(mode string) string {
	n.t.Helper()
	listen, host := n.addresses("own"), mode
	if strings.HasPrefix(mode, "mode: service") {
		listen = append(listen, n.vips...)
		host += fmt.Sprintf(", service: [%q, %q]", n.vips[0], n.vips[1])
	}
	var at []string
	for _, a := range listen {
		at = append(at, fmt.Sprintf("%q", netip.AddrPortFrom(a, 53)))
	}
	account := n.stage.Account("nodens" + fmt.Sprint(len(mode)))
	account.Grant(shippedRules(n.t, "rbac.yaml"))
	return n.write("nodens.yaml", fmt.Sprintf(`version: v1
listen: [%s]
node: {name: %s}
kubernetes: {server: %q, caFile: %s, tokenFile: %s, snapshots: %s}
admin: {address: "127.0.0.1:9253"}
host: {%s, socket: %[6]s/guard.sock, lock: %[6]s/guard.lock, endpoints: %[6]s/endpoints.json}
routes:
- zones: [.]
  topology: {namespace: %[8]s}
log: {format: console}
`, strings.Join(at, ", "), n.stage.NodeName("n1"), shared.cluster.URL(), shared.cluster.CAFile(), account.TokenFile, n.dir, host, n.stage.Namespace))
}

// expect waits until the right one answers everybody at every address of a kind, over
// UDP and TCP.
func (n *proxied) expect(when string, want map[string]string) {
	n.t.Helper()
	for kind, who := range want {
		for _, address := range n.addresses(kind) {
			for from, at := range map[string]space.Space{"pod on the bridge": n.Bridged, "routed pod": n.Routed, "node": n.Space} {
				for _, proto := range []string{"udp", "tcp"} {
					n.await(fmt.Sprintf("%s: %s %s at %v", when, from, proto, address), who, func() string { return answersOf(at, proto, address) })
				}
			}
		}
	}
}

// expectProbes asks as the guard does over TCP: each address has a socket of its own that
// answers, that of a Service too.
func (n *proxied) expectProbes(mode string) {
	n.t.Helper()
	for i, own := range n.addresses("own") {
		at := n.witness(own, own)
		n.await(fmt.Sprintf("%s: a probe over TCP at %v", mode, n.vips[i]), "another socket", func() string {
			got := n.witness(own, n.vips[i])
			if strings.HasPrefix(at, "nodens ") && strings.HasPrefix(got, "nodens ") && got != at {
				return "another socket"
			}
			return fmt.Sprintf("%q, and at %v %q", got, own, at)
		})
	}
}

// probeMark is that of the guard's probes.
const probeMark = 0x35

// witness is who says to read the connections at an address, to a probe.
func (n *proxied) witness(from, address netip.Addr) string {
	said := ""
	err := n.Try(func() error {
		dialer := net.Dialer{Timeout: time.Second, LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))}
		dialer.Control = func(_, _ string, raw syscall.RawConn) error {
			return raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, probeMark) })
		}
		conn, err := dialer.Dial("tcp", netip.AddrPortFrom(address, 53).String())
		if err != nil {
			return err
		}
		defer conn.Close()
		query := "\x00\x00\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x06socket\x06nodens\x00\x00\x10\x00\x03"
		if _, err := conn.Write([]byte("\x00" + string(rune(len(query))) + query)); err != nil {
			return err
		}
		reply := make([]byte, 512)
		_ = conn.SetReadDeadline(time.Now().Add(time.Second))
		size, err := conn.Read(reply)
		if at := strings.LastIndex(string(reply[:size]), "nodens "); at >= 0 {
			said = string(reply[at:size])
		}
		return err
	})
	if err != nil {
		return err.Error()
	}
	return said
}

// awaitFallback waits until the guard has put CoreDNS into the kernel: nodens answers
// before, and then nobody does if both are killed.
func (n *proxied) awaitFallback() {
	n.t.Helper()
	four, six := n.stage.Addresses("a1")
	for chain, target := range map[string]string{
		"fallback_udp4": four.String(), "fallback_tcp4": four.String(), "fallback_udp6": six.String(), "fallback_tcp6": six.String(),
	} {
		waitFor(n.t, chain+" to "+target, patience, func() bool {
			return strings.Contains(n.Run(n.t, "nft", "list", "chain", "inet", "nodens_v1", chain), target)
		})
	}
}

// await waits until something is the same three times in a row.
func (n *proxied) await(what, want string, get func() string) {
	n.t.Helper()
	got := ""
	for row, limit := 0, time.Now().Add(time.Minute); row < 3; row++ {
		if got = get(); got != want {
			row = -1
			time.Sleep(20 * time.Millisecond)
		}
		if time.Now().After(limit) {
			n.t.Fatalf("%s: %s, want %s", what, got, want)
		}
	}
}

// Who answers: nodens knows where a name of localhost leads by itself, CoreDNS here says
// the same of every name.
const (
	byNodens  = "127.0.0.1"
	byCoreDNS = apiAddress
)

// answersOf asks once.
func answersOf(from space.Space, proto string, server netip.Addr) string {
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (conn net.Conn, err error) {
		err = from.Try(func() error {
			conn, err = new(net.Dialer).DialContext(ctx, proto, netip.AddrPortFrom(server, 53).String())
			return err
		})
		return conn, err
	}}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	found, err := resolver.LookupNetIP(ctx, "ip4", "who.localhost.")
	if err != nil {
		return err.Error()
	}
	return found[0].Unmap().String()
}
