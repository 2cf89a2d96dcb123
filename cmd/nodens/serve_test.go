package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// house is a daemon under test with its configuration file.
type house struct {
	*daemon
	t    *testing.T
	path string
	logs *observer.ObservedLogs
	stop context.CancelFunc
	err  chan error
}

// patience is a bound that no machine is too slow for.
const patience = time.Minute

// head gives a stop the time that a slow machine takes.
const head = "version: v1\nadmin: {address: 127.0.0.1:0}\nstopGrace: 1m\n"

// serve starts a daemon with the configuration and waits until it is ready.
func serve(t *testing.T, config string) *house {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nodens.yaml")
	write(t, path, head+config)
	return serveFile(t, path)
}

func serveFile(t *testing.T, path string) *house {
	t.Helper()
	core, logs := observer.New(zap.DebugLevel)
	h := &house{t: t, path: path, logs: logs, err: make(chan error, 1)}
	c, err := loadConfig(h.path, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	h.daemon = newDaemon(zap.New(core), zap.NewAtomicLevel(), keepMemory)
	var ctx context.Context
	ctx, h.stop = context.WithCancel(context.Background())
	go func() { h.err <- h.daemon.serve(ctx, c) }()
	t.Cleanup(func() {
		if err := h.end(); err != nil {
			t.Errorf("the daemon ended with: %v", err)
		}
	})
	await(t, "readiness", func() bool { return h.ready.Load() == "" })
	return h
}

// keepMemory leaves the collector of the test process alone.
func keepMemory(name string) string {
	if name == "GOGC" || name == "GOMEMLIMIT" || name == "GOMAXPROCS" {
		return "as it is"
	}
	return ""
}

// end stops the daemon, once.
func (h *house) end() error {
	if h.stop == nil {
		return nil
	}
	h.stop()
	h.stop = nil
	select {
	case err := <-h.err:
		return err
	case <-time.After(patience):
		return errors.New("it does not end")
	}
}

func (h *house) address(i int) netip.AddrPort { return h.current.Load().listens[i].address() }

// reconfigure replaces the file and waits until it was looked at.
func (h *house) reconfigure(config string) reloadResult {
	h.t.Helper()
	before := h.reloads.result()
	replace(h.t, h.path, head+config)
	await(h.t, "the reload", func() bool { return h.reloads.result().At != before.At })
	return h.reloads.result()
}

func (h *house) expect(proto string, to netip.AddrPort, name string, edns uint16, want string) {
	h.t.Helper()
	if got := answerOf(ask(h.t, proto, to, name, edns)); got != want {
		h.t.Errorf("%s over %s: %s, want %s", name, proto, got, want)
	}
}

func TestServe(t *testing.T) {
	up := newScripted(t, 7, 0)
	h := serve(t, fmt.Sprintf("listen: [127.0.0.1:0, \"[::1]:0\"]\nroutes: [{zones: [.], servers: [%q]}]\n", up.address))
	v4, v6 := h.address(0), h.address(1)

	h.expect("udp", v4, "a.example.", 0, "NOERROR 192.0.2.7")
	up.changed.Store(true) // from memory it is what it was
	h.expect("tcp", v4, "a.example.", 0, "NOERROR 192.0.2.7")
	h.expect("udp", v6, "A.Example.", 1232, "NOERROR 192.0.2.7")
	h.expect("udp", v4, "nx.example.", 0, "NXDOMAIN")
	h.expect("udp", v4, "localhost.", 0, "NOERROR 127.0.0.1")
	h.expect("udp", v4, "x.onion.", 0, "NXDOMAIN")
	if up.edns.Load() == 0 {
		t.Error("the server was never asked with EDNS")
	}
	// More than a datagram: truncated for UDP, whole over TCP.
	if reply := ask(t, "udp", v4, "big.example.", 512); !reply.Truncated {
		t.Errorf("big over UDP: %s, want it truncated", answerOf(reply))
	}
	h.expect("tcp", v4, "big.example.", 0, "NOERROR 200 answers")
	if reply := ask(t, "udp", v4, "b.example.", 1232); reply.IsEdns0() == nil {
		t.Error("a reply to a query with EDNS has none")
	}
	if reply := ask(t, "udp", v4, "b.example.", 0); reply.IsEdns0() != nil {
		t.Error("a reply to a query without EDNS has it")
	}

	r := h.report()
	if r.Rates.Total["hit"] < 2 || r.Rates.Total["miss"] < 4 || r.Rates.Total["local"] != 2 || r.Cache.Entries < 3 {
		t.Errorf("report counts %v, %d entries", r.Rates.Total, r.Cache.Entries)
	}
	if err := h.end(); err != nil {
		t.Errorf("stop: %v", err)
	}
	if _, err := net.DialTimeout("tcp", v4.String(), time.Second); err == nil {
		t.Error("after the stop the address is still served")
	}
}

func TestServeFollowsTopology(t *testing.T) {
	node, other := newScripted(t, 1, 0), newScripted(t, 2, 0)
	slices := filepath.Join(t.TempDir(), "slices.yaml")
	write(t, slices, endpointSlice(node.address, "n1")+"---\n"+endpointSlice(other.address, "n2"))
	h := serve(t, "listen: [127.0.0.1:0]\nnode: {name: n1}\nroutes: [{zones: [cluster.local], topology: {file: "+slices+"}}]\n")
	h.expect("udp", h.address(0), "a.cluster.local.", 0, "NOERROR 192.0.2.1")
	s := h.snapshot()
	for i, want := range []string{"n1/?: ready, serving", "n2/?: ready, serving"} {
		if got := s.routeReport(0).Servers[i]; got.Says() != want || got.Why == "" {
			t.Errorf("server %d: %q, why %q; want %q and a reason", i, got.Says(), got.Why, want)
		}
	}
	replace(t, slices, endpointSlice(other.address, "n2"))
	await(t, "the endpoint to leave", func() bool { return len(h.current.Load().routes[0].group.Status().Targets) == 1 })
	h.expect("udp", h.address(0), "b.cluster.local.", 0, "NOERROR 192.0.2.2")
	if reply := ask(t, "udp", h.address(0), "a.example.", 0); reply.Rcode != dns.RcodeServerFailure {
		t.Errorf("a name in no zone: %s, want SERVFAIL", answerOf(reply))
	}
}

func endpointSlice(address netip.AddrPort, node string) string {
	return fmt.Sprintf(`apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %s, namespace: kube-system, labels: {kubernetes.io/service-name: kube-dns}}
addressType: IPv4
ports:
- {name: dns, port: %d, protocol: UDP}
- {name: dns-tcp, port: %d, protocol: TCP}
endpoints:
- {addresses: [%s], nodeName: %s, conditions: {ready: true, serving: true}}
`, node, address.Port(), address.Port(), address.Addr(), node)
}

// Everything sent before the stop is answered: hits, and misses that wait for
// a slow server, over UDP and TCP.
func TestStopUnderLoadLosesNothing(t *testing.T) {
	up := newScripted(t, 7, 40*time.Millisecond)
	h := serve(t, fmt.Sprintf("listen: [127.0.0.1:0]\nroutes: [{zones: [.], servers: [%q]}]\n", up.address))
	ask(t, "udp", h.address(0), "hit.example.", 0)
	l := crowd{to: h.address(0)}
	for i := range 24 {
		l.clients.Go(func() { l.client(t, []string{"udp", "udp", "tcp"}[i%3], i) })
	}
	await(t, "load", func() bool { return l.sent.Load() > 200 })
	l.over.Store(true) // from here on nobody sends anything new...
	time.Sleep(2 * time.Millisecond)
	err := h.end() // ...and what was sent is being worked on
	l.clients.Wait()
	if err != nil {
		t.Errorf("stop: %v", err)
	}
	if l.sent.Load() != l.answered.Load() || l.failed.Load() != 0 {
		t.Errorf("%d queries sent, %d answered, %d of them with an error", l.sent.Load(), l.answered.Load(), l.failed.Load())
	}
}

// crowd is clients that each ask one question after the other.
type crowd struct {
	to                     netip.AddrPort
	over                   atomic.Bool
	clients                sync.WaitGroup
	sent, answered, failed atomic.Int64
}

func (l *crowd) client(t *testing.T, proto string, id int) {
	client := &dns.Client{Net: proto, Timeout: patience}
	conn, err := client.Dial(l.to.String())
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	for n := 0; !l.over.Load(); n++ {
		name := "hit.example."
		if n%4 != 0 {
			name = fmt.Sprintf("m%d-%d.example.", id, n)
		}
		l.sent.Add(1)
		reply, _, err := client.ExchangeWithConn(new(dns.Msg).SetQuestion(name, dns.TypeA), conn)
		if err != nil {
			t.Errorf("%s over %s: %v", name, proto, err)
			return
		}
		l.answered.Add(1)
		if reply.Rcode != dns.RcodeSuccess {
			l.failed.Add(1)
		}
	}
}

// What is wrong on this machine is one sentence with advice, and exit status 1.
func TestStartErrors(t *testing.T) {
	taken, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	empty := filepath.Join(dir, "resolv.conf")
	write(t, empty, "search example\n")
	broken := filepath.Join(dir, "broken.yaml")
	write(t, broken, "kind: Pod\n")
	plain := "routes: [{zones: [.], servers: [192.0.2.1]}]\n"
	for name, test := range map[string]struct {
		config string
		want   []string
	}{
		"port in use": {
			"listen: [\"" + taken.LocalAddr().String() + "\"]\n" + plain,
			[]string{"cannot listen on " + taken.LocalAddr().String() + " over UDP", "over UDP: address already in use; stop the program that has it ('ss -lntup"},
		},
		"no such address": {"listen: [192.0.2.77:5353]\n" + plain, []string{"cannot listen on 192.0.2.77:5353 over UDP: cannot assign requested address; this machine has no such address: add it to an interface"}},
		"no topology": {
			"listen: [127.0.0.1:0]\nroutes: [{zones: [a.example], topology: {file: " + dir + "/none}}]\n",
			[]string{"route for a.example.", dir + "/none does not exist", "create it"},
		},
		"no topology, no folder": {
			"listen: [127.0.0.1:0]\nroutes: [{zones: [a.example], topology: {file: " + dir + "/none/none}}]\n",
			[]string{"route for a.example.", dir + "/none/none does not exist", "create it"},
		},
		"bad topology": {
			"listen: [127.0.0.1:0]\nroutes: [{zones: [a.example], topology: {file: " + broken + "}}]\n",
			[]string{"route for a.example.", broken},
		},
		"no nameserver": {
			"listen: [127.0.0.1:0]\nroutes: [{zones: [.], resolvConf: " + empty + "}]\n",
			[]string{"route for .", "names no usable nameserver; add one"},
		},
		"no resolv.conf": {
			"listen: [127.0.0.1:0]\nroutes: [{zones: [.], resolvConf: " + dir + "/none}]\n",
			[]string{"resolv.conf cannot be read", "no such file"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, "c.yaml")
			write(t, path, head+test.config)
			var stderr strings.Builder
			status := run(t.Context(), []string{"serve", "-config", path}, keepMemory, &strings.Builder{}, &stderr)
			if status != 1 {
				t.Errorf("status %d, want 1", status)
			}
			lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
			last := lines[len(lines)-1]
			if len(lines) != 1 {
				t.Errorf("stderr has more than one line:\n%s", &stderr)
			}
			if strings.Count(last, ";") > 1 || strings.Count(last, "already in use") > 1 {
				t.Errorf("stderr ends with %q, which advises twice", last)
			}
			for _, want := range append(test.want, "nodens cannot start: ") {
				if !strings.Contains(last, want) {
					t.Errorf("stderr ends with %q, want it to say %q", last, want)
				}
			}
		})
	}
}

