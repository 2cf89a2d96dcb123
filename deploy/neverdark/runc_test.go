package neverdark

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nodens-dns/nodens/bench/container"
	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// Capabilities as bits.
const (
	mayBind  = 1 << 10 // NET_BIND_SERVICE
	mayAdmin = 1 << 12 // NET_ADMIN
)

// settle gives a manifest's containers a configuration in place of its own, whose
// endpoints are in a file, and what a kubelet mounts.
func (r *runtime) settle(listen, host string) {
	r.n.t.Helper()
	slices, err := os.ReadFile(filepath.Join(r.n.dir, "slices"))
	if err != nil {
		r.n.t.Fatal(err)
	}
	r.fill("config", map[string]string{"slices": string(slices), "nodens.yaml": fmt.Sprintf(`version: v1
listen: [%s]
host: {%s}
routes: [{zones: [.], topology: {file: /etc/nodens/slices, namespace: kube-system, service: kube-dns}}]
log: {level: info, format: console}
`, listen, host)})
}

// TestManifestsRun runs the containers of a shipped manifest with exactly the rights it
// gives them. What the guard has set up goes on without it and without nodens.
func TestManifestsRun(t *testing.T) {
	for name, c := range map[string]struct {
		mode         hostnet.Mode
		listen, host string
	}{
		"link-local.yaml":      {hostnet.LinkLocal, `"169.254.20.10:53", "[fd00:90de:d95::1]:53"`, "mode: link-local"},
		"link-local-1.25.yaml": {hostnet.LinkLocal, `"169.254.20.10:53", "[fd00:90de:d95::1]:53"`, "mode: link-local"},
		"service.yaml": {
			hostnet.Service, `"169.254.20.10:53", "[fd00:90de:d95::1]:53", "10.96.0.10:53", "[fd10::a]:53"`,
			`mode: service, service: [10.96.0.10, "fd10::a"]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNodeAlone(t, c.mode)
			n.kubeProxy()
			r := newRuntime(n)
			r.settle(c.listen, c.host)
			manifest := readManifest(t, filepath.Join("..", "manifests", name))
			guard := r.run(manifest.find(t, "guard"), n.Space)
			guard.expect(t, "nodens guards")
			serve := r.run(manifest.find(t, "nodens"), n.Space)
			serve.expect(t, "nodens serves")
			for _, a := range n.listen() {
				n.answersAt(t, n.Routed, n.Bridged, a.String())
				inARow(t, "the node's own queries reach it", patience, func() bool { return byNodens(n.Space, at(a.String()).String()) })
			}
			serve.expectProbes(t)
			guard.expectRights(t, rights{uid: 0, noNewPrivs: true, capabilities: mayAdmin, confined: true})
			serve.expectRights(t, rights{uid: 65532, noNewPrivs: true, capabilities: mayBind, confined: true})
			for _, one := range []*running{guard, serve} {
				one.end(t, syscall.SIGKILL)
			}
			for _, a := range n.listen() {
				for _, from := range []space.Space{n.Routed, n.Space} {
					waitFor(t, "without any process at "+a.String(), patience, func() bool { return asks(from, "udp", at(a.String()).String()) == nil })
				}
			}
		})
	}
}

// TestManifestOfNoneRuns in the network of a pod.
func TestManifestOfNoneRuns(t *testing.T) {
	n := newNodeAlone(t, hostnet.LinkLocal)
	r := newRuntime(n)
	r.settle(`"0.0.0.0:53"`, "mode: none")
	serve := r.run(readManifest(t, filepath.Join("..", "manifests", "none.yaml")).find(t, "nodens"), n.Bridged)
	serve.expect(t, "nodens serves")
	n.answersAt(t, n.Routed, n.Space, "10.1.0.7")
	serve.expectProbes(t)
	serve.expectRights(t, rights{uid: 65532, noNewPrivs: true, capabilities: mayBind, confined: true})
}

// patience is how long something may take that is done at once on a machine with
// nothing else to do.
const patience = 30 * time.Second

// answersAt waits until nodens answers at an address, over UDP for one and over TCP for
// another client.
func (n *node) answersAt(t *testing.T, one, other space.Space, addr string) {
	t.Helper()
	where := at(addr).String()
	inARow(t, "nodens answers at "+where, patience, func() bool { return byNodens(one, where) })
	waitFor(t, "TCP at "+where, patience, func() bool { return asks(other, "tcp", where) == nil })
}

// expectProbes runs what the kubelet asks.
func (c *running) expectProbes(t *testing.T) {
	t.Helper()
	for _, probe := range []string{"live", "ready"} {
		var err error
		for limit := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
			if _, err = c.Exec(t.Context(), "/nodens", "probe", probe); err == nil || time.Now().After(limit) {
				break
			}
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// end sends its process a signal and waits until it is gone.
func (c *running) end(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(c.FirstPID(), s); err != nil {
		t.Fatal(err)
	}
	c.wait(t)
}

func (c *running) wait(t *testing.T) {
	t.Helper()
	select {
	case <-c.Done():
	case <-time.After(patience):
		t.Fatalf("%s does not end", c.ID)
	}
}

// stock is the container of node-cache's own manifest: root, what an engine gives it and
// NET_ADMIN, ports of the host, a file of the host, two ConfigMaps, and a root that it
// may write to.
func stock(confined bool) manifested {
	c := manifested{
		Args:    strings.Fields("-localip 169.254.20.10,10.96.0.10 -conf /etc/Corefile -upstreamsvc kube-dns-upstream -pidfile /tmp/node-cache.pid"),
		environ: []string{"KUBE_DNS_UPSTREAM_SERVICE_HOST=" + upstream4, "KUBE_DNS_UPSTREAM_SERVICE_PORT=53"},
	}
	c.Security.Capabilities.Add = []string{"NET_ADMIN"}
	if confined {
		c.Security.SeccompProfile.Type = "RuntimeDefault"
	}
	for name, path := range map[string]string{
		"xtables.lock": "/run/xtables.lock", "config-volume": "/etc/coredns", "kube-dns-config": "/etc/kube-dns", "resolv.conf": "/etc/resolv.conf",
	} {
		c.VolumeMounts = append(c.VolumeMounts, mount{Name: name, MountPath: path})
	}
	return c
}

// TestStockManifestRuns has nodens in the container of node-cache's own manifest, where
// nothing but the image is another: it takes the queries, gives up what it does not
// need, and leaves the node as it was. A kubelet with SeccompDefault confines it as well.
func TestStockManifestRuns(t *testing.T) {
	for _, confined := range []bool{false, true} {
		t.Run(map[bool]string{false: "unconfined", true: "with SeccompDefault"}[confined], func(t *testing.T) {
			n := newNodeAlone(t, hostnet.Service)
			n.kubeProxy()
			n.Route(t, upstream4+"/32", "10.1.0.53", "") // wherever it leads: kube-proxy changes the destination
			before := n.picture()
			r := newRuntime(n)
			corefile, err := os.ReadFile("../../cmd/nodens/testdata/corefiles/stock.corefile")
			if err != nil {
				t.Fatal(err)
			}
			r.fill("config-volume", map[string]string{"Corefile.base": string(corefile)})
			r.fill("", map[string]string{"xtables.lock": "", "resolv.conf": "nameserver 10.2.0.53\n"})
			daemon := r.run(stock(confined), n.Space)
			daemon.expect(t, "nodens serves")
			for _, addr := range []string{own4, cluster4} {
				for _, proto := range []string{"udp", "tcp"} {
					waitFor(t, proto+" at "+addr, patience, func() bool { return asks(n.Routed, proto, at(addr).String()) == nil })
				}
			}
			counted := regexp.MustCompile(`coredns_dns_requests_total\{[^}]*server="dns://10\.96\.0\.10:53"[^}]*\} [1-9]`)
			waitFor(t, "it counts queries at the Service's address", patience, func() bool {
				_ = asks(n.Routed, "udp", at(cluster4).String()) // kube-proxy may have had those before
				text, _ := n.get("/metrics")
				return counted.MatchString(text)
			})
			daemon.expectRights(t, rights{uid: 0, capabilities: mayBind | mayAdmin, confined: confined})
			daemon.end(t, syscall.SIGTERM)
			waitFor(t, "kube-proxy has the queries", patience, func() bool { return asks(n.Routed, "udp", at(cluster4).String()) == nil })
			if after := n.picture(); after != before {
				t.Errorf("it left rules or addresses (-before +after):\n%s", cmp.Diff(before, after))
			}
		})
	}
}

// TestConfined has a program try what the list of system calls is there to deny, with
// the rights of nodens, and without the list.
func TestConfined(t *testing.T) {
	n := newNodeAlone(t, hostnet.LinkLocal)
	binary := filepath.Join(n.dir, "tries")
	build := exec.Command("go", "build", "-o", binary, "./testdata/tries")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	r := &runtime{n, container.NewImage(t, n.dir, binary)}
	serve := readManifest(t, filepath.Join("..", "manifests", "link-local.yaml")).find(t, "nodens")
	confined := r.toEnd(t, serve, n.Space)
	serve.Security.SeccompProfile.Type = "Unconfined"
	free := r.toEnd(t, serve, n.Space)

	const denied = "operation not permitted"
	for _, call := range strings.Fields("bpf clone init_module io_uring_setup keyctl mount perf_event_open setns unshare") {
		if confined[call] != denied {
			t.Errorf("%s: %q, want %q", call, confined[call], denied)
		}
	}
	if confined["getpid"] != "done" || confined["clone3"] != "function not implemented" {
		t.Errorf("getpid: %q, clone3: %q", confined["getpid"], confined["clone3"])
	}
	for _, call := range strings.Fields("clone keyctl unshare") { // for which nobody needs a capability
		if free[call] == denied {
			t.Errorf("without the list %s is denied as well: this test cannot fail", call)
		}
	}
}

// toEnd runs a container to its end, and returns what it said: a word, and what became
// of it.
func (r *runtime) toEnd(t *testing.T, c manifested, network space.Space) map[string]string {
	t.Helper()
	one := r.run(c, network)
	one.wait(t)
	said := make(map[string]string)
	for line := range strings.Lines(one.Said()) {
		if word, result, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			said[word] = result
		}
	}
	if said["getpid"] == "" {
		t.Fatalf("%s said:\n%s", one.ID, one.Said())
	}
	return said
}
