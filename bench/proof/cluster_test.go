package proof

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/bench/names"
	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/bench/upstream"
	"github.com/nodens-dns/nodens/bench/world"
)

// cluster is three nodes, two of them in one zone, the CoreDNS pods on them,
// and what the API says of these: a file for each node.
type cluster struct {
	t      *testing.T
	ground ground
	mix    *names.Mix
	dir    string
	pods   []*pod // that the API knows
	clock  clock
	// view changes what the API shows to a node, or leaves it out. Default: nothing.
	view func(node int, e shownEndpoint) (shownEndpoint, bool)
}

type shownEndpoint = upstream.Endpoint

// clock is how long things take in the cluster.
type clock struct {
	lameDuck time.Duration // CoreDNS serves on after SIGTERM
	race     time.Duration // SIGTERM and the API's event are apart by up to this
	linger   time.Duration // a pod whose process has ended stays in the API
	schedule time.Duration // until the next pod is made
}

// pod is one CoreDNS and its endpoint. behind is where the API says that it
// is, which differs from where it is while something stands in between.
type pod struct {
	name, uid string
	node      int
	place     place
	at        netip.AddrPort
	shown     netip.AddrPort
	process   *space.Process

	ready, serving, terminating bool
}

func zoneOf(node int) string { return [...]string{"", "za", "za", "zb"}[node] }

func newCluster(t *testing.T, g ground, mix *names.Mix) *cluster {
	t.Helper()
	c := &cluster{
		t: t, ground: g, mix: mix, dir: t.TempDir(),
		clock: space.Form(
			clock{lameDuck: time.Second, race: 200 * time.Millisecond, linger: 500 * time.Millisecond, schedule: 200 * time.Millisecond},
			clock{lameDuck: 5 * time.Second, race: 500 * time.Millisecond, linger: 2 * time.Second, schedule: time.Second},
		),
	}
	write(t, c.zoneFile(), world.ZoneFile(mix))
	return c
}

func (c *cluster) zoneFile() string { return filepath.Join(c.dir, "zone") }

// coreDNS is the program, or the test is skipped.
func coreDNS(t *testing.T) string {
	t.Helper()
	program, there := world.CoreDNS()
	space.Needs(t, "coredns", there)
	return program
}

