package neverdark

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/bench/names"
	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/bench/world"
	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// Where nodens listens, on the node's own addresses and on those of the Service.
const (
	own4     = "169.254.20.10"
	own6     = "fd00:90de:d95::1"
	cluster4 = "10.96.0.10"
	cluster6 = "fd10::a"
	admin    = "127.0.0.1:9253"
	podPort  = 5300 // of CoreDNS
)

// node is a node with two CoreDNS pods, and a guard.
type node struct {
	space.Node
	t     *testing.T
	dir   string
	mix   *names.Mix
	mode  hostnet.Mode
	guard *space.Process
	near  *space.Process // a CoreDNS
	host  *hostnet.Host  // to look at it
}

// newNode makes the node in a mode, and starts its guard.
func newNode(t *testing.T, mode hostnet.Mode) *node {
	t.Helper()
	n := newNodeAlone(t, mode)
	n.guard = n.startGuard()
	return n
}

// newNodeAlone makes it without a guard.
func newNodeAlone(t *testing.T, mode hostnet.Mode) *node {
	t.Helper()
	program, there := world.CoreDNS()
	space.Needs(t, "root", os.Geteuid() == 0)
	space.Needs(t, "coredns", there)
	mix, err := world.NewMix(3600)
	if err != nil {
		t.Fatal(err)
	}
	n := &node{Node: space.NewNode(t), t: t, dir: t.TempDir(), mix: mix, mode: mode}
	// A nodens that is not root looks into it too.
	for dir := n.dir; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	n.write("zone", world.ZoneFile(mix))
	n.write("Corefile", world.Server{Port: podPort, Sockets: 2, Zone: filepath.Join(n.dir, "zone")}.Corefile())
	n.showEndpoints(true)
	n.configure("")
	n.near = n.Answers.Start(t, n.answers(program))
	n.FarAnswers.Start(t, n.answers(program))
	for pod, addr := range map[space.Space]string{n.Answers: "10.1.0.53:5300", n.FarAnswers: "10.2.0.53:5300"} {
		waitFor(t, "CoreDNS", 30*time.Second, func() bool { return asks(pod, "udp", addr) == nil })
	}
	if n.host, err = hostnet.New(hostnet.Config{NetNS: n.FD()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.host.Close)
	return n
}

// startGuard starts a guard and waits until the node is as it should be.
func (n *node) startGuard() *space.Process {
	n.t.Helper()
	p := n.Start(n.t, exec.Command(nodens, "guard", "-config", filepath.Join(n.dir, "nodens.yaml")))
	waitFor(n.t, "the guard's table and addresses", 20*time.Second, func() bool {
		if !p.Running() {
			n.t.Fatalf("the guard has ended:\n%s", p.Said())
		}
		found, err := n.host.Read(n.state())
		return err == nil && found.Link.Up && len(found.Link.Addrs) == len(n.listen())
	})
	return p
}

// state is what the host is asked for, but for the fallback.
func (n *node) state() hostnet.State {
	s := hostnet.State{Mode: n.mode, Own: addrs(own4, own6)}
	if n.mode == hostnet.Service {
		s.Service = addrs(cluster4, cluster6)
	}
	return s
}

// showEndpoints writes what the API says: both pods, or only the far one.
func (n *node) showEndpoints(near bool) {
	n.t.Helper()
	var text strings.Builder
	for _, e := range []struct{ family, near, far string }{{"IPv4", "10.1.0.53", "10.2.0.53"}, {"IPv6", "fd01::53", "fd02::53"}} {
		fmt.Fprintf(&text, `---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: kube-dns-%[1]s, namespace: kube-system, labels: {kubernetes.io/service-name: kube-dns}}
addressType: %[1]s
ports:
- {name: dns, protocol: UDP, port: %[2]d}
- {name: dns-tcp, protocol: TCP, port: %[2]d}
endpoints:
- addresses: ["%[3]s"]
  nodeName: n1
  conditions: {ready: true}
  targetRef: {kind: Pod, namespace: kube-system, name: far, uid: far}
`, e.family, podPort, e.far)
		if near {
			fmt.Fprintf(&text, `- addresses: ["%s"]
  nodeName: n1
  conditions: {ready: true}
  targetRef: {kind: Pod, namespace: kube-system, name: near, uid: near}
`, e.near)
		}
	}
	n.write("slices.next", text.String())
	if err := os.Rename(filepath.Join(n.dir, "slices.next"), filepath.Join(n.dir, "slices")); err != nil {
		n.t.Fatal(err)
	}
}

// configure writes the configuration of guard and serve. more is further lines.
func (n *node) configure(more string) {
	n.t.Helper()
	var listen, service []string
	for _, a := range n.listen() {
		listen = append(listen, fmt.Sprintf("%q", netip.AddrPortFrom(a, 53)))
	}
	for _, a := range n.state().Service {
		service = append(service, fmt.Sprintf("%q", a))
	}
	host := "mode: " + n.mode.String()
	if len(service) > 0 {
		host += ", service: [" + strings.Join(service, ", ") + "]"
	}
	n.write("nodens.next", fmt.Sprintf(`version: v1
listen: [%s]
admin: {address: %q, pprof: all}
node: {name: n1}
host: {%s, socket: %[4]s/guard.sock, lock: %[4]s/guard.lock, endpoints: %[4]s/endpoints.json}
limits: {tcpConnectionsPerClient: 500}
routes: [{zones: [.], topology: {file: %[4]s/slices, namespace: kube-system, service: kube-dns}, probe: kubernetes.default.svc.cluster.local}]
log: {level: info, format: console}
%[5]s`, strings.Join(listen, ", "), admin, host, n.dir, more))
	if err := os.Rename(filepath.Join(n.dir, "nodens.next"), filepath.Join(n.dir, "nodens.yaml")); err != nil {
		n.t.Fatal(err)
	}
}

// listen is where nodens listens.
func (n *node) listen() []netip.Addr { return append(n.state().Own, n.state().Service...) }

// write writes a file that everybody may read.
func (n *node) write(name, text string) string {
	n.t.Helper()
	path := filepath.Join(n.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		n.t.Fatal(err)
	}
	return path
}

// daemon is a nodens.
type daemon struct {
	*space.Process
	n *node
}

// start starts a nodens, and returns when it serves.
func (n *node) start() *daemon { return n.startAs(nil) }

// startAs starts it as another user, nil for root.
func (n *node) startAs(who *syscall.SysProcAttr) *daemon {
	n.t.Helper()
	d := n.launch(who)
	waitFor(n.t, "start of nodens", 20*time.Second, func() bool {
		if !d.Running() {
			n.t.Fatalf("nodens has ended:\n%s", d.Said())
		}
		return d.serves() && (!n.guard.Running() || strings.Contains(d.Said(), "the guard is connected"))
	})
	return d
}

// launch starts it and does not wait.
func (n *node) launch(who *syscall.SysProcAttr) *daemon {
	n.t.Helper()
	command := exec.Command(nodens, "serve", "-config", filepath.Join(n.dir, "nodens.yaml"))
	command.SysProcAttr = who
	return &daemon{n.Start(n.t, command), n}
}

// serves tells whether it listens.
func (d *daemon) serves() bool { return strings.Contains(d.Said(), "nodens serves") }

// stop is the kubelet's: SIGTERM, and a wait.
func (d *daemon) stop() {
	d.n.t.Helper()
	d.Signal(syscall.SIGTERM)
	select {
	case <-d.Done():
	case <-time.After(20 * time.Second):
		d.n.t.Fatal("nodens did not end after SIGTERM")
	}
}

// get asks the admin side.
func (n *node) get(path string) (string, error) {
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (conn net.Conn, err error) {
			err = n.Try(func() error { conn, err = new(net.Dialer).DialContext(ctx, network, address); return err })
			return conn, err
		},
	}}
	response, err := client.Get("http://" + admin + path)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

func addrs(list ...string) []netip.Addr {
	var out []netip.Addr
	for _, a := range list {
		out = append(out, netip.MustParseAddr(a))
	}
	return out
}

// at is an address with the port of DNS.
func at(addr string) netip.AddrPort { return netip.AddrPortFrom(netip.MustParseAddr(addr), 53) }
