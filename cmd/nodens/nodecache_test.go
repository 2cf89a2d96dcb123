package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/nodens-dns/nodens/bench/space"
)

// deployment is node-cache as somebody deploys it: the arguments, and the files that
// its ConfigMaps are mounted as.
type deployment struct {
	args  string
	files map[string]string // by path
	asked string            // where a pod asks
	link  string            // the interface that is there then; "" none
	// wants are addresses for HTTP that are served, with what they answer.
	wants map[string]string
	warns []string // parts of the warnings about the command line, in order
}

// corefileText is one of the corpus with other addresses.
func corefileText(t *testing.T, name string, change ...string) string {
	t.Helper()
	data, err := os.ReadFile("testdata/corefiles/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(change...).Replace(string(data))
}

func deployments(t *testing.T) map[string]deployment {
	t.Helper()
	stock := corefileText(t, "stock.corefile")
	metrics := func(ports ...string) map[string]string {
		wants := map[string]string{}
		for _, port := range ports {
			wants["http://127.0.0.1:"+port+"/metrics"] = "coredns_nodecache_setup_errors_total"
		}
		return wants
	}
	with := func(wants map[string]string, url, body string) map[string]string {
		wants[url] = body
		return wants
	}
	return map[string]deployment{
		"stock manifest": {
			args:  "-localip 169.254.20.10,10.96.0.10 -conf /etc/Corefile -upstreamsvc kube-dns-upstream -pidfile /tmp/node-cache.pid",
			files: map[string]string{"/etc/coredns/Corefile.base": stock, "/etc/kube-dns/stubDomains": `{"stub.example": ["192.0.2.77"]}`},
			asked: "10.96.0.10", link: "nodelocaldns",
			wants: with(metrics("9253", "9353"), "http://169.254.20.10:8080/health", "OK"),
		},
		"kops": {
			args:  "-localip=169.254.20.10 -conf=/etc/Corefile -upstreamsvc=kube-dns-upstream -setupiptables=false -health-port=3989",
			files: map[string]string{"/etc/coredns/Corefile.base": corefileText(t, "link-local.corefile")},
			asked: "169.254.20.10", link: "nodelocaldns",
			wants: with(metrics("9253", "9353"), "http://169.254.20.10:3989/health", "OK"),
		},
		"kubespray": {
			args:  "-localip 169.254.25.10 -conf /etc/coredns/Corefile -upstreamsvc coredns",
			files: map[string]string{"/etc/coredns/Corefile": corefileText(t, "addresses.corefile", "10.233.0.3", "10.96.0.11")},
			asked: "169.254.25.10", link: "nodelocaldns",
			wants: with(metrics("9253", "9353"), "http://169.254.25.10:9254/health", "OK"),
		},
		"kubespray's second": {
			args:  "-localip 169.254.25.10 -conf /etc/coredns/Corefile -upstreamsvc coredns -skipteardown -metrics-listen-address 0.0.0.0:9354",
			files: map[string]string{"/etc/coredns/Corefile": corefileText(t, "addresses.corefile", "10.233.0.3", "10.96.0.11", ":9253", ":9255", ":9254", ":9256")},
			asked: "169.254.25.10", link: "nodelocaldns",
			wants: with(metrics("9255", "9354"), "http://169.254.25.10:9256/health", "OK"),
		},
		"deliveryhero": {
			args:  "-localip 169.254.20.25,172.20.0.10 -conf /etc/Corefile -upstreamsvc kube-dns-upstream -skipteardown=false -setupinterface=true -setupiptables=true -health-port 8080",
			files: map[string]string{"/etc/coredns/Corefile.base": strings.NewReplacer("169.254.20.10", "169.254.20.25", "10.96.0.10", "172.20.0.10").Replace(stock)},
			asked: "172.20.0.10", link: "nodelocaldns",
			wants: with(metrics("9253", "9353"), "http://169.254.20.25:8080/health", "OK"),
		},
		"lablabs": {
			args: "-localip 169.254.20.11 -conf /etc/Corefile -upstreamsvc kube-dns-upstream -health-port 8080 -interfacename nodelocaldns " +
				"-metrics-listen-address 0.0.0.0:9353 -setupinterface=true -setupiptables=true -skipteardown=false -syncinterval 1ns -setupeptables=false",
			files: map[string]string{"/etc/coredns/Corefile.base": strings.NewReplacer("169.254.20.10 10.96.0.10", "169.254.20.11", "169.254.20.10", "169.254.20.11").Replace(stock)},
			asked: "169.254.20.11", link: "nodelocaldns",
			wants: with(metrics("9253", "9353"), "http://169.254.20.11:8080/health", "OK"),
			warns: []string{"there is no flag -setupeptables", "-syncinterval 1ns is read as 1s"},
		},
		"Cilium's redirect": {
			args: "-localip 169.254.20.10,10.96.0.10 -conf /etc/Corefile -upstreamsvc kube-dns-upstream -skipteardown=true -setupinterface=false -setupiptables=false",
			files: map[string]string{"/etc/coredns/Corefile.base": strings.NewReplacer(
				"bind 169.254.20.10 10.96.0.10", "bind 0.0.0.0", "health 169.254.20.10:8080", "health").Replace(stock)},
			asked: "127.0.0.1",
			wants: with(metrics("9253", "9353"), "http://127.0.0.1:8080/health", "OK"),
		},
		"no address in IPVS mode": {
			args:  "-localip 169.254.20.10, -conf /etc/Corefile -upstreamsvc kube-dns-upstream",
			files: map[string]string{"/etc/coredns/Corefile.base": strings.ReplaceAll(stock, " 10.96.0.10", "")},
			asked: "169.254.20.10", link: "nodelocaldns", wants: metrics("9253"), warns: []string{"-localip has a comma too much"},
		},
	}
}

// place is a network namespace with a folder as its root, in which the program runs
// as it would in a pod with the host's network.
type place struct {
	t    *testing.T
	root string
	log  bytes.Buffer
	*exec.Cmd
}

// newPlace puts the goroutine of the test into a network namespace of its own, with
// the servers that the cluster and the machine have. It is never let out again: its
// thread ends with the test.
func newPlace(t *testing.T) *place {
	t.Helper()
	space.Needs(t, "root", os.Geteuid() == 0)
	runtime.LockOSThread()
	space.Needs(t, "netns", unix.Unshare(unix.CLONE_NEWNET) == nil)
	serversBeside(t)(t)
	n := &place{t: t, root: t.TempDir()}
	for _, folder := range []string{"etc/coredns", "etc/kube-dns", "tmp", "run", "var/lib", "dev"} {
		if err := os.MkdirAll(filepath.Join(n.root, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(n.root, "etc/resolv.conf"), "nameserver 192.0.2.53\n")
	return n
}

// serversBeside makes the network namespace of the goroutine that of the servers: the
// cluster's, the machine's and one of a stub domain. The function it returns goes on
// to another namespace, from which they are reached.
func serversBeside(t *testing.T) (leave func(t *testing.T)) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	address := func(nl *netlink.Handle, link, ip string) {
		t.Helper()
		l, err := nl.LinkByName(link)
		must(err)
		a, err := netlink.ParseAddr(ip)
		must(err)
		must(nl.AddrAdd(l, a))
		must(nl.LinkSetUp(l))
	}
	there, err := os.Open("/proc/thread-self/ns/net")
	must(err)
	outside, err := netlink.NewHandleAt(netns.NsHandle(there.Fd()))
	must(err)
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "servers"
	must(outside.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "eth0"}))
	for _, ip := range []string{"127.0.0.2/8", "10.96.0.11/32", "192.0.2.53/32", "192.0.2.77/32"} {
		address(outside, "lo", ip)
	}
	for own, at := range map[byte]string{11: "10.96.0.11:53", 53: "192.0.2.53:53", 77: "192.0.2.77:53"} {
		newScriptedAt(t, at, own, 0)
	}
	return func(t *testing.T) {
		t.Helper()
		must(unix.Unshare(unix.CLONE_NEWNET))
		here, err := os.Open("/proc/thread-self/ns/net")
		must(err)
		inside, err := netlink.NewHandleAt(netns.NsHandle(here.Fd()))
		must(err)
		peer, err := outside.LinkByName("eth0")
		must(err)
		must(outside.LinkSetNsFd(peer, int(here.Fd())))
		address(outside, "servers", "198.51.100.1/24")
		address(inside, "lo", "127.0.0.2/8")
		address(inside, "eth0", "198.51.100.2/24")
		must(inside.RouteAdd(&netlink.Route{Gw: net.IPv4(198, 51, 100, 1)}))
		for _, opened := range []interface{ Close() }{outside, inside} {
			t.Cleanup(opened.Close)
		}
		t.Cleanup(func() { there.Close(); here.Close() })
	}
}

