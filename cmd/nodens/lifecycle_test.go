package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/topology"
)

// TestProbe asks a daemon from its start to its end, as the kubelet does.
func TestProbe(t *testing.T) {
	up := newScripted(t, 7, 0)
	folder := t.TempDir()
	socket := filepath.Join(folder, "probe.sock")
	write(t, socket+".old", "") // not ours
	path := filepath.Join(folder, "nodens.yaml")
	write(t, path, fmt.Sprintf("version: v1\nadmin: {address: 127.0.0.1:0, socket: %s}\nlisten: [127.0.0.1:0]\nroutes: [{zones: [.], servers: [%q]}]\n", socket, up.address))
	probe := func(words ...string) (int, string) {
		var out bytes.Buffer
		status := run(t.Context(), append([]string{"probe"}, words...), noEnv, &out, &out)
		return status, out.String()
	}
	if status, says := probe("ready", "-socket", socket); status != 1 || !strings.Contains(says, "no daemon answers at "+socket) {
		t.Errorf("before the start: %d, %s", status, says)
	}
	for range 2 { // the second finds what the first left
		h := serveFile(t, path)
		for _, what := range []string{"live", "ready"} {
			if status, says := probe(what, "-socket", socket); status != 0 || says == "" {
				t.Errorf("%s: %d, %s", what, status, says)
			}
		}
		h.ready.Store("waiting for something")
		if status, says := probe("ready", "-socket", socket); status != 1 || !strings.Contains(says, "not ready: waiting for something") {
			t.Errorf("not ready: %d, %s", status, says)
		}
		if status, says := probe("live", "-socket", socket); status != 0 {
			t.Errorf("alive though not ready: %d, %s", status, says)
		}
		if err := h.end(); err != nil {
			t.Error(err)
		}
	}
	for _, words := range [][]string{{}, {"dead"}, {"live", "x"}} {
		if status, _ := probe(words...); status != 2 {
			t.Errorf("probe %q: status %d", words, status)
		}
	}
	if _, err := listenProbes(path); err == nil || !strings.Contains(err.Error(), "is no socket") {
		t.Errorf("a file in the place of the socket: %v", err)
	}
}

