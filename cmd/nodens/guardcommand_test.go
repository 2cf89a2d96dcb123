package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestGuardAsksAgain whenever somebody signals, which every nodens takes for a reload.
func TestGuardAsksAgain(t *testing.T) {
	onNode(t, func(t *testing.T) {
		config, _ := newNode(t)
		var said bytes.Buffer
		guard := startProcess(t, &said, []string{"NODENS_TEST_MAIN=1"}, "/proc/self/exe", "guard", "-config", config)
		await(t, "the table", func() bool { return strings.Contains(shell(t, "nft list ruleset"), "nodens_v1") })
		for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGUSR1} {
			if err := guard.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
			time.Sleep(300 * time.Millisecond) // else the second counts as the first
		}
		_ = guard.Process.Signal(syscall.SIGTERM)
		if err := guard.Wait(); err != nil {
			t.Errorf("the guard ended with %v, want its clean end", err)
		}
		if got := strings.Count(said.String(), "a reload was asked for"); got != 2 {
			t.Errorf("it spoke %d times of two signals", got)
		}
	})
}

// TestChangeOfAddresses under a living guard and serve: no address that is asked for is
// ever without an answer, and those that are not go when serve has left them.
func TestChangeOfAddresses(t *testing.T) {
	const a, b, c, service = "169.254.20.10", "169.254.20.11", "169.254.20.12", "10.96.0.10"
	onNode(t, func(t *testing.T) {
		config, _ := newNode(t)
		first, err := os.ReadFile(config)
		if err != nil {
			t.Fatal(err)
		}
		configure := func(changes ...string) {
			replace(t, config, strings.NewReplacer(changes...).Replace(string(first)))
		}
		link := func() string { return shell(t, "ip -4 addr show nodens") }
		began := begin(t, "guard", "-config", config)
		serve := begin(t, "serve", "-config", config)
		untilOneAnswers(t, "start", byNodens)
		// at asks while a change goes on, until done.
		at := func(address, what string, done func() bool) {
			t.Helper()
			await(t, what, func() bool {
				if got := askNodeAt(address, 5*time.Second); got != byNodens {
					t.Errorf("until %s, %s is answered with %s", what, address, got)
				}
				return done()
			})
		}
		answers := func(address string) func() bool {
			return func() bool { return askNodeAt(address, 100*time.Millisecond) == byNodens }
		}
		without := func(address string) func() bool {
			return func() bool { return !strings.Contains(link(), address+"/") }
		}

		configure(a+":53\"", a+":53\", \""+b+":53\"")
		at(a, "one more answers", answers(b))
		configure(a, b)
		at(b, "the first one goes", without(a))
		configure(a+":53\"", b+":53\", \""+service+":53\"", "mode: link-local", "mode: service, service: ["+service+"]")
		at(b, "that of the Service answers", answers(service))
		configure(a, b)
		at(b, "that of the Service goes", without(service))

		// What serve refuses changes nothing for those who ask.
		configure(a, c, "admin: {", "admin: {metricsTLS: {listen: [\"127.0.0.1:9255\"], certFile: /nowhere, keyFile: /nowhere}, ")
		at(b, "there is one more", func() bool { return strings.Contains(link(), c+"/") })
		settled := time.Now().Add(8 * time.Second)
		at(b, "it is refused for good", func() bool { return time.Now().After(settled) })

		// Neither process began anew.
		for _, process := range []*exec.Cmd{began, serve} {
			if err := process.Process.Signal(syscall.Signal(0)); err != nil {
				t.Error(err)
			}
		}
	})
}
