package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodens-dns/nodens/bench/container"
	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/deploy/e2e/cluster"
	"github.com/nodens-dns/nodens/deploy/e2e/kubelet"
)

// Addresses of a site.
const (
	ownAddress     = "169.254.20.10"
	clusterAddress = "10.96.0.10" // of the Service kube-dns
	nodeAddress    = "198.51.100.10"
	gateway        = "198.51.100.1" // beyond it is the API server
	resolver       = "198.51.100.53"
	stubServer     = "198.51.100.77"
	apiPort        = 6443
)

// site is a node of the cluster, in network namespaces: two pods with a real CoreDNS that
// serves the Services of the API server, one on the node, one elsewhere; pods that ask;
// beyond the node the API server, the resolver of the machine and one of a company.
// Kubelet, scheduler, kube-proxy and the network of the pods are played; etcd, API server
// and controllers are real.
type site struct {
	space.Node
	t         *testing.T
	s         *cluster.Stage
	outside   space.Space
	dir       string
	kubelet   *kubelet.Kubelet
	elsewhere *kubelet.Kubelet // that of the other node, which is on paper
}

// newSite makes one without a DNS on the node.
func newSite(t *testing.T) *site {
	t.Helper()
	plane(t)
	program, binary := os.Getenv("NODENS_COREDNS"), os.Getenv("NODENS_BINARY")
	if program == "" {
		missing(t, "coredns", "NODENS_COREDNS names no CoreDNS; use make e2e")
	}
	if binary == "" {
		missing(t, "etcd", "NODENS_BINARY names no nodens; use make e2e")
	}
	p := &site{Node: space.NewNode(t), t: t, outside: space.New(t), dir: t.TempDir()}
	for dir := p.dir; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		p.must(os.Chmod(dir, 0o755)) // who is not root looks into it too
	}
	image := container.NewImage(t, p.dir, binary)
	t.Cleanup(p.explain)
	p.s = shared.cluster.System(t)
	p.connect()
	p.s.AddNode("n1", "za")
	p.s.AddNode("n2", "za")
	p.s.AddService(func(s *corev1.Service) { s.Spec.ClusterIP = clusterAddress })
	p.proxy()
	p.server(p.Answers, program, "near", "n1", "10.1.0.53", "fd01::53")
	p.server(p.FarAnswers, program, "far", "n2", "10.2.0.53", "fd02::53")
	p.resolvers(program)
	p.kubelet = kubelet.New(t, kubelet.Config{
		Client: shared.cluster.Admin, Namespace: p.s.Namespace, Node: p.s.NodeName("n1"),
		Space: p.Space, Address: nodeAddress, Dir: p.dir, Image: image, Elsewhere: rolledOut,
	})
	p.elsewhere = kubelet.New(t, kubelet.Config{
		Client: shared.cluster.Admin, Namespace: p.s.Namespace, Node: p.s.NodeName("n2"), Paper: true, Address: "198.51.100.11",
	})
	return p
}

func (p *site) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// connect joins the node with the outside, and the outside with the API server.
func (p *site) connect() {
	p.t.Helper()
	p.Veth(p.t, "uplink", p.outside)
	p.Address(p.t, "uplink", nodeAddress+"/24")
	p.outside.Address(p.t, "eth0", gateway+"/24", resolver+"/32", stubServer+"/32")
	p.Route(p.t, "0.0.0.0/0", gateway, "")
	for _, pods := range []string{"10.1.0.0/24", "10.2.0.0/24"} {
		p.outside.Route(p.t, pods, nodeAddress, "")
	}
	var door net.Listener
	p.outside.In(p.t, func() (err error) {
		door, err = net.Listen("tcp", fmt.Sprintf("%s:%d", gateway, apiPort))
		return err
	})
	p.t.Cleanup(cluster.NewProxyOn(door, shared.cluster.Address()).Close)
	p.write("host/etc/resolv.conf", "nameserver "+resolver+"\n")
	p.write("host/etc/hosts", "127.0.0.1 localhost\n")
	p.write("host/run/xtables.lock", "") // of kube-proxy
}

// write writes a file that everybody may read.
func (p *site) write(name, text string) string {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	p.must(os.MkdirAll(filepath.Dir(path), 0o755))
	p.must(os.WriteFile(path, []byte(text), 0o644))
	return path
}