// start runs the program with the arguments, as the kubelet would.
func (n *place) start(binary string, d deployment) {
	n.t.Helper()
	for path, text := range d.files {
		write(n.t, filepath.Join(n.root, path), text)
	}
	data, err := os.ReadFile(binary)
	if err != nil {
		n.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(n.root, "nodens"), data, 0o755); err != nil {
		n.t.Fatal(err)
	}
	n.Cmd = exec.Command("/nodens", strings.Fields(d.args)...)
	n.Env = []string{
		"KUBE_DNS_UPSTREAM_SERVICE_HOST=10.96.0.11", "KUBE_DNS_SERVICE_HOST=10.96.0.10",
		"COREDNS_SERVICE_HOST=10.96.0.11", "NODE_NAME=node-1",
	}
	n.Stdout, n.Stderr = &n.log, &n.log
	n.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Chroot: n.root}
	n.Dir = "/"
	if err := n.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		if n.ProcessState == nil {
			_ = n.Process.Kill() // it may be about to end
			_ = n.Wait()
		}
		if n.t.Failed() {
			n.t.Logf("it said:\n%s", &n.log)
		}
	})
}

// answers asks until there is an answer.
func (n *place) answers(at, name string) (got string) {
	n.t.Helper()
	client := &dns.Client{Timeout: 2 * time.Second}
	await(n.t, name+" at "+at, func() bool {
		reply, _, err := client.Exchange(new(dns.Msg).SetQuestion(name, dns.TypeA), at+":53")
		if err != nil {
			time.Sleep(20 * time.Millisecond)
			return false
		}
		got = answerOf(reply)
		return true
	})
	return got
}

