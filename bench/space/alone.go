package space

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// aloneVariable says that this process is one that Alone started.
const aloneVariable = "NODENS_TEST_ALONE"

// Alone runs the test once more, as a process with a network of its own, and tells
// whether it is that process. It needs root and the programs named.
func Alone(t testing.TB, programs ...string) bool {
	t.Helper()
	if os.Getenv(aloneVariable) != "" {
		return true
	}
	Needs(t, "root", os.Geteuid() == 0)
	for _, p := range programs {
		_, err := exec.LookPath(p)
		Needs(t, p, err == nil)
	}
	c := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=2m")
	c.Env = append(os.Environ(), aloneVariable+"=1")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	runtime.LockOSThread() // the process ends with the thread that started it
	defer runtime.UnlockOSThread()
	err := c.Start()
	Needs(t, "netns", !errors.Is(err, unix.EPERM))
	if err == nil {
		err = c.Wait()
	}
	if err != nil {
		t.Fatalf("alone: %v\n%s", err, &out)
	}
	if !bytes.Contains(out.Bytes(), []byte("--- PASS: "+t.Name())) {
		t.Fatalf("alone it was not run:\n%s", &out)
	}
	t.Log(out.String())
	return false
}