// proxy makes the rules that a kube-proxy in nftables mode makes of the Services and
// slices that are there now, in the shape of its own.
func (p *site) proxy() {
	p.t.Helper()
	lines := []string{fmt.Sprintf("ip daddr %s tcp dport 443 dnat ip to %s:%d", cluster.ServiceAddress, gateway, apiPort)}
	services, err := shared.cluster.Admin.CoreV1().Services(p.s.Namespace).List(p.t.Context(), metav1.ListOptions{})
	p.must(err)
	for i := range services.Items {
		s := &services.Items[i]
		pods := p.ready(s.Name)
		if s.Spec.ClusterIP == corev1.ClusterIPNone || len(pods) == 0 {
			continue
		}
		for _, proto := range []string{"udp", "tcp"} {
			var each []string
			for n, pod := range pods {
				each = append(each, fmt.Sprintf("%d : %s", n, pod))
			}
			lines = append(lines, fmt.Sprintf("ip daddr %s %s dport 53 dnat ip to numgen random mod %d map { %s }",
				s.Spec.ClusterIP, proto, len(pods), strings.Join(each, ", ")))
		}
	}
	p.Run(p.t, "nft", "-f", p.write("kube-proxy.nft", `table ip kube-proxy
delete table ip kube-proxy
table ip kube-proxy {
	chain nat-prerouting { type nat hook prerouting priority -100; policy accept; jump services; }
	chain nat-output { type nat hook output priority -100; policy accept; jump services; }
	chain services {
		`+strings.Join(lines, "\n\t\t")+`
	}
}
`))
}

