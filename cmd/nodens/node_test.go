package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/bench/space"
)

// onNode runs f in a process with a network of its own, which is the node.
func onNode(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	if space.Alone(t, "ip", "nft") {
		f(t)
	}
}

func shell(t *testing.T, line string) string {
	t.Helper()
	words := strings.Fields(line)
	out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", line, err, out)
	}
	return string(out)
}

// Who answers on the node: nodens says what localhost is, the server behind it says
// what it says of every name.
const (
	byNodens = "NOERROR 127.0.0.1"
	byServer = "NOERROR 192.0.2.53"
)

func askNode(patience time.Duration) string { return askNodeAt("169.254.20.10", patience) }

func askNodeAt(address string, patience time.Duration) string {
	client := &dns.Client{Timeout: patience}
	reply, _, err := client.Exchange(new(dns.Msg).SetQuestion("localhost.", dns.TypeA), address+":53")
	if err != nil {
		return err.Error()
	}
	return answerOf(reply)
}

// untilOneAnswers waits until the same one answers several times in a row.
func untilOneAnswers(t *testing.T, what, want string) {
	t.Helper()
	began, row, got := time.Now(), 0, ""
	for row < 5 {
		if got = askNode(100 * time.Millisecond); got == want {
			row++
		} else {
			row = 0
		}
		if time.Since(began) > patience {
			t.Fatalf("%s: %s, want %s", what, got, want)
		}
	}
	t.Logf("%s: %s after at most %v", what, want, time.Since(began).Round(time.Millisecond))
}

// newNode makes a node with a server of the cluster, and a configuration.
func newNode(t *testing.T) (config, folder string) {
	t.Helper()
	for _, line := range []string{
		"ip link set lo up", "ip link add pods type bridge", "ip addr add 10.1.0.53/24 dev pods", "ip link set pods up",
	} {
		shell(t, line)
	}
	server := newScriptedAt(t, "10.1.0.53:0", 53, 0)
	folder = t.TempDir()
	list := filepath.Join(folder, "slices.yaml")
	write(t, list, endpointSlice(server.address, "n1"))
	config = filepath.Join(folder, "nodens.yaml")
	write(t, config, fmt.Sprintf(`version: v1
listen: ["169.254.20.10:53"]
admin: {address: "127.0.0.1:9253"}
node: {name: n1}
limits: {cpus: 2}
host: {mode: link-local, socket: %[1]s/guard.sock, lock: %[1]s/guard.lock, endpoints: %[1]s/endpoints.json}
routes: [{zones: [.], topology: {file: %[2]s}}]
`, folder, list))
	return config, folder
}

// begin starts the program, which the test binary is as well.
func begin(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	return startProcess(t, &bytes.Buffer{}, []string{"NODENS_TEST_MAIN=1"}, "/proc/self/exe", args...)
}

// runSelf runs it to its end.
func runSelf(args ...string) (status int, said string) {
	c := exec.Command("/proc/self/exe", args...)
	c.Env = append(os.Environ(), "NODENS_TEST_MAIN=1")
	out, err := c.CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode(), string(out)
	}
	return 0, string(out)
}

