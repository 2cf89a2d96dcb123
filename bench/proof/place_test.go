package proof

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
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

// process is a child that ends with the test at the latest.
type process struct {
	cmd  *exec.Cmd
	said *said
	done chan struct{} // closed when it has ended
}

// said is what a process printed.
type said struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(b)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

// start starts a program in the place.
func (p place) start(t *testing.T, program string, args ...string) *process {
	t.Helper()
	name := filepath.Base(program)
	if p.namespace != "" {
		args = append([]string{"netns", "exec", p.namespace, program}, args...)
		program = "ip"
	}
	c := &process{cmd: exec.Command(program, args...), said: new(said), done: make(chan struct{})}
	c.cmd.Stdout, c.cmd.Stderr = c.said, c.said
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	failed := make(chan error)
	spawner() <- func() { failed <- c.cmd.Start() }
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(c.done)
		_ = c.cmd.Wait() // most are killed
	}()
	t.Cleanup(func() {
		state := "running at the end"
		if !c.running() {
			state = c.cmd.ProcessState.String()
		}
		c.end(syscall.SIGKILL)
		if t.Failed() {
			t.Logf("%s, process %d, %s, said:\n%s", name, c.cmd.Process.Pid, state, c.said)
		}
	})
	return c
}

// spawner is a thread that starts processes. They end with the thread that
// started them, not with the process, so it has to be one that stays.
var spawner = sync.OnceValue(func() chan<- func() {
	starts := make(chan func())
	go func() {
		runtime.LockOSThread()
		for start := range starts {
			start()
		}
	}()
	return starts
})

// signal does nothing to a process that has ended.
func (c *process) signal(s syscall.Signal) {
	select {
	case <-c.done:
	default:
		_ = c.cmd.Process.Signal(s)
	}
}

// end signals the process and waits for its end.
func (c *process) end(s syscall.Signal) {
	c.signal(s)
	<-c.done
}

// running tells whether the process has not ended.
func (c *process) running() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// rcvbufErrors is how many datagrams the kernel dropped in the place because a
// socket's receive buffer was full.
func (p place) rcvbufErrors() (n uint64, err error) {
	err = p.do(func() error {
		data, err := os.ReadFile("/proc/thread-self/net/snmp")
		n = udpCounter(string(data), "RcvbufErrors")
		return err
	})
	return n, err
}

// udpCounter finds a counter in the two Udp lines of snmp, names and values.
func udpCounter(snmp, name string) uint64 {
	var names []string
	for line := range strings.Lines(snmp) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0 || fields[0] != "Udp:":
		case names == nil:
			names = fields
		default:
			for i, field := range names {
				if field == name {
					n, _ := strconv.ParseUint(fields[i], 10, 64)
					return n
				}
			}
		}
	}
	return 0
}
