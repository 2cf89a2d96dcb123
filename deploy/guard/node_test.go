package guard_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"
)

// insideVariable says that this process is inside a node of its own.
const insideVariable = "GUARD_TEST_INSIDE"

// onNode runs the test again in a process of its own with a network of its own, which
// is the node, and there f.
func onNode(t *testing.T, f func(t *testing.T, n *node)) {
	t.Helper()
	if os.Getenv(insideVariable) != "" {
		f(t, newNode(t))
		return
	}
	needs(t, "root", os.Geteuid() == 0)
	for _, tool := range []string{"ip", "nft"} {
		_, err := exec.LookPath(tool)
		needs(t, tool, err == nil)
	}
	c := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=2m")
	c.Env = append(os.Environ(), insideVariable+"=1")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	runtime.LockOSThread() // the process ends with the thread that started it
	defer runtime.UnlockOSThread()
	err := c.Start()
	needs(t, "netns", !errors.Is(err, unix.EPERM))
	if err == nil {
		err = c.Wait()
	}
	if err != nil {
		t.Fatalf("on the node: %v\n%s", err, &out)
	}
	t.Log(out.String())
}

// node is the network of this process: a pod that asks, and one that is CoreDNS.
type node struct {
	folder  string
	own     *os.File // namespace; also of new threads
	pod     *os.File
	coredns *os.File
}

func newNode(t *testing.T) *node {
	t.Helper()
	n := &node{folder: t.TempDir()}
	var err error
	if n.own, err = os.Open("/proc/thread-self/ns/net"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.own.Close() })
	n.run(t, "ip", "link", "set", "lo", "up")
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		t.Fatal(err)
	}
	n.pod = n.newPod(t, "pod", "10.2.0.1/24", "10.2.0.7/24")
	n.coredns = n.newPod(t, "dns", "10.1.0.1/24", coredns+"/24")
	return n
}

// newPod makes a namespace that a link leads to.
func (n *node) newPod(t *testing.T, link, ours, theirs string) *os.File {
	t.Helper()
	var ns *os.File
	err := onThread(func() (err error) {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		ns, err = os.Open("/proc/thread-self/ns/net")
		if err != nil {
			return err
		}
		// The process is no name for the node: this may be its first thread.
		peer := fmt.Sprintf("ip link add eth0 type veth peer name %s netns /proc/%d/fd/%d", link, os.Getpid(), n.own.Fd())
		for _, line := range []string{
			peer, "ip link set lo up", "ip addr add " + theirs + " dev eth0", "ip link set eth0 up",
			"ip route add default via " + strings.TrimSuffix(ours, "/24"),
		} {
			words := strings.Fields(line)
			if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
				return fmt.Errorf("%s: %w: %s", line, err, out)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ns.Close() })
	n.run(t, "ip", "addr", "add", ours, "dev", link)
	n.run(t, "ip", "link", "set", link, "up")
	return ns
}

// onThread runs f on a thread of its own, which ends with it.
func onThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the runtime ends the thread
		done <- f()
	}()
	return <-done
}

// within runs f in a namespace, or on the node for nil: a new thread is there.
func within(ns *os.File, f func() error) error {
	return onThread(func() error {
		if ns != nil {
			if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
				return err
			}
		}
		return f()
	})
}

func (n *node) run(t *testing.T, words ...string) string {
	t.Helper()
	out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", strings.Join(words, " "), err, out)
	}
	return string(out)
}

// process is another role of the test binary.
type process struct {
	*exec.Cmd
	once sync.Once
}

// start starts a role and waits until it is ready, or, if it is not expected to be,
// only until it runs.
func (n *node) start(t *testing.T, ns *os.File, ready bool, words ...any) *process {
	t.Helper()
	p := &process{Cmd: exec.Command("/proc/self/exe")}
	p.Env = append(os.Environ(), roleVariable+"="+strings.TrimSuffix(fmt.Sprintln(words...), "\n"))
	p.Stderr = os.Stderr
	out, err := p.StdoutPipe()
	if err == nil {
		err = within(ns, p.Start)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	if !ready {
		return p
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("%v says %q: %v", words, line, err)
	}
	return p
}

// kill ends a process at once, also a stopped one.
func (p *process) kill() {
	p.once.Do(func() {
		_ = p.Process.Signal(syscall.SIGKILL)
		_ = p.Wait()
	})
}

// end asks it to end and waits.
func (p *process) end(t *testing.T) {
	t.Helper()
	p.once.Do(func() {
		_ = p.Process.Signal(syscall.SIGTERM)
		if err := p.Wait(); err != nil {
			t.Errorf("it ends with: %v", err)
		}
	})
}

func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// Who answers.
const (
	serves  = "serve"
	behind  = "coredns"
	nobody  = "nobody"
	mixture = "somebody else"
)

// ask asks once from a namespace, from a fresh port.
func ask(ns *os.File, network string, patience time.Duration) string {
	var reply *dns.Msg
	err := within(ns, func() (err error) {
		client := &dns.Client{Net: network, Timeout: patience}
		reply, _, err = client.ExchangeContext(context.Background(), new(dns.Msg).SetQuestion("a.example.", dns.TypeA), net.JoinHostPort(own, "53"))
		return err
	})
	if err != nil || len(reply.Answer) != 1 {
		return nobody
	}
	switch reply.Answer[0].(*dns.A).A.String() {
	case "10.0.0.1":
		return serves
	case "10.0.0.53":
		return behind
	}
	return mixture
}

// expect asks some times and wants the same answer each time.
func expect(t *testing.T, what string, ns *os.File, want string) {
	t.Helper()
	for range 8 {
		if got := ask(ns, "udp", time.Second); got != want {
			t.Errorf("%s: %s answers, want %s", what, got, want)
			return
		}
	}
}

// until asks until the same one has answered several times in a row, and returns how
// long it took to the first of these.
func until(t *testing.T, what string, ns *os.File, want string, limit time.Duration) time.Duration {
	t.Helper()
	began := time.Now()
	var first time.Duration
	for row := 0; row < 8; {
		got := ask(ns, "udp", 100*time.Millisecond)
		switch {
		case got != want:
			row = 0
		case row == 0:
			first = time.Since(began)
			fallthrough
		default:
			row++
		}
		if time.Since(began) > limit+2*time.Second || (row == 0 && time.Since(began) > limit) {
			t.Errorf("%s: after %v %s answers, want %s", what, limit, got, want)
			return limit
		}
	}
	t.Logf("%s: %s answers after %v", what, want, first.Round(time.Millisecond))
	return first
}

// nftHas tells whether the rule set has a text.
func (n *node) nftHas(t *testing.T, text string) bool {
	t.Helper()
	return strings.Contains(n.run(t, "nft", "list", "ruleset"), text)
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, limit time.Duration, holds func() bool) {
	t.Helper()
	began := time.Now()
	for !holds() {
		if time.Since(began) > limit {
			t.Errorf("%s: not within %v", what, limit)
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Logf("%s after %v", what, time.Since(began).Round(time.Millisecond))
}