// TestNotify tells whoever waits, and nobody else.
func TestNotify(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	notify(func(string) string { return path }, "READY=1")
	notify(noEnv, "STOPPING=1")
	notify(func(string) string { return path + ".gone" }, "STOPPING=1")
	buf := make([]byte, 100)
	if n, err := conn.Read(buf); err != nil || string(buf[:n]) != "READY=1" {
		t.Errorf("%q, %v", buf[:n], err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(buf); err == nil {
		t.Errorf("more: %q", buf[:n])
	}
}

// TestSignals: the first asks for a stop that takes as long as configured and no
// longer, the second ends it at once, and a reload before the start is over is no end.
func TestSignals(t *testing.T) {
	up := newScripted(t, 7, 0)
	for _, c := range []struct {
		name        string
		delay       string
		second      bool
		least, most time.Duration
	}{
		{"at once", "0s", false, 0, 30 * time.Second},
		{"after the delay", "1s", false, time.Second, 30 * time.Second},
		{"a second signal", "60s", true, sameSignal, 30 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := space.Free(t)
			path := filepath.Join(t.TempDir(), "nodens.yaml")
			write(t, path, fmt.Sprintf("version: v1\nadmin: {address: 127.0.0.1:0}\nlisten: [%q]\nstopDelay: %s\nroutes: [{zones: [.], servers: [%q]}]\n", at, c.delay, up.address))
			process := begin(t, "serve", "-config", path)
			firstAnswer(t, at)
			_ = process.Process.Signal(syscall.SIGUSR1)
			_ = process.Process.Signal(syscall.SIGHUP)
			time.Sleep(100 * time.Millisecond)
			if got := answerOf(ask(t, "udp", at, "a.example.", 0)); got != "NOERROR 192.0.2.7" {
				t.Errorf("after a reload: %s", got)
			}
			began := time.Now()
			_ = process.Process.Signal(syscall.SIGTERM)
			if c.second {
				time.Sleep(sameSignal + 100*time.Millisecond)
				_ = process.Process.Signal(syscall.SIGTERM)
			}
			err := process.Wait()
			if took := time.Since(began); took < c.least || took > c.most {
				t.Errorf("the stop took %v, want %v to %v", took, c.least, c.most)
			}
			if killed := err != nil; killed != c.second {
				t.Errorf("the end: %v", err)
			}
		})
	}
}

// firstAnswer asks until there is an answer.
func firstAnswer(t *testing.T, at netip.AddrPort) {
	t.Helper()
	client := &dns.Client{Timeout: 100 * time.Millisecond}
	for limit := time.Now().Add(patience); ; {
		reply, _, err := client.Exchange(new(dns.Msg).SetQuestion("a.cluster.local.", dns.TypeA), at.String())
		if err == nil && reply.Rcode == dns.RcodeSuccess {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("no answer: %v, %v", reply, err)
		}
		time.Sleep(time.Millisecond)
	}
}

// TestStartWithSnapshot: with endpoints on disk and an API server that says nothing, the
// first answer of a server comes within 300 ms of the start.
func TestStartWithSnapshot(t *testing.T) {
	onNode(t, func(t *testing.T) {
		_, folder := newNode(t)
		up := newScriptedAt(t, "10.1.0.53:0", 7, 0)
		silent, err := net.Listen("tcp", "127.0.0.1:0") // it takes connections
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close()
		keepSnapshot(t, folder, up.address)
		var took []time.Duration
		for range 5 {
			at := space.Free(t)
			path := filepath.Join(folder, "start.yaml")
			write(t, path, fmt.Sprintf(`version: v1
admin: {address: 127.0.0.1:0}
listen: [%q]
node: {name: n1}
kubernetes: {server: "https://%s", caFile: %[3]s/ca, tokenFile: %[3]s/token, snapshots: %[3]s, readNode: false}
routes: [{zones: [cluster.local], topology: {namespace: kube-system, service: kube-dns}}]
`, at, silent.Addr(), folder))
			began := time.Now()
			process := begin(t, "serve", "-config", path)
			firstAnswer(t, at)
			took = append(took, time.Since(began).Round(time.Millisecond))
			_ = process.Process.Kill()
			_ = process.Wait()
		}
		t.Logf("from the start of the process to the first answer: %v", took)
		if best := slices.Min(took); best > 300*time.Millisecond {
			t.Errorf("the fastest of %d starts took %v, want at most 300 ms", len(took), best)
		}
	})
}

// keepSnapshot writes what a former run would have kept.
func keepSnapshot(t *testing.T, folder string, server netip.AddrPort) {
	t.Helper()
	ca := "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"
	write(t, filepath.Join(folder, "ca"), ca)
	write(t, filepath.Join(folder, "token"), "t")
	sum := sha256.Sum256([]byte(ca))
	snapshot := topology.Snapshot{
		Cluster: hex.EncodeToString(sum[:]), Namespace: "kube-system", Service: "kube-dns", Saved: time.Now(),
		Slices: []topology.Slice{sliceOf(server)},
	}
	data, err := snapshot.Encode()
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "endpoints.kube-system.kube-dns.json"), string(data))
}

func sliceOf(server netip.AddrPort) topology.Slice {
	ready := true
	return topology.Slice{
		Namespace: "kube-system", Name: "kube-dns-1", Service: "kube-dns", AddressType: "IPv4",
		Ports: []topology.Port{
			{Name: "dns", Protocol: "UDP", Number: int32(server.Port())}, {Name: "dns-tcp", Protocol: "TCP", Number: int32(server.Port())},
		},
		Endpoints: []topology.SliceEndpoint{{Addresses: []string{server.Addr().String()}, Node: "n1", Ready: &ready, Serving: &ready}},
	}
}

