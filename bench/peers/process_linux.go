package peers

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// grace is how long a server may take to end before it is killed.
const grace = 3 * time.Second

// Process is a server that runs.
type Process struct {
	pid     int
	log     string
	ended   chan struct{}
	err     error // of its end; read after ended
	running sync.WaitGroup
}

// Command is a program to run as a server.
type Command struct {
	Path string
	Args []string
	Dir  string // where it runs and where its output goes
	CPUs []int  // that it may use; none: all
}

// Start writes the peer's configuration into the setup's folder and starts the
// program at path.
func (p Peer) Start(path string, s Setup, cpus []int) (*Process, error) {
	c, err := p.Command(path, s)
	if err != nil {
		return nil, err
	}
	c.CPUs = cpus
	return c.Start()
}

// Command writes the peer's configuration into the setup's folder and gives the
// command that starts it.
func (p Peer) Command(path string, s Setup) (Command, error) {
	s = s.withDefaults()
	if p.Sockets > 0 {
		s.Sockets = p.Sockets
	}
	for name, text := range p.files(s) {
		if err := os.WriteFile(filepath.Join(s.Dir, name), []byte(text), 0o644); err != nil {
			return Command{}, fmt.Errorf("peers: configure %s: %w", p.Name, err)
		}
	}
	return Command{Path: path, Args: p.args(s), Dir: s.Dir}, nil
}

// Start runs the command in the foreground.
func (c Command) Start() (*Process, error) {
	log, err := os.OpenFile(filepath.Join(c.Dir, "output"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("peers: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.Dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	p := &Process{log: log.Name(), ended: make(chan struct{})}
	started := make(chan error, 1)
	p.running.Go(func() { p.run(cmd, c.CPUs, started) })
	if err := <-started; err != nil {
		p.running.Wait()
		return nil, fmt.Errorf("peers: start %s: %w", c.Path, err)
	}
	return p, nil
}

// run starts the child and waits for its end, on a thread of its own: the child
// has this thread's CPUs, and its death is the child's.
func (p *Process) run(cmd *exec.Cmd, cpus []int, started chan<- error) {
	runtime.LockOSThread() // never unlocked, so that the thread ends too
	defer close(p.ended)
	if err := pinThread(0, cpus); err != nil {
		started <- err
		return
	}
	if err := cmd.Start(); err != nil {
		started <- err
		return
	}
	p.pid = cmd.Process.Pid
	started <- nil
	awaitGroup(p.pid)
	p.err = cmd.Wait()
}

// PID is the server's process.
func (p *Process) PID() int { return p.pid }

// Ended is closed when the process has ended, with all that it started.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Stop asks the server and what it started to end, kills them if they do not
// within three seconds, and waits for them.
func (p *Process) Stop() { p.end(unix.SIGTERM) }

// Kill ends the server and what it started at once and waits for them.
func (p *Process) Kill() { p.end(unix.SIGKILL) }

func (p *Process) end(how unix.Signal) {
	select {
	case <-p.ended: // its number may be another's by now
		p.running.Wait()
		return
	default:
	}
	_ = unix.Kill(-p.pid, how)
	select {
	case <-p.ended:
	case <-time.After(grace):
		_ = unix.Kill(-p.pid, unix.SIGKILL)
	}
	p.running.Wait()
}

// Output is the last lines the server printed, for a message.
func (p *Process) Output() string {
	data, err := os.ReadFile(p.log)
	if err != nil || len(data) == 0 {
		return "it printed nothing"
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}

// Failed is why a server ended by itself, nil while it runs.
func (p *Process) Failed() error {
	select {
	case <-p.ended:
		return errors.Join(fmt.Errorf("it ended: %w", orDone(p.err)), errors.New(p.Output()))
	default:
		return nil
	}
}

func orDone(err error) error {
	if err == nil {
		return errors.New("without an error")
	}
	return err
}