// The arguments and files of every deployer start the real program as they are, on a
// node of its own: it answers where pods ask, serves metrics and health checks where
// they are looked for, and takes its interface away again.
func TestDeployments(t *testing.T) {
	space.Needs(t, "root", os.Geteuid() == 0)
	binary := buildBinary(t)
	t.Run("signals", func(t *testing.T) { nodeCacheSignals(t, binary) })
	for name, d := range deployments(t) {
		t.Run(name, func(t *testing.T) {
			n := newPlace(t)
			n.start(binary, d)
			for question, want := range map[string]string{
				"web.default.svc.cluster.local.": "NOERROR 192.0.2.11",
				"1.0.96.10.in-addr.arpa.":        "NOERROR 192.0.2.11",
				"www.example.":                   "NOERROR 192.0.2.53",
			} {
				if got := n.answers(d.asked, question); got != want {
					t.Errorf("%s: %s, want %s", question, got, want)
				}
			}
			if len(d.files) > 1 {
				if got := n.answers(d.asked, "a.stub.example."); got != "NOERROR 192.0.2.77" {
					t.Errorf("a stub domain: %s", got)
				}
			}
			for url, want := range d.wants {
				n.serves(url, want)
			}
			n.showsGuard(d)
			n.consults(d)
			n.hasLink(d.link)
			n.hasGivenUp()
			if strings.Contains(d.args, "-pidfile") {
				pid, err := os.ReadFile(filepath.Join(n.root, "tmp/node-cache.pid"))
				if err != nil || strings.TrimSpace(string(pid)) != fmt.Sprint(n.Process.Pid) {
					t.Errorf("pidfile: %q, %v", pid, err)
				}
			}
			n.ends(syscall.SIGTERM)
			if stays := strings.Contains(d.args, "-skipteardown") && d.link != "" && !strings.Contains(d.args, "-skipteardown=false"); !stays {
				n.hasLink("")
			} else {
				n.hasLink(d.link)
			}
			lines := strings.Split(n.log.String(), "of the command line")[1:]
			for i, want := range d.warns {
				if len(lines) != len(d.warns) || !strings.Contains(lines[i], want) {
					t.Errorf("warnings about the command line: %q, want %q", lines, d.warns)
				}
			}
		})
	}
}