func fetch(t *testing.T, url string) string {
	t.Helper()
	var response *http.Response
	await(t, url, func() bool { // whoever serves it may have begun a moment ago
		var err error
		response, err = http.Get(url)
		return err == nil
	})
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestGuardAndServe kills, replaces and stops the program as it is released, beside
// its guard.
func TestGuardAndServe(t *testing.T) {
	onNode(t, func(t *testing.T) {
		config, folder := newNode(t)
		// serve comes first and waits for its addresses.
		serve := begin(t, "serve", "-config", config)
		time.Sleep(300 * time.Millisecond)
		guard := begin(t, "guard", "-config", config)
		untilOneAnswers(t, "start", byNodens)
		for _, want := range []string{
			`nodens_interception_active{mode="link-local"} 1`, `nodens_alive{address="169.254.20.10"} 1`, "nodens_guard_sessions 1",
		} {
			await(t, want, func() bool { return strings.Contains(fetch(t, "http://127.0.0.1:9254/metrics"), want) })
		}
		await(t, "the fallback", func() bool {
			return strings.Contains(fetch(t, "http://127.0.0.1:9254/metrics"), "nodens_fallback_ready 1")
		})
		if _, text := runSelf("status"); !strings.Contains(text, "host     link-local, guarded") {
			t.Errorf("status says:\n%s", text)
		}

		_ = serve.Process.Kill()
		untilOneAnswers(t, "killed", byServer)
		serve = begin(t, "serve", "-config", config)
		untilOneAnswers(t, "started again", byNodens)

		// A successor takes over, then it ends too, while one asks all the time.
		successor := begin(t, "serve", "-config", config)
		time.Sleep(700 * time.Millisecond)
		for _, leaving := range []*exec.Cmd{serve, successor} {
			_ = leaving.Process.Signal(syscall.SIGTERM)
			for i := range 300 {
				if got := askNode(5 * time.Second); got != byNodens && got != byServer {
					t.Errorf("query %d after the signal: %s", i, got)
				}
			}
		}
		untilOneAnswers(t, "gone", byServer)

		// The guard ends and comes again without serve: it knows the servers.
		_ = guard.Process.Signal(syscall.SIGTERM)
		_ = guard.Wait()
		untilOneAnswers(t, "without any process", byServer)
		shell(t, "nft flush ruleset")
		begin(t, "guard", "-config", config)
		untilOneAnswers(t, "with what was kept", byServer)
		// The kernel answers before the guard's metrics are served.
		if _, fallen := getFrom(t, http.DefaultClient, "http://127.0.0.1:9254/metrics"); strings.Contains(fallen, `nodens_fallback_packets_total{family="1",proto="udp"} 0`) {
			t.Error("the packets of the fallback are not counted")
		}
		if _, err := os.Stat(folder + "/endpoints.json"); err != nil {
			t.Error(err)
		}
	})
}

// TestLegacyDisablesTheFallback: rules that node-cache left in iptables-legacy, which
// nobody but that program can delete, are found by guard, doctor and clean-up, and
// those of others are not.
func TestLegacyDisablesTheFallback(t *testing.T) {
	onNode(t, func(t *testing.T) {
		config, _ := newNode(t)
		begin(t, "guard", "-config", config)
		begin(t, "serve", "-config", config)
		health := func() string {
			response, err := http.Get("http://127.0.0.1:9254/healthz")
			if err != nil {
				return err.Error()
			}
			defer response.Body.Close()
			text, _ := io.ReadAll(response.Body)
			return string(text)
		}
		healthy := func(what, want string) { // the guard looks every ten seconds
			t.Helper()
			got := ""
			for end := time.Now().Add(time.Minute); !strings.Contains(got, want); time.Sleep(50 * time.Millisecond) {
				if got = health(); time.Now().After(end) {
					t.Fatalf("%s: the guard says %q, want %q", what, got, want)
				}
			}
		}
		const said = "rules of iptables-legacy keep queries to 169.254.20.10 from being tracked"
		shell(t, "iptables-legacy -w -t raw -A PREROUTING -d 192.0.2.1 -p udp --dport 53 -j NOTRACK")
		healthy("beside rules of others", "the fallback is ready")
		shell(t, "iptables-legacy -w -t raw -I OUTPUT -d 169.254.20.10 -p udp --dport 53 -j NOTRACK")
		healthy("with such a rule", "there is no fallback: "+said)
		if _, text := runSelf("doctor", "-config", config); !strings.Contains(text, said) {
			t.Errorf("the doctor says:\n%s", text)
		}
		if _, text := runSelf("cleanup", "-force"); strings.Contains(text, said) {
			t.Errorf("without a configuration and a comment it is nobody's, but the clean-up says:\n%s", text)
		}
		shell(t, "iptables-legacy -w -t raw -F")
		healthy("without it", "the fallback is ready")
	})
}
