package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/deploy/e2e/cluster"
)

// daemon is a running nodens serve.
type daemon struct {
	*space.Process
	t      *testing.T
	config string
	dns    netip.AddrPort
	admin  netip.AddrPort
}

// serve starts the daemon on a node of the stage.
func serve(t *testing.T, s *cluster.Stage, server, node string) *daemon {
	t.Helper()
	account := s.Account("nodens")
	account.Grant(shippedRules(t, "rbac.yaml"))
	d := &daemon{t: t, dns: freePort(t), admin: freePort(t)}
	folder := t.TempDir()
	d.config = filepath.Join(folder, "nodens.yaml")
	text := fmt.Sprintf(`version: v1
listen: [%q]
node: {name: %s}
kubernetes: {server: %q, caFile: %s, tokenFile: %s, snapshots: %s}
admin: {address: %q}
routes:
- zones: [cluster.local]
  topology: {namespace: %s}
`, d.dns, s.NodeName(node), server, shared.cluster.CAFile(), account.TokenFile, folder, d.admin, s.Namespace)
	if err := os.WriteFile(d.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d.start()
	return d
}

func (d *daemon) start() {
	d.t.Helper()
	program := os.Getenv("NODENS_BINARY")
	if program == "" {
		missing(d.t, "etcd", "NODENS_BINARY names no nodens; use make e2e")
	}
	cmd := exec.Command(program, "serve", "-config", d.config)
	cmd.Env = append(os.Environ(), "KUBERNETES_SERVICE_HOST="+apiAddress)
	d.Process = space.Space{}.Start(d.t, cmd)
}

// freePort returns a port of loopback that is free over UDP and TCP.
func freePort(t *testing.T) netip.AddrPort {
	t.Helper()
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		u, err := net.ListenPacket("udp", l.Addr().String())
		if err == nil {
			_ = u.Close()
			return netip.MustParseAddrPort(l.Addr().String())
		}
	}
}

// standing is what the status page says of the servers: "pod tier state", and
// the notes.
func (d *daemon) standing() (servers, notes []string) {
	reply, err := http.Get("http://" + d.admin.String() + "/statusz?format=json")
	if err != nil {
		return nil, nil // not yet
	}
	defer func() { _ = reply.Body.Close() }()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return readStanding(d.t, string(text))
}

// readStanding reads it from a status page, of which there may be none.
func readStanding(t *testing.T, text string) (servers, notes []string) {
	t.Helper()
	if text == "" {
		return nil, nil
	}
	var page struct {
		Routes []struct {
			Notes   []string `json:"notes"`
			Servers []struct{ Tier, Pod, State string }
		} `json:"routes"`
	}
	if err := json.Unmarshal([]byte(text), &page); err != nil {
		t.Fatal(err)
	}
	for _, route := range page.Routes {
		notes = append(notes, route.Notes...)
		for _, s := range route.Servers {
			_, pod, _ := strings.Cut(s.Pod, "/")
			servers = append(servers, pod+" "+s.Tier+" "+s.State)
		}
	}
	return servers, notes
}

// shows waits for the status page to say so. It may take a while: a daemon that
// knows endpoints from an earlier run waits up to 30 s before it asks the API.
func (d *daemon) shows(want ...string) {
	d.t.Helper()
	var got []string
	for deadline := time.Now().Add(time.Minute); !slices.Equal(got, want); time.Sleep(20 * time.Millisecond) {
		if got, _ = d.standing(); time.Now().After(deadline) {
			d.t.Fatalf("the status page shows %q, not %q", got, want)
		}
	}
}

// client asks for a new name all the time, so that none is in a cache.
type client struct {
	t    *testing.T
	stop chan struct{}
	done sync.WaitGroup

	mu       sync.Mutex
	asked    int
	lost     []string
	longest  time.Duration
	answered map[netip.Addr]int
}