// serves looks for a text at an address, from the node.
func (n *place) serves(url, want string) {
	n.t.Helper()
	var body string
	await(n.t, url, func() bool {
		out, err := fetchHere(url)
		body = out
		return err == nil
	})
	if !strings.Contains(body, want) {
		n.t.Errorf("%s: %q, want %q", url, cut(body), want)
	}
}

// showsGuard looks whether the guard, if the arguments ask for one, is seen where
// node-cache's metrics are scraped.
func (n *place) showsGuard(d deployment) {
	n.t.Helper()
	guarded := !strings.Contains(d.args, "-setupiptables=false")
	for url := range d.wants {
		if !strings.HasSuffix(url, "/metrics") {
			continue
		}
		for _, name := range []string{"nodens_interception_active{mode=", "nodens_bypass_active{address=", "nodens_fallback_ready ", "nodens_guard_deaths_total "} {
			await(n.t, fmt.Sprintf("%s at %s: %v", name, url, guarded), func() bool {
				body, err := fetchHere(url)
				return err == nil && strings.Contains(body, "\n"+name) == guarded
			})
		}
	}
}

// consults has the doctor look at the node, with the arguments of the pod: what a daemon
// that is well stands on is as it should be, and nothing of it is left over.
func (n *place) consults(d deployment) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), patience)
	defer cancel()
	c := exec.CommandContext(ctx, "/nodens", append([]string{"doctor"}, strings.Fields(d.args)...)...)
	c.Env, c.Dir, c.SysProcAttr = n.Env, "/", &syscall.SysProcAttr{Chroot: n.root}
	out, _ := c.CombinedOutput() // warnings are its status, too
	for _, want := range []string{"fine     daemon: nodens ", "fine     leftovers: "} {
		if !bytes.Contains(out, []byte(want)) {
			n.t.Errorf("the doctor does not say %q:\n%s", want, out)
		}
	}
	for _, never := range []string{"link name: ", " address: ", "configuration: ", " host: ", "bad      guard: ", "bad      servers: "} {
		if bytes.Contains(out, []byte(never)) {
			n.t.Errorf("the doctor says %q:\n%s", never, out)
		}
	}
}

