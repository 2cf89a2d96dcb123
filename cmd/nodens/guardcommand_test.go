package main

import (
	"bytes"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestAGuardOutlivesAReload that somebody asks of every nodens, and says what it does not do.
func TestAGuardOutlivesAReload(t *testing.T) {
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
		if got := strings.Count(said.String(), "a guard reads what the host should look like when it starts"); got != 2 {
			t.Errorf("it spoke %d times of two signals", got)
		}
	})
}
