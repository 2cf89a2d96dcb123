package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

	"github.com/nodens-dns/nodens/bench/space"
)

// TestMain lets a test start this very binary as the daemon, or as a program
// that looks up a name.
func TestMain(m *testing.M) {
	if os.Getenv("NODENS_TEST_NO_NETFILTER") != "" {
		panic(withoutNetfilter())
	}
	if os.Getenv("NODENS_TEST_MAIN") != "" {
		main()
	}
	if os.Getenv("NODENS_TEST_LOOKUP") != "" {
		lookUp(os.Args[1])
	}
	os.Exit(m.Run())
}

func installed(programs ...string) bool {
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			return false
		}
	}
	return true
}

// startProcess starts a program that ends with the test.
func startProcess(t *testing.T, log *bytes.Buffer, env []string, name string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(name, args...)
	c.Env = append(os.Environ(), env...)
	c.Stdout, c.Stderr = log, log
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started, over := make(chan error), make(chan struct{})
	go func() {
		// The signal of the parent's death comes when this thread ends.
		runtime.LockOSThread()
		started <- c.Start()
		<-over
	}()
	if err := <-started; err != nil {
		close(over)
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill() // it may have ended by itself
		_ = c.Wait()
		close(over)
		if t.Failed() {
			t.Logf("%s said:\n%s", filepath.Base(name), log)
		}
	})
	return c
}

const clusterZone = `$ORIGIN cluster.local.
@ 30 IN SOA ns.dns.cluster.local. hostmaster.cluster.local. 1 7200 1800 86400 5
web.default.svc 30 IN A 10.96.0.10
db.default.svc 30 IN A 10.96.0.11
db.default.svc 30 IN AAAA fd00::11
alias.default.svc 30 IN CNAME web.default.svc
_http._tcp.web.default.svc 30 IN SRV 0 100 80 web.default.svc
`

// startCoreDNS starts a real CoreDNS with a zone that has small and very large
// answers, and waits until it answers.
func startCoreDNS(t *testing.T) netip.AddrPort {
	t.Helper()
	binary := os.Getenv("NODENS_COREDNS")
	space.Needs(t, "coredns", binary != "" && installed(binary))
	dir, at := t.TempDir(), space.Free(t)
	var zone strings.Builder
	zone.WriteString(clusterZone)
	for i := range 200 {
		fmt.Fprintf(&zone, "big.default.svc 30 IN A 10.97.%d.%d\n", i/100, i%100)
	}
	for i := range 60 {
		fmt.Fprintf(&zone, "s%d.default.svc 30 IN A 10.98.0.%d\n", i, i)
	}
	corefile := fmt.Sprintf("cluster.local:%d {\n bind %s\n file %s/zone\n errors\n}\n", at.Port(), at.Addr(), dir)
	write(t, filepath.Join(dir, "zone"), zone.String())
	write(t, filepath.Join(dir, "Corefile"), corefile)
	startProcess(t, new(bytes.Buffer), nil, binary, "-conf", filepath.Join(dir, "Corefile"))
	untilAnswers(t, at)
	return at
}

func untilAnswers(t *testing.T, at netip.AddrPort) {
	t.Helper()
	m := new(dns.Msg).SetQuestion("web.default.svc.cluster.local.", dns.TypeA)
	for limit := time.Now().Add(patience); time.Now().Before(limit); time.Sleep(50 * time.Millisecond) {
		c := dns.Client{Timeout: time.Second}
		if r, _, err := c.Exchange(m, at.String()); err == nil && r.Rcode == dns.RcodeSuccess {
			return
		}
	}
	t.Fatalf("%v did not answer within %v", at, patience)
}

// startNodens starts the daemon as a process of its own in front of a server.
func startNodens(t *testing.T, listen, server netip.AddrPort) *exec.Cmd {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nodens.yaml")
	write(t, path, fmt.Sprintf("version: v1\nlisten: [%q]\nadmin: {address: 127.0.0.1:0}\nroutes: [{zones: [cluster.local], servers: [%q]}]\n", listen, server))
	c := startProcess(t, new(bytes.Buffer), []string{"NODENS_TEST_MAIN=1"}, os.Args[0], "serve", "-config", path)
	untilAnswers(t, listen)
	return c
}