// hasGivenUp looks at the capabilities of every thread: only those for ports below 1024
// and for interface and rules are left, and no program could get others back.
func (n *place) hasGivenUp() {
	n.t.Helper()
	const left = "0000000000001400"
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", n.Process.Pid))
	if err != nil || len(files) < 2 {
		n.t.Fatalf("%d threads: %v", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		for _, want := range []string{"CapInh:\t0000000000000000", "CapPrm:\t" + left, "CapEff:\t" + left} {
			if !strings.Contains(string(data), want) {
				n.t.Errorf("%s: without %q:\n%s", file, want, data)
			}
		}
		if bounding := value(string(data), "CapBnd"); len(strings.Trim(bounding, "014")) > 0 {
			n.t.Errorf("%s: a program could get back %s", file, bounding)
		}
	}
}

// value is what a line "NAME: VALUE" says.
func value(text, name string) string {
	_, rest, _ := strings.Cut(text, name+":")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(line)
}

func (n *place) hasLink(name string) {
	n.t.Helper()
	links, err := netlink.LinkList()
	if err != nil {
		n.t.Fatal(err)
	}
	found := ""
	for _, l := range links {
		if l.Attrs().Name == "nodelocaldns" {
			found = l.Attrs().Name
		}
	}
	if found != name {
		n.t.Errorf("the interface is %q, want %q", found, name)
	}
}

// ends sends the signal and waits for a clean end.
func (n *place) ends(signal syscall.Signal) {
	n.t.Helper()
	if err := n.Process.Signal(signal); err != nil {
		n.t.Fatal(err)
	}
	if err := n.Wait(); err != nil {
		n.t.Errorf("after %v: %v", signal, err)
	}
}

// Signals have the effect that they have in node-cache, or none that hurts.
func nodeCacheSignals(t *testing.T, binary string) {
	n := newPlace(t)
	path := filepath.Join(n.root, "etc/coredns/Corefile.base")
	n.start(binary, deployment{
		args:  "-localip 169.254.20.10 -conf /etc/Corefile -setupiptables=false",
		files: map[string]string{"/etc/coredns/Corefile.base": ". {\n bind 169.254.20.10\n forward . 192.0.2.53\n cache 1\n}\n"},
	})
	if got := n.answers("169.254.20.10", "a.example."); got != "NOERROR 192.0.2.53" {
		t.Errorf("before: %s", got)
	}
	if err := n.Process.Signal(syscall.SIGUSR2); err != nil {
		t.Fatal(err)
	}
	write(t, path, ". {\n bind 169.254.20.10\n forward . 192.0.2.77\n cache 1\n}\n")
	if err := n.Process.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	await(t, "the new servers", func() bool {
		return n.answers("169.254.20.10", fmt.Sprintf("b%d.example.", time.Now().UnixNano())) == "NOERROR 192.0.2.77"
	})
	n.ends(syscall.SIGQUIT)
	n.hasLink("")
	if !strings.Contains(n.log.String(), "USR2 is passed over") {
		t.Error("USR2 is not told")
	}
}

// A ConfigMap is replaced as the kubelet does it, by a link that leads elsewhere. A
// new one with a mistake leaves everything as it was, and is counted.
func TestNodeCacheConfigMaps(t *testing.T) {
	up, other := newScripted(t, 3, 0), newScripted(t, 4, 0)
	dir := t.TempDir()
	configs := configMap{t: t, folder: filepath.Join(dir, "coredns")}
	stubs := configMap{t: t, folder: filepath.Join(dir, "kube-dns")}
	corefile := func(server netip.AddrPort) string {
		return fmt.Sprintf(".:0 {\n bind 127.0.0.1\n forward . %s\n cache 30\n prometheus 127.0.0.1:0\n}\n", server)
	}
	configs.set(map[string]string{"Corefile.base": corefile(up.address)})
	stubs.set(map[string]string{"stubDomains": "{broken"})
	f, err := parseNodeCache(strings.Fields("-localip 127.0.0.1 -setupinterface=false -setupiptables=false -metrics-listen-address 127.0.0.1:0 "+
		"-conf "+dir+"/none -basecorefile "+configs.folder+"/Corefile.base -kubednscm "+stubs.folder), &strings.Builder{})
	if err != nil {
		t.Fatal(err)
	}
	h := serveNodeCache(t, f)
	h.expect("udp", h.address(0), "a.stub.example.", 0, "NOERROR 192.0.2.3")
	await(t, "the count of a mistake at the start", func() bool { return h.setup[setupConfigMap].Load() == 1 })
	if h.logs.FilterMessageSnippet("the ConfigMap kube-dns counts as empty").Len() != 1 {
		t.Error("the mistake is not told")
	}
	at := h.reloads.result().At
	look := func(what string) reloadResult {
		t.Helper()
		await(t, what, func() bool { return h.reloads.result().At != at })
		at = h.reloads.result().At
		return h.reloads.result()
	}
	stubs.set(map[string]string{"stubDomains": fmt.Sprintf(`{"stub.example": [%q]}`, other.address)})
	if r := look("a stub domain"); r.Err != nil {
		t.Fatal(r.Err)
	}
	h.expect("udp", h.address(0), "b.stub.example.", 0, "NOERROR 192.0.2.4")
	stubs.set(map[string]string{"stubDomains": `{"stub.example": ["nobody"]}`})
	if r := look("a mistake in a stub domain"); r.Err == nil || h.setup[setupConfigMap].Load() != 2 {
		t.Errorf("%v, counted %d times", r.Err, h.setup[setupConfigMap].Load())
	}
	h.expect("udp", h.address(0), "c.stub.example.", 0, "NOERROR 192.0.2.4")
	stubs.set(nil)
	if r := look("no stub domain"); r.Err != nil {
		t.Fatal(r.Err)
	}
	configs.set(map[string]string{"Corefile.base": "oops:x"})
	if r := look("a mistake in the Corefile"); r.Err == nil || r.Failed != 3 {
		t.Errorf("%v, failed %d", r.Err, r.Failed)
	}
	stubs.set(map[string]string{"stubDomains": "{}}"})
	if r := look("a mistake in both"); r.Err == nil || !strings.Contains(r.Err.Error(), "stubDomains:1: ") || !strings.Contains(r.Err.Error(), "Corefile.base:1: ") {
		t.Errorf("both have mistakes, and it says %v", r.Err)
	}
	stubs.set(nil)
	if r := look("a mistake in one again"); r.Err == nil || strings.Contains(r.Err.Error(), "stubDomains") {
		t.Errorf("the Corefile has a mistake, and it says %v", r.Err)
	}
	h.expect("udp", h.address(0), "d.example.", 0, "NOERROR 192.0.2.3")
	configs.set(map[string]string{"Corefile.base": corefile(other.address)})
	if r := look("another server"); r.Err != nil {
		t.Fatal(r.Err)
	}
	h.expect("udp", h.address(0), "e.example.", 0, "NOERROR 192.0.2.4")
}

// node-cache's manifests do not tell the node's name; its own is that of the host.
func TestNodeCacheKnowsItsNode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "Corefile")
	write(t, path, ". {\n bind 127.0.0.1\n forward . 192.0.2.1\n cache\n}\n")
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for want, environ := range map[string][]string{strings.ToLower(host): nil, "node-1": {"NODE_NAME=node-1"}} {
		n, err := newNodeCache(&nodeCacheFlags{baseCorefile: path, healthPort: 8080, metricsAt: "0.0.0.0:9353"}, environ)
		if err != nil {
			t.Fatal(err)
		}
		if c, _, err := n.first(); err != nil || c.Node.Name != want {
			t.Errorf("%q: %q, %v, want %q", environ, c.Node.Name, err, want)
		}
	}
}

