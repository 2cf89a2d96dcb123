package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
)

// process is a child that does not outlive us.
type process struct {
	name string
	log  string // path of its output
	pid  int
	done chan struct{} // closed when it has ended
}

// run starts a program; its output is appended to a file in folder.
func run(folder, program string, args ...string) (*process, error) {
	p := &process{name: filepath.Base(program), done: make(chan struct{})}
	p.log = filepath.Join(folder, p.name+".log")
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	started := make(chan error)
	go func() {
		// The kernel takes the end of the thread that started a child for
		// the end of its parent, so this one stays.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.done)
		defer func() { _ = out.Close() }()
		err := cmd.Start()
		if err == nil {
			p.pid = cmd.Process.Pid
		}
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is in its log
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	return p, nil
}

// kill ends the process without warning and waits until it is gone.
func (p *process) kill() {
	if p == nil {
		return
	}
	select {
	case <-p.done:
		return // its pid may be another's by now
	default:
	}
	_ = syscall.Kill(p.pid, syscall.SIGKILL)
	<-p.done
}

// tail returns the last bytes of the log.
func (p *process) tail(most int64) string {
	file, err := os.Open(p.log)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return err.Error()
	}
	from := max(0, info.Size()-most)
	text := make([]byte, info.Size()-from)
	n, _ := file.ReadAt(text, from)
	return string(text[:n])
}
