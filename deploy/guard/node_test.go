package guard_test

import (
	"bufio"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// onNode runs f in a process with a network of its own, which is the node.
func onNode(t *testing.T, f func(t *testing.T, n *node)) {
	t.Helper()
	if space.Alone(t, "ip", "nft") {
		f(t, newNode(t))
	}
}

// node is the network of this process: a pod that asks, and one that is CoreDNS.
type node struct {
	space.Space
	folder       string
	pod, coredns space.Space
}

func newNode(t *testing.T) *node {
	t.Helper()
	n := &node{Space: space.Here(t), folder: t.TempDir()}
	for key, value := range map[string]string{
		"ipv4/ip_forward": "1", "ipv6/conf/all/forwarding": "1",
		// Else a link says nothing for seconds, while it looks for its address elsewhere.
		"ipv6/conf/default/accept_dad": "0", "ipv6/conf/default/dad_transmits": "0",
	} {
		n.Sysctl(t, key, value)
	}
	n.pod = n.newPod(t, "pod", "10.2.0.1", "10.2.0.7", "fd02::1", "fd02::7")
	n.coredns = n.newPod(t, "dns", "10.1.0.1", coredns, "fd01::1", coredns6)
	if mode, _ := setting(); mode == hostnet.Service {
		n.kubeProxy(t)
	}
	return n
}

// newPod makes a namespace that a link leads to.
func (n *node) newPod(t *testing.T, link, ours4, theirs4, ours6, theirs6 string) space.Space {
	t.Helper()
	pod := space.New(t)
	n.Veth(t, link, pod)
	n.Address(t, link, ours4+"/24", ours6+"/64")
	pod.Address(t, "eth0", theirs4+"/24", theirs6+"/64")
	pod.Route(t, "0.0.0.0/0", ours4, "")
	pod.Route(t, "::/0", ours6, "")
	return pod
}

// process is another role of the test binary.
type process struct {
	*exec.Cmd
	once sync.Once
}

// start starts a role and waits until it is ready, or, if it is not expected to be,
// only until it runs.
func (n *node) start(t *testing.T, from space.Space, ready bool, words ...any) *process {
	t.Helper()
	p := &process{Cmd: exec.Command("/proc/self/exe")}
	p.Env = append(os.Environ(), roleVariable+"="+strings.TrimSuffix(fmt.Sprintln(words...), "\n"))
	p.Stderr = os.Stderr
	out, err := p.StdoutPipe()
	if err == nil {
		err = from.Try(p.Start)
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
func ask(from space.Space, network string, patience time.Duration) string {
	var reply *dns.Msg
	_, asked := setting()
	err := from.Try(func() (err error) {
		client := &dns.Client{Net: network, Timeout: patience}
		reply, _, err = client.ExchangeContext(context.Background(), new(dns.Msg).SetQuestion("a.example.", dns.TypeA), netip.AddrPortFrom(asked, 53).String())
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
func expect(t *testing.T, what string, from space.Space, want string) {
	t.Helper()
	for range 8 {
		if got := ask(from, "udp", wide); got != want {
			t.Errorf("%s: %s answers, want %s", what, got, want)
			return
		}
	}
}

// until asks until the same one has answered several times in a row, and returns how
// long it took to the first of these.
func until(t *testing.T, what string, from space.Space, want string, limit time.Duration) time.Duration {
	t.Helper()
	began := time.Now()
	var first time.Duration
	for row := 0; row < 8; {
		got := ask(from, "udp", 200*time.Millisecond)
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
	return strings.Contains(n.Run(t, "nft", "list", "ruleset"), text)
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