// configMap is a folder as the kubelet mounts it.
type configMap struct {
	t       *testing.T
	folder  string
	version int
}

func (m *configMap) set(files map[string]string) {
	m.t.Helper()
	m.version++
	data := fmt.Sprintf("..%d", m.version)
	if err := os.MkdirAll(filepath.Join(m.folder, data), 0o755); err != nil {
		m.t.Fatal(err)
	}
	for name, text := range files {
		write(m.t, filepath.Join(m.folder, data, name), text)
		if _, err := os.Lstat(filepath.Join(m.folder, name)); err != nil {
			if err := os.Symlink(filepath.Join("..data", name), filepath.Join(m.folder, name)); err != nil {
				m.t.Fatal(err)
			}
		}
	}
	link := filepath.Join(m.folder, "..new")
	if err := os.Symlink(data, link); err != nil {
		m.t.Fatal(err)
	}
	if err := os.Rename(link, filepath.Join(m.folder, "..data")); err != nil {
		m.t.Fatal(err)
	}
}

func TestSyncInterval(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"60": time.Minute, "1ns": time.Second, "60ns": time.Minute, "30s": 30 * time.Second, "1m": time.Minute,
		"999ns": 999 * time.Second, "1us": time.Microsecond, "0": 0, "soon": -1, "-5": -1, "-1s": -1,
	} {
		var i syncInterval
		if err := i.Set(text); err != nil {
			i.Duration = -1
		}
		if i.Duration != want {
			t.Errorf("-syncinterval %s: %v, want %v", text, i.Duration, want)
		}
	}
}