func newClient(t *testing.T, server netip.AddrPort) *client {
	c := &client{t: t, stop: make(chan struct{}), answered: make(map[netip.Addr]int)}
	c.done.Go(func() {
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		for n := 0; ; n++ {
			select {
			case <-c.stop:
				return
			case <-ticker.C:
			}
			c.done.Go(func() { c.ask(server, fmt.Sprintf("n%d.cluster.local.", n)) })
		}
	})
	t.Cleanup(c.end)
	return c
}

func (c *client) ask(server netip.AddrPort, name string) {
	began := time.Now()
	got, err := ask(c.t, server, name)
	took := time.Since(began)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	c.longest = max(c.longest, took)
	if err != nil {
		c.lost = append(c.lost, err.Error())
		return
	}
	c.answered[got]++
}

// end stops asking and waits for what is on the way. It may be called twice.
func (c *client) end() {
	select {
	case <-c.stop:
	default:
		close(c.stop)
	}
	c.done.Wait()
}

// only forgets who answered so far, and tells whether nobody but the pod does for
// a while.
func (c *client) only(pod netip.Addr) bool {
	c.mu.Lock()
	clear(c.answered)
	c.mu.Unlock()
	time.Sleep(200 * time.Millisecond)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answered[pod] > 0 && len(c.answered) == 1
}

// The daemon itself, with real servers behind it, through what a week brings:
// a roll, a crash that the API does not know of, and the API away over a
// restart. No query is lost.
func TestDaemon(t *testing.T) {
	s := stage(t)
	m := newMachines(t, s)
	s.AddNode("n1", "za")
	s.AddNode("n2", "za")
	s.AddNode("n3", "zb")
	s.AddService(cluster.Prefers("PreferSameNode"))
	m.boot("a1", "n1")
	m.boot("a2", "n2")
	m.boot("a3", "n3")
	proxy, err := cluster.NewProxy(shared.cluster.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	d := serve(t, s, "https://"+proxy.Address(), "n1")
	d.shows("a1 node ready", "a2 zone ready", "a3 cluster ready")

	c := newClient(t, d.dns)
	answers := func(pod string) {
		t.Helper()
		address, _ := s.Addresses(pod)
		waitFor(t, "only "+pod+" answers", patience, func() bool { return c.only(address) })
	}
	answers("a1")

	m.boot("b1", "n1") // a roll with a surge
	s.Terminate("a1")
	answers("b1")
	d.shows("b1 node ready", "a2 zone ready", "a3 cluster ready", "a1 last draining")
	m.leave("a1")
	d.shows("b1 node ready", "a2 zone ready", "a3 cluster ready")

	s.Terminate("b1") // a roll without
	answers("a2")
	m.leave("b1")
	m.boot("c1", "n1")
	answers("c1")

	m.crash("c1")
	answers("a2")
	s.Ready("c1", false)
	d.shows("a2 zone ready", "a3 cluster ready", "c1 last not ready")

	proxy.Down()
	waitFor(t, "the page says that the API is away", patience, func() bool {
		_, notes := d.standing()
		return strings.Contains(strings.Join(notes, "\n"), "API server")
	})
	answers("a2")
	c.end()
	t.Logf("%d queries, %d lost, the longest took %v", c.asked, len(c.lost), c.longest.Round(time.Millisecond))
	if len(c.lost) > 0 {
		t.Errorf("%d of %d queries were lost, the first: %s", len(c.lost), c.asked, c.lost[0])
	}

	d.End(syscall.SIGTERM)
	began := time.Now()
	d.start()
	waitFor(t, "an answer without the API", patience, func() bool {
		_, err := askFor(t, 200*time.Millisecond, d.dns, "again.cluster.local.")
		return err == nil // whoever proves first that it is of this cluster
	})
	// The aim is 1 s on a machine with nothing else to do.
	took := time.Since(began)
	t.Logf("answers %v after a start without the API", took.Round(time.Millisecond))
	if took > 3*time.Second {
		t.Errorf("the first answer after a start without the API took %v", took)
	}
	d.shows("a2 zone ready", "a3 cluster ready") // c1 could not prove who it is
	proxy.Up()
	m.boot("d1", "n1")
	d.shows("d1 node ready", "a2 zone ready", "a3 cluster ready", "c1 last not ready")
}