// ready are the addresses of the ready endpoints of a Service.
func (p *site) ready(service string) (list []string) {
	p.t.Helper()
	found, err := shared.cluster.Admin.DiscoveryV1().EndpointSlices(p.s.Namespace).List(p.t.Context(),
		metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=" + service})
	p.must(err)
	for i := range found.Items {
		for _, e := range found.Items[i].Endpoints {
			if netip.MustParseAddr(e.Addresses[0]).Is4() && e.Conditions.Ready != nil && *e.Conditions.Ready {
				list = append(list, e.Addresses[0])
			}
		}
	}
	return list
}

// server starts the CoreDNS of a pod, and makes the pod ready once it knows the Services.
func (p *site) server(pod space.Space, program, name, node, four, six string) {
	p.t.Helper()
	p.s.AddPodAt(name, node, netip.MustParseAddr(four), netip.MustParseAddr(six))
	kubeconfig := p.write("kubeconfig", fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://%s", certificate-authority: %q}}]
users: [{name: u, user: {token: %q}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`, cluster.ServiceAddress, shared.cluster.CAFile(), shared.cluster.Token()))
	corefile := p.write("Corefile."+name, fmt.Sprintf(`.:53 {
	errors
	kubernetes cluster.local in-addr.arpa ip6.arpa {
		kubeconfig %s
		ttl 30
	}
}
who.cluster.local:53 {
	template IN A {
		answer "{{ .Name }} 5 IN A %s"
	}
}
`, kubeconfig, four))
	pod.Start(p.t, exec.Command(program, "-conf", corefile))
	p.until("CoreDNS of "+name, func() bool {
		return p.asks(p.Space, "udp", four, "kubernetes.default.svc.cluster.local.", cluster.ServiceAddress) == nil
	})
	p.s.Ready(name, true)
	p.until("the slices have "+name, func() bool { return strings.Contains(strings.Join(p.ready(cluster.Service), " "), four) })
	p.proxy()
}

// resolvers start those outside, which answer every name with an address that tells
// them apart.
func (p *site) resolvers(program string) {
	p.t.Helper()
	text := ""
	for at, answer := range map[string]string{resolver: "203.0.113.80", stubServer: "203.0.113.77"} {
		text += fmt.Sprintf(".:53 {\n\tbind %s\n\ttemplate IN A {\n\t\tanswer \"{{ .Name }} 60 IN A %s\"\n\t}\n}\n", at, answer)
	}
	p.outside.Start(p.t, exec.Command(program, "-conf", p.write("Corefile.outside", text)))
	for _, at := range []string{resolver, stubServer} {
		p.until("the resolver at "+at, func() bool { _, err := p.lookUp(p.Space, "udp", at, "start.example."); return err == nil })
	}
}

// explain shows how the workloads stood when the test failed.
func (p *site) explain() {
	if !p.t.Failed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	pods, err := shared.cluster.Admin.CoreV1().Pods(p.s.Namespace).List(ctx, metav1.ListOptions{})
	if err == nil {
		for i := range pods.Items {
			one := &pods.Items[i]
			p.t.Logf("pod %s on %q, to be deleted %v: %s %+v", one.Name, one.Spec.NodeName, one.DeletionTimestamp, one.Status.Phase, one.Status.Conditions)
		}
	}
	sets, err := shared.cluster.Admin.AppsV1().DaemonSets(p.s.Namespace).List(ctx, metav1.ListOptions{})
	if err == nil {
		for i := range sets.Items {
			p.t.Logf("DaemonSet %s, generation %d: %+v", sets.Items[i].Name, sets.Items[i].Generation, sets.Items[i].Status)
		}
	}
	events, err := shared.cluster.Admin.CoreV1().Events(p.s.Namespace).List(ctx, metav1.ListOptions{Limit: 50})
	if err == nil {
		for i := range events.Items {
			p.t.Logf("%s %s: %s", events.Items[i].InvolvedObject.Kind, events.Items[i].InvolvedObject.Name, events.Items[i].Message)
		}
	}
}

// until waits on a machine that may be very busy.
func (p *site) until(what string, holds func() bool) {
	p.t.Helper()
	waitFor(p.t, what, 2*patience, holds)
}

// rounds lets the kubelets work until a condition holds.
func (p *site) rounds(what string, holds func() bool) {
	p.t.Helper()
	p.kubelet.Until(what, 2*patience, holds, p.elsewhere)
}

// lookUp asks a server once, from a place, for the one IPv4 address of a name.
func (p *site) lookUp(from space.Space, network, server, name string) (string, error) {
	r := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (conn net.Conn, err error) {
		err = from.Try(func() error {
			conn, err = new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(server, "53"))
			return err
		})
		return conn, err
	}}
	ctx, cancel := context.WithTimeout(p.t.Context(), 2*time.Second)
	defer cancel()
	found, err := r.LookupNetIP(ctx, "ip4", name)
	if err != nil {
		return "", err
	}
	return found[0].Unmap().String(), nil
}

// asks is an error unless the answer is the one that is wanted; "" is that there is no
// such name.
func (p *site) asks(from space.Space, network, server, name, want string) error {
	got, err := p.lookUp(from, network, server, name)
	if missing := new(net.DNSError); want == "" && errors.As(err, &missing) && missing.IsNotFound {
		return nil
	}
	if err == nil && got != want {
		err = fmt.Errorf("%s at %s over %s: %q, want %q", name, server, network, got, want)
	}
	return err
}

// answers is what every client gets at an address of the node.
func (p *site) answers(addresses ...string) {
	p.t.Helper()
	for _, at := range addresses {
		for who, from := range map[string]space.Space{"a pod": p.Routed, "a pod on the bridge": p.Bridged, "the node": p.Space} {
			for _, network := range []string{"udp", "tcp"} {
				for name, want := range map[string]string{
					"kubernetes.default.svc.cluster.local.":   cluster.ServiceAddress,
					"kube-dns.kube-system.svc.cluster.local.": clusterAddress,
					"absent.default.svc.cluster.local.":       "",
					"www.example.":                            "203.0.113.80",
				} {
					var err error
					waitFor(p.t, fmt.Sprintf("%s at %s for %s over %s", name, at, who, network), 2*patience, func() bool {
						err = p.asks(from, network, at, name, want)
						return err == nil
					})
				}
			}
		}
	}
}

// nearestAnswers waits until the daemon knows which endpoint is on the node, and asks it.
func (p *site) nearestAnswers() {
	p.t.Helper()
	p.until("the status page knows the endpoint on the node", func() bool {
		text, err := p.kubelet.Get(p.t.Context(), "127.0.0.1:9253", "statusz?format=json")
		if err != nil {
			return false
		}
		servers, _ := readStanding(p.t, text)
		return slices.Contains(servers, "near node ready") && slices.Contains(servers, "far zone ready")
	})
	number := 0
	p.until("the endpoint on the node answers", func() bool {
		number++
		return p.asks(p.Routed, "udp", ownAddress, fmt.Sprintf("n%d.who.cluster.local.", number), "10.1.0.53") == nil
	})
}

// isAgain compares the node with a picture of it.
func (p *site) isAgain(before string) {
	p.t.Helper()
	after := p.picture()
	for line := range strings.Lines(before) {
		if !strings.Contains(after, line) {
			p.t.Errorf("the node had, and has not: %s", line)
		}
	}
	for line := range strings.Lines(after) {
		if !strings.Contains(before, line) {
			p.t.Errorf("the node has, and had not: %s", line)
		}
	}
}

// picture is what of the node's network the outgoing can leave: rules, links, addresses,
// routes and who listens, and the files of the node.
func (p *site) picture() string {
	p.t.Helper()
	text := p.Run(p.t, "nft", "-s", "list", "ruleset") + p.Run(p.t, "ip", "addr") + p.Run(p.t, "ip", "route", "show", "table", "all") +
		p.Run(p.t, "ss", "-Hlntu")
	text = regexp.MustCompile(`valid_lft \S+ preferred_lft \S+|@if\d+`).ReplaceAllString(text, "")
	host := filepath.Join(p.dir, "host")
	p.must(filepath.WalkDir(host, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			text += strings.TrimPrefix(path, host) + "\n"
		}
		return err
	}))
	return text
}