// TestClients asks real CoreDNS through the daemon with the programs people
// use, and sees that the answers are CoreDNS's own.
func TestClients(t *testing.T) {
	server := startCoreDNS(t)
	at := space.Free(t)
	startNodens(t, at, server)
	ip, port := at.Addr().String(), fmt.Sprint(at.Port())
	tests := []struct {
		name string
		args []string
		want []string // in what it prints, in order
	}{
		{"dig", []string{"@" + ip, "-p", port, "web.default.svc.cluster.local"}, []string{"NOERROR", "EDNS: version: 0", "10.96.0.10"}},
		{"dig", []string{"@" + ip, "-p", port, "+noedns", "WEB.default.svc.cluster.local"}, []string{"NOERROR", "WEB.default.svc.cluster.local.", "10.96.0.10"}},
		{"dig", []string{"@" + ip, "-p", port, "+tcp", "alias.default.svc.cluster.local"}, []string{"CNAME", "10.96.0.10", "(TCP)"}},
		{"dig", []string{"@" + ip, "-p", port, "+dnssec", "db.default.svc.cluster.local", "AAAA"}, []string{"flags: do", "fd00::11"}},
		{"dig", []string{"@" + ip, "-p", port, "nothing.default.svc.cluster.local"}, []string{"NXDOMAIN", "SOA"}},
		{"dig", []string{"@" + ip, "-p", port, "web.default.svc.cluster.local", "MX"}, []string{"NOERROR", "ANSWER: 0", "SOA"}},
		{"dig", []string{"@" + ip, "-p", port, "_http._tcp.web.default.svc.cluster.local", "SRV"}, []string{"0 100 80 web.default.svc.cluster.local."}},
		{"dig", []string{"@" + ip, "-p", port, "+ignore", "+bufsize=600", "big.default.svc.cluster.local"}, []string{"flags: qr tc rd ra"}},
		{"dig", []string{"@" + ip, "-p", port, "big.default.svc.cluster.local"}, []string{"Truncated, retrying in TCP mode", "ANSWER: 200", "10.97.1.99", "(TCP)"}},
		{"dig", []string{"@" + ip, "-p", port, "+edns=1", "+noednsneg", "web.default.svc.cluster.local"}, []string{"BADVERS"}},
		{"dig", []string{"@" + ip, "-p", port, "+opcode=notify", "web.default.svc.cluster.local"}, []string{"NOTIMP"}},
		{"dig", []string{"@" + ip, "-p", port, "cluster.local", "AXFR"}, []string{"Transfer failed"}},
		{"kdig", []string{"@" + ip, "-p", port, "web.default.svc.cluster.local"}, []string{"NOERROR", "10.96.0.10"}},
		{"kdig", []string{"@" + ip, "-p", port, "+tcp", "+dnssec", "big.default.svc.cluster.local"}, []string{"ANSWER: 200"}},
		{"kdig", []string{"@" + ip, "-p", port, "+tcp", "+keepopen", "web.default.svc.cluster.local", "db.default.svc.cluster.local"}, []string{"10.96.0.10", "10.96.0.11"}},
	}
	for _, tt := range tests {
		for _, pass := range []string{"miss", "hit"} {
			t.Run(pass+" "+tt.name+" "+strings.Join(tt.args[3:], " "), func(t *testing.T) {
				space.Needs(t, tt.name, installed(tt.name))
				out := runClient(t, nil, tt.name, tt.args...)
				for rest := out; len(tt.want) > 0; tt.want = tt.want[1:] {
					_, after, found := strings.Cut(rest, tt.want[0])
					if !found {
						t.Fatalf("no %q, in its place, in:\n%s", tt.want[0], out)
					}
					rest = after
				}
			})
		}
	}
}

