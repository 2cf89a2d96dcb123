package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
)

// child is a process that ends with the test at the latest.
type child struct {
	pid  int
	once sync.Once
	cmd  *exec.Cmd
}

// startChild starts a program. What it prints is shown if the test fails.
func startChild(t *testing.T, program string, args ...string) *child {
	t.Helper()
	return startCommand(t, exec.Command(program, args...))
}

func startCommand(t *testing.T, cmd *exec.Cmd) *child {
	t.Helper()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{pid: cmd.Process.Pid, cmd: cmd}
	t.Cleanup(func() {
		c.end(syscall.SIGKILL)
		if t.Failed() {
			t.Logf("%s:\n%s", cmd.Path, out.Bytes())
		}
	})
	return c
}

// end sends a signal, once, and waits for the end.
func (c *child) end(signal os.Signal) {
	c.once.Do(func() {
		_ = c.cmd.Process.Signal(signal)
		_ = c.cmd.Wait()
	})
}
