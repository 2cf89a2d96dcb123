package main

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/bench/space"
)

// withoutNetfilter begins this program anew on a kernel that has nothing of netfilter.
func withoutNetfilter() error {
	runtime.LockOSThread() // the filter is this thread's, and the new program's
	return errors.Join(os.Unsetenv("NODENS_TEST_NO_NETFILTER"), space.DenyNetfilter(), syscall.Exec("/proc/self/exe", os.Args, os.Environ()))
}

// TestWithoutNetfilter has the guard on a kernel without nf_tables: the addresses are
// there and stay, serve answers, and log, metric and doctor say what is missing.
func TestWithoutNetfilter(t *testing.T) {
	const lacks = "this kernel lacks a part of what is needed"
	onNode(t, func(t *testing.T) {
		config, folder := newNode(t)
		notified := filepath.Join(folder, "notify")
		conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: notified, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		var said bytes.Buffer
		env := []string{"NODENS_TEST_MAIN=1", "NODENS_TEST_NO_NETFILTER=1"}
		guard := startProcess(t, &said, append(env, "NOTIFY_SOCKET="+notified), "/proc/self/exe", "guard", "-config", config)
		begin(t, "serve", "-config", config)
		untilOneAnswers(t, "start", byNodens)
		if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		ready := make([]byte, 100)
		if n, err := conn.Read(ready); err != nil || string(ready[:n]) != "READY=1" {
			t.Errorf("systemd hears %q, %v", ready[:n], err)
		}
		for _, want := range []string{`nodens_interception_active{mode="link-local"} 0`, "nodens_fallback_ready 0", "nodens_guard_sessions 1"} {
			await(t, want, func() bool { return strings.Contains(fetch(t, "http://127.0.0.1:9254/metrics"), want) })
		}
		shell(t, "ip link del nodens")
		await(t, "the link", func() bool { return strings.Contains(shell(t, "ip -o addr show"), "169.254.20.10") })
		untilOneAnswers(t, "put again", byNodens)

		doctor := exec.Command("/proc/self/exe", "doctor", "-config", config)
		doctor.Env = append(os.Environ(), env...)
		found, _ := doctor.CombinedOutput() // its status tells that something is bad
		if !strings.Contains(string(found), "bad      kernel: the kernel does not take the nft table: "+lacks) {
			t.Errorf("the doctor says:\n%s", found)
		}
		_ = guard.Process.Signal(syscall.SIGTERM)
		_ = guard.Wait()
		for sentence, times := range map[string]int{lacks: 1, "looked at by the clock alone": 0, "leftovers": 0} {
			if n := strings.Count(said.String(), sentence); n != times {
				t.Errorf("%q stands %d times in the log, want %d", sentence, n, times)
			}
		}
	})
}