func runClient(t *testing.T, attr *syscall.SysProcAttr, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := exec.CommandContext(ctx, name, args...)
	c.SysProcAttr = attr
	out, err := c.CombinedOutput()
	if err != nil {
		t.Logf("%s: %v", name, err)
	}
	return string(out)
}

func TestDnsperf(t *testing.T) {
	space.Needs(t, "dnsperf", installed("dnsperf"))
	server := startCoreDNS(t)
	at := space.Free(t)
	startNodens(t, at, server)
	var queries strings.Builder
	for i := range 60 {
		fmt.Fprintf(&queries, "s%d.default.svc.cluster.local A\ns%d.default.svc.cluster.local AAAA\n", i, i)
	}
	file := filepath.Join(t.TempDir(), "queries")
	write(t, file, queries.String())
	for _, mode := range []string{"udp", "tcp"} {
		out := runClient(t, nil, "dnsperf", "-s", at.Addr().String(), "-p", fmt.Sprint(at.Port()), "-m", mode,
			"-d", file, "-n", "20", "-q", "20", "-l", "20")
		for _, want := range []string{"Queries sent:         2400", "Queries lost:         0 (0.00%)", "NOERROR 2400 (100.00%)"} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in:\n%s", mode, want, out)
			}
		}
	}
}

// TestGoResolver asks with the resolver of Go's own library.
func TestGoResolver(t *testing.T) {
	server := startCoreDNS(t)
	at := space.Free(t)
	startNodens(t, at, server)
	r := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, at.String())
	}}
	for range 2 {
		for name, want := range map[string]int{"web.default.svc.cluster.local.": 1, "db.default.svc.cluster.local.": 2, "alias.default.svc.cluster.local.": 1, "big.default.svc.cluster.local.": 200} {
			got, err := r.LookupIPAddr(t.Context(), name)
			if err != nil || len(got) != want {
				t.Errorf("%s: %d addresses, want %d; error %v", name, len(got), want, err)
			}
		}
		_, err := r.LookupIPAddr(t.Context(), "nothing.default.svc.cluster.local.")
		if gone := new(net.DNSError); !errors.As(err, &gone) || !gone.IsNotFound {
			t.Errorf("a name that does not exist: %v", err)
		}
	}
}

// TestGlibc asks with the C library's own resolver, which knows no port but
// 53 and reads only /etc/resolv.conf: both are put in place for it alone.
func TestGlibc(t *testing.T) {
	space.Needs(t, "root", os.Geteuid() == 0)
	space.Needs(t, "getent", installed("unshare", "getent", "mount"))
	server := startCoreDNS(t)
	at := netip.AddrPortFrom(space.Free(t).Addr(), 53)
	startNodens(t, at, server)
	conf := filepath.Join(t.TempDir(), "resolv.conf")
	write(t, conf, "nameserver "+at.Addr().String()+"\nsearch default.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n")
	getent := func(name string) string {
		return runClient(t, nil, "unshare", "--mount", "sh", "-c", `mount --bind "$0" /etc/resolv.conf && exec getent ahosts "$1"`, conf, name)
	}
	for _, tt := range []struct {
		name string
		want []string
	}{
		{"web", []string{"10.96.0.10"}},
		{"web.default", []string{"10.96.0.10"}},
		{"db", []string{"10.96.0.11", "fd00::11"}},
		{"alias.default.svc", []string{"10.96.0.10"}},
		{"big", []string{"10.97.0.0", "10.97.1.99"}},
		{"nothing", nil},
	} {
		for _, pass := range []string{"miss", "hit"} {
			out := getent(tt.name)
			for _, want := range tt.want {
				if !strings.Contains(out, want) {
					t.Errorf("%s, %s: no %s in:\n%s", tt.name, pass, want, out)
				}
			}
			if tt.want == nil && strings.TrimSpace(out) != "" {
				t.Errorf("%s, %s: unexpected\n%s", tt.name, pass, out)
			}
		}
	}
}
