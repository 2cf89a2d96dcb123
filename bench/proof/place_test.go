package proof

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nodens-dns/nodens/bench/space"
)

// place is where processes run and sockets are opened: a network namespace, or
// the test's own if it has no name.
type place struct{ namespace string }

// do runs f on a thread of the place; the sockets that f opens stay there.
func (p place) do(f func() error) error {
	if p.namespace == "" {
		return f()
	}
	// The thread goes back and lives on: its end would end the processes that
	// were started on it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	home, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open this thread's namespace: %w", err)
	}
	defer unix.Close(home)
	there, err := unix.Open("/run/netns/"+p.namespace, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open the namespace %s: %w", p.namespace, err)
	}
	defer unix.Close(there)
	if err = unix.Setns(there, unix.CLONE_NEWNET); err != nil {
		return os.NewSyscallError("setns", err)
	}
	err = f()
	if back := unix.Setns(home, unix.CLONE_NEWNET); back != nil {
		panic(back) // the thread must not be used by others
	}
	return err
}

// start starts a program in the place.
func (p place) start(t *testing.T, program string, args ...string) *space.Process {
	t.Helper()
	if p.namespace != "" {
		program, args = "ip", append([]string{"netns", "exec", p.namespace, program}, args...)
	}
	return space.Space{}.Start(t, exec.Command(program, args...))
}

// rcvbufErrors is how many datagrams the kernel dropped in the place because a
// socket's receive buffer was full.
func (p place) rcvbufErrors() (n uint64, err error) {
	err = p.do(func() error {
		data, err := os.ReadFile("/proc/thread-self/net/snmp")
		n = space.UDPCounter(string(data), "RcvbufErrors")
		return err
	})
	return n, err
}
