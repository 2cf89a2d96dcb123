package space

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Process is a child that ends with the test at the latest.
type Process struct {
	cmd  *exec.Cmd
	said Output
	done chan struct{} // closed when it has ended
}

// Start starts a command in the namespace, or where the test is for no Space. Its output is kept, and shown if the
// test fails.
func (s Space) Start(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	p := &Process{cmd: cmd, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.said, &p.said
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	failed := make(chan error)
	spawner() <- func() { failed <- s.spawn(cmd) }
	if err := <-failed; err != nil {
		t.Fatalf("%s: %v", cmd.Path, err)
	}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // most are killed
	}()
	t.Cleanup(func() { p.finish(t) })
	return p
}

func (p *Process) finish(t testing.TB) {
	state := "running at the end"
	if !p.Running() {
		state = p.cmd.ProcessState.String()
	}
	p.Signal(syscall.SIGCONT)
	p.End(syscall.SIGKILL)
	if t.Failed() {
		t.Logf("%s, process %d, %s, said:\n%s", filepath.Base(p.cmd.Path), p.PID(), state, p.Said())
	}
}

// spawn starts a command on this thread, which stays the caller's.
func (s Space) spawn(cmd *exec.Cmd) error {
	if s.file == nil {
		return cmd.Start()
	}
	home, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(home)
	if err := unix.Setns(s.FD(), unix.CLONE_NEWNET); err != nil {
		return err
	}
	err = cmd.Start()
	if back := unix.Setns(home, unix.CLONE_NEWNET); back != nil {
		panic(back) // the thread must not be used by others
	}
	return err
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

// PID is its number.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Said is what it printed so far.
func (p *Process) Said() string { return p.said.String() }

// Signal does nothing to a process that has ended.
func (p *Process) Signal(s syscall.Signal) {
	select {
	case <-p.done:
	default:
		_ = p.cmd.Process.Signal(s)
	}
}

// End signals the process and waits for its end.
func (p *Process) End(s syscall.Signal) {
	p.Signal(s)
	<-p.done
}

// Code is its exit code: -1 while it runs, and after a signal.
func (p *Process) Code() int {
	if p.Running() {
		return -1
	}
	return p.cmd.ProcessState.ExitCode()
}

// Done is closed when it has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Running tells whether it has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}