func mustMix(t *testing.T, ttl uint32) *names.Mix {
	t.Helper()
	m, err := world.NewMix(ttl)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// addPod makes a pod with an address on a node. The API shows it not ready.
func (c *cluster) addPod(node int) *pod {
	c.t.Helper()
	p := &pod{name: fmt.Sprintf("coredns-%d-%06x", node, rand.IntN(1<<24)), node: node}
	p.uid = p.name
	p.place, p.at = c.ground.newPod(node)
	p.shown = p.at
	c.pods = append(c.pods, p)
	return p
}

// startCoreDNS starts the process of a pod.
func (c *cluster) startCoreDNS(p *pod) {
	c.t.Helper()
	corefile := filepath.Join(c.dir, p.name)
	server := world.Server{
		Port: p.at.Port(), Health: netip.AddrPortFrom(p.at.Addr(), freeAddress(c.t, "127.0.0.1").Port()),
		LameDuck: c.clock.lameDuck, Zone: c.zoneFile(),
	}
	if p.place.namespace == "" {
		server.Bind = p.at.Addr()
	}
	write(c.t, corefile, server.Corefile())
	p.process = p.place.start(c.t, coreDNS(c.t), "-conf", corefile)
}

// awaitCoreDNS waits until the pod answers.
func (c *cluster) awaitCoreDNS(p *pod) {
	c.t.Helper()
	waitFor(c.t, "answer of CoreDNS at "+p.at.String(), 30*time.Second, func() bool {
		if !p.process.Running() {
			c.t.Fatalf("CoreDNS at %v has ended:\n%s", p.at, p.process.Said())
		}
		return asks(p.place, p.at) == nil
	})
}

// boot makes a ready pod on each of the nodes, and waits for them together.
func (c *cluster) boot(nodes ...int) {
	c.t.Helper()
	for _, node := range nodes {
		c.startCoreDNS(c.addPod(node))
	}
	for _, p := range c.pods {
		c.awaitCoreDNS(p)
		p.ready, p.serving = true, true
	}
	c.publish()
}

// on is the first pod on a node.
func (c *cluster) on(node int) *pod {
	c.t.Helper()
	for _, p := range c.pods {
		if p.node == node {
			return p
		}
	}
	c.t.Fatalf("node %d has no pod", node)
	return nil
}

// show sets what the API says of a pod.
func (c *cluster) show(p *pod, ready, serving, terminating bool) {
	c.t.Helper()
	p.ready, p.serving, p.terminating = ready, serving, terminating
	c.publish()
}

// forget removes a pod from the API.
func (c *cluster) forget(p *pod) {
	c.t.Helper()
	kept := c.pods[:0]
	for _, other := range c.pods {
		if other != p {
			kept = append(kept, other)
		}
	}
	c.pods = kept
	c.publish()
}

// file is what the API shows to a node.
func (c *cluster) file(node int) string {
	return filepath.Join(c.dir, fmt.Sprintf("endpoints-%d.yaml", node))
}

// publish shows the pods to every node.
func (c *cluster) publish() {
	c.t.Helper()
	var shown []upstream.Endpoint
	for _, p := range c.pods {
		shown = append(shown, upstream.Endpoint{
			Pod: p.name, Node: fmt.Sprintf("n%d", p.node), Zone: zoneOf(p.node), Addr: p.shown,
			Hinted: true, Ready: p.ready, Serving: p.serving, Terminating: p.terminating,
		})
	}
	for node := 1; node <= 3; node++ {
		if err := upstream.Publish(c.file(node), c.seenFrom(node, shown)); err != nil {
			c.t.Fatal(err)
		}
	}
}

// seenFrom is what the API shows to one node.
func (c *cluster) seenFrom(node int, all []shownEndpoint) (seen []shownEndpoint) {
	if c.view == nil {
		return all
	}
	for _, e := range all {
		if e, ok := c.view(node, e); ok {
			seen = append(seen, e)
		}
	}
	return seen
}

// upgrade replaces a pod as a DaemonSet with maxUnavailable 1 does: deleted, a
// lame duck, gone, and only then the next one, which becomes ready once it
// answers. The kubelet and the watchers hear of the deletion by different ways,
// either first.
func (c *cluster) upgrade(p *pod, signalFirst bool) {
	c.t.Helper()
	gap := time.Duration(rand.Int64N(int64(c.clock.race)))
	if signalFirst {
		p.process.Signal(syscall.SIGTERM)
		time.Sleep(gap)
		c.show(p, false, true, true)
	} else {
		c.show(p, false, true, true)
		time.Sleep(gap)
		p.process.Signal(syscall.SIGTERM)
	}
	c.awaitEnd(p)
	time.Sleep(c.clock.linger)
	c.ground.removePod(p.place)
	c.forget(p)
	time.Sleep(c.clock.schedule)
	next := c.addPod(p.node)
	c.publish() // its address is known, it is not ready
	c.startCoreDNS(next)
	c.awaitCoreDNS(next)
	c.show(next, true, true, false)
}

// awaitEnd waits for a lame duck to end.
func (c *cluster) awaitEnd(p *pod) {
	c.t.Helper()
	select {
	case <-p.process.Done():
	case <-time.After(c.clock.lameDuck + 15*time.Second):
		c.t.Fatalf("CoreDNS at %v did not end after SIGTERM", p.at)
	}
}

// restart starts the process of a pod again, at the same address.
func (c *cluster) restart(p *pod) {
	c.t.Helper()
	c.startCoreDNS(p)
	c.awaitCoreDNS(p)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// asks asks a server for a name of the cluster, once. Any reply that carries
// the question's ID will do.
func asks(from place, server netip.AddrPort) error {
	query := []byte("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x0akubernetes\x07default\x03svc\x07cluster\x05local\x00\x00\x01\x00\x01")
	return from.do(func() error {
		conn, err := net.Dial("udp", server.String())
		if err != nil {
			return err
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
			return err
		}
		if _, err := conn.Write(query); err != nil {
			return err
		}
		reply := make([]byte, 512)
		n, err := conn.Read(reply)
		switch {
		case err != nil:
			return err
		case n < 12 || reply[0] != 0x12 || reply[1] != 0x34 || reply[3]&0xf != 0 || reply[7] == 0:
			return fmt.Errorf("not an answer: %x", reply[:n])
		}
		return nil
	})
}