func TestServeNeedsAFile(t *testing.T) {
	for args, want := range map[string]int{"serve": 2, "serve -config /nowhere/at/all": 1} {
		var stderr strings.Builder
		if status := run(t.Context(), strings.Fields(args), os.Getenv, &stderr, &stderr); status != want || stderr.Len() == 0 {
			t.Errorf("%s: status %d, %q", args, status, &stderr)
		}
	}
}

// serveNodeCache starts a daemon as node-cache's command line would.
func serveNodeCache(t *testing.T, f *nodeCacheFlags) *house {
	t.Helper()
	n, err := newNodeCache(f, os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	c, bad, err := n.first()
	if err != nil {
		t.Fatal(err)
	}
	core, logs := observer.New(zap.DebugLevel)
	h := &house{t: t, logs: logs, err: make(chan error, 1)}
	h.daemon = newDaemon(zap.New(core), zap.NewAtomicLevel(), keepMemory)
	n.wire(h.daemon, bad)
	var ctx context.Context
	ctx, h.stop = context.WithCancel(context.Background())
	go func() { h.err <- n.serve(ctx, h.daemon, c) }()
	t.Cleanup(func() {
		if err := h.end(); err != nil {
			t.Errorf("the daemon ended with: %v", err)
		}
	})
	await(t, "readiness", func() bool { return h.ready.Load() == "" })
	return h
}