// Without its certificate TLS is a mistake of the start, not of the first scrape.
func TestNodeCacheWithoutCertificate(t *testing.T) {
	f, err := parseNodeCache(strings.Fields("-tls-enabled -tls-cert-file /nowhere/tls.crt -conf a"), &strings.Builder{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newNodeCache(f, nil); err == nil || !strings.Contains(err.Error(), "-tls-enabled: certificate of the metrics: open /nowhere/tls.crt") {
		t.Errorf("got %v", err)
	}
}

// What the command line says in vain is told, and what cannot be meant is refused.
func TestNodeCacheFlags(t *testing.T) {
	for line, want := range map[string]string{
		"-setupebtables -conf a":                               "there is no flag -setupebtables",
		"-unknown value -conf a":                               "there is no flag -unknown",
		"--unknown=value --conf a":                             "there is no flag -unknown",
		"-setupinterface false -conf a":                        "-setupinterface false is read as -setupinterface=false",
		"run -conf a":                                          `"run" is too much`,
		"-syncinterval 5ns -conf a":                            "-syncinterval 5ns is read as 5s, as node-cache does; write 5",
		"-localip 169.254.20.10 -setupinterface=false -conf a": "-setupiptables makes no rules beside -setupinterface=false",
		"-tls-enabled -tls-min-version TLS10 -conf a":          "-tls-min-version TLS10 is too old",
	} {
		f, err := parseNodeCache(strings.Fields(line), &strings.Builder{})
		if err != nil || f.conf != "a" || len(f.warnings) != 1 || !strings.Contains(f.warnings[0], want) {
			t.Errorf("%s: %+v, %v; want %q", line, f, err, want)
		}
	}
	for _, line := range []string{
		"-syncinterval soon", "-dns.port 0", "-dns.port 70000", "-metrics-listen-address nine", "-prometheus-listen-address 9253",
		"-tls-enabled -tls-client-auth-type all", "-tls-enabled -tls-min-version 1", "-setupinterface=maybe", "-conf",
		"-localip nine", "-localip 169.254.20.10 -conf /nowhere/a -basecorefile /nowhere/b -corefile /nowhere/c",
	} {
		var out strings.Builder
		if status := run(t.Context(), strings.Fields(line), noEnv, &out, &out); status == 0 || out.Len() == 0 {
			t.Errorf("%s: %d, %q", line, status, &out)
		}
	}
	for line, want := range map[string]string{"-version": "nodens", "-plugins": "forward", "--version": "nodens"} {
		var out strings.Builder
		if status := run(t.Context(), strings.Fields(line), noEnv, &out, &out); status != 0 || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %d, %q", line, status, &out)
		}
	}
}

// Every flag of node-cache and of the CoreDNS in it is taken, in both forms and without
// a warning.
func TestEveryFlagOfNodeCache(t *testing.T) {
	values := map[string]string{
		"localip": "169.254.20.10", "setupinterface": "true", "interfacename": "nodelocaldns", "syncinterval": "60",
		"metrics-listen-address": "0.0.0.0:9353", "setupiptables": "true", "basecorefile": "/etc/coredns/Corefile.base",
		"corefile": "/etc/Corefile", "kubednscm": "/etc/kube-dns", "upstreamsvc": "kube-dns", "health-port": "8080",
		"skipteardown": "false", "reloadwithsignal": "false", "conf": "/etc/Corefile", "pidfile": "/tmp/pid", "plugins": "false",
		"version": "false", "quiet": "false", "dns.port": "53", "p": "53", "prometheus-listen-address": ":9253",
		"tls-enabled": "false", "tls-cert-file": "/etc/ssl/tls.crt", "tls-private-key-file": "/etc/ssl/tls.key",
		"tls-client-auth-type": "NoClientCert", "tls-client-ca-file": "/ca", "tls-min-version": "TLS13",
	}
	var all []string
	for _, name := range sortedKeys(values) {
		all = append(all, "-"+name+"="+values[name])
		if f, err := parseNodeCache([]string{"--" + name + "=" + values[name]}, &strings.Builder{}); err != nil || len(f.warnings) > 0 {
			t.Errorf("--%s: %v, %+v", name, err, f)
		}
	}
	if f, err := parseNodeCache(all, &strings.Builder{}); err != nil || len(f.warnings) > 0 {
		t.Errorf("all of them: %v, %+v", err, f)
	}
}

// fetchHere reads a page over a connection of this very goroutine, whose network it is
// that counts.
func fetchHere(url string) (string, error) {
	rest := strings.TrimPrefix(url, "http://")
	host, path, _ := strings.Cut(rest, "/")
	conn, err := net.Dial("tcp", host)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "GET /%s HTTP/1.0\r\nHost: %s\r\n\r\n", path, host); err != nil {
		return "", err
	}
	body, err := io.ReadAll(conn)
	return string(body), err
}