// TestDoctorAndCleanup look at a node as it comes, and as others left it.
func TestDoctorAndCleanup(t *testing.T) {
	onNode(t, func(t *testing.T) {
		config, folder := newNode(t)
		picture := func() string { // an address that the kernel makes itself is tentative for a while
			return strings.ReplaceAll(shell(t, "nft list ruleset")+shell(t, "ip -o addr show"), " tentative", "")
		}
		before := picture()
		expect := func(what string, status int, want ...string) (text string) {
			t.Helper()
			got, text := runSelf("doctor", "-config", config)
			if got != status {
				t.Errorf("%s: status %d, want %d:\n%s", what, got, status, text)
			}
			for _, w := range want {
				if !strings.Contains(text, w) {
					t.Errorf("%s: not told: %q in\n%s", what, w, text)
				}
			}
			return text
		}
		expect("nothing there", 1, "bad      guard: none runs on this node", "fine     kernel: it takes the nft table")
		if after := picture(); after != before {
			t.Errorf("the doctor changed the node:\n%s\nto\n%s", before, after)
		}
		guard := begin(t, "guard", "-config", config)
		await(t, "the table", func() bool { return strings.Contains(shell(t, "nft list ruleset"), "nodens_v1") })
		serve := begin(t, "serve", "-config", config)
		untilOneAnswers(t, "start", byNodens)
		status := 0
		if !strings.Contains(shell(t, "ip -d link show nodens"), "dummy") {
			status = 3 // this kernel has no dummy links
		}
		await(t, "the servers in the guard's file", func() bool {
			kept, err := os.ReadFile(folder + "/endpoints.json")
			return err == nil && strings.Contains(string(kept), "10.1.0.53")
		})
		text := expect("all is well", status, "fine     guard: process ", "fine     daemon: nodens ", "fine     servers: each of 1 answers",
			"fine     firewall: 169.254.20.10:53 answers", "fine     link owner: ", "fine     port: ", "fine     kube-proxy: ")
		if strings.Contains(text, " host: ") {
			t.Errorf("the rules of the fallback are not as configured:\n%s", text)
		}
		if got, text := runSelf("cleanup", "-config", config); got != 1 || !strings.Contains(text, "a guard runs here") {
			t.Errorf("cleanup beside a guard: %d, %s", got, text)
		}
		for _, p := range []*exec.Cmd{serve, guard} {
			_ = p.Process.Kill()
			_ = p.Wait()
		}
		write(t, folder+"/endpoints.json", "{")
		shell(t, "ip link add nodelocaldns type bridge")
		shell(t, "iptables-nft -w -t raw -I PREROUTING -d 169.254.20.10 -p udp --dport 53 -j NOTRACK")
		expect("after others", 1, "bad      endpoints file: ", "is damaged, remove it", "leftovers: of node-cache: rule ", "leftovers: of node-cache: link nodelocaldns")
		got, text := runSelf("doctor", "-config", config, "-o", "json")
		if got != 1 || !strings.Contains(text, `"severity": "bad"`) {
			t.Errorf("as JSON: %d, %s", got, text)
		}
		got, text = runSelf("cleanup", "-config", config)
		for _, want := range []string{"table nodens_v1: not wanted", "link nodens: not wanted", "node-cache: removed: link nodelocaldns", "node-cache: removed: rule ", "endpoints.json: removed", "guard.lock: removed"} {
			if got != 0 || !strings.Contains(text, want) {
				t.Errorf("cleanup: status %d, not told: %q in\n%s", got, want, text)
			}
		}
		if rest := shell(t, "nft list ruleset") + shell(t, "ip -o addr show"); strings.Contains(rest, "nodens") || strings.Contains(rest, "169.254.20.10") || strings.Contains(rest, "nodelocaldns") {
			t.Errorf("left:\n%s", rest)
		}
		if got, text = runSelf("cleanup", "-config", config); got != 0 || !strings.Contains(text, "there was nothing to remove") {
			t.Errorf("cleanup again: %d, %s", got, text)
		}
		// Somebody else's things are told and left alone.
		shell(t, "ip link add nodens type bridge")
		shell(t, "ip addr add 169.254.20.10/32 dev lo")
		stranger := filepath.Join(folder, "dnsmasq")
		copyProgram(t, stranger)
		write(t, folder+"/stranger.yaml", "version: v1\nlisten: [\"0.0.0.0:53\"]\nadmin: {address: \"127.0.0.1:9999\"}\nroutes: [{zones: [.], servers: [192.0.2.1]}]\n")
		startProcess(t, &bytes.Buffer{}, []string{"NODENS_TEST_MAIN=1"}, stranger, "serve", "-config", folder+"/stranger.yaml")
		untilOneAnswers(t, "the stranger", byNodens)
		expect("somebody else's", 1, "bad      link name: link nodens is there and of kind bridge", "warning  address: 169.254.20.10 is on link lo already",
			"warning  port: user 0 (dnsmasq, process ", ") listens at every address, port 53 over UDP")
		if got, text = runSelf("cleanup", "-config", config); got != 0 || !strings.Contains(shell(t, "ip -o link show"), "nodens") {
			t.Errorf("cleanup took a link of somebody else: %d, %s", got, text)
		}
	})
}
