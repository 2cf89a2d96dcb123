package upstream_test

import (
	"context"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/forwarder/upstream"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// TestUnreachable has a neighbour that nobody answers for, so that the kernel
// reports it unreachable after a moment, and then takes the route to it away.
func TestUnreachable(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	run(t, "ip link set lo up")
	run(t, "ip link add near type veth peer name far")
	run(t, "ip link set near up")
	run(t, "ip link set far up")
	run(t, "ip addr add 192.0.2.1/24 dev near")
	run(t, "ip -6 addr add 2001:db8::1/64 dev near nodad")
	for _, family := range []string{"ipv4", "ipv6"} {
		set(t, "/proc/sys/net/"+family+"/neigh/near/retrans_time_ms", "100")
	}
	for gone, flush := range map[string]string{
		"192.0.2.2:53": "ip route flush dev near", "[2001:db8::2]:53": "ip -6 route flush dev near",
	} {
		t.Run("nobody at "+gone, func(t *testing.T) { askBeside(t, gone, 3*time.Second) })
		run(t, flush)
		t.Run("no way to "+gone, func(t *testing.T) { askBeside(t, gone, soon) })
	}
}

// askBeside asks two servers of which the first cannot be reached, and takes at
// most so long, far below the retry time.
func askBeside(t *testing.T, gone string, most time.Duration) {
	addr := netip.MustParseAddrPort(gone)
	table := plain(serve(t, good(t)))
	members := &table.Tiers[upstream.ClusterTier]
	*members = append([]upstream.Member{{UDP: addr, TCP: addr}}, *members...)
	g := group(t, upstream.Config{
		Policy: upstream.Sequential, Attempts: 2, PacketRate: 1000, // no hedges
		RetryMin: 5 * time.Second, RetryMax: 5 * time.Second, Budget: 20 * time.Second,
	}, table)
	if _, took := mustAnswer(t, g, "a.test", wire.NoError); took > most {
		t.Errorf("took %v: it waited for the retry time", took)
	}
	if ts := g.Status().Targets[0]; !ts.Out || ts.HardErrors == 0 {
		t.Errorf("the target is not out for a hard error: %+v", ts)
	}
}

// TestFullQueue has the kernel lose datagrams on their way out. They are lost as
// others are, and say nothing of those before them.
func TestFullQueue(t *testing.T) {
	_, err := exec.LookPath("tc")
	needs(t, "tc", err == nil)
	if !inNamespace(t) {
		return
	}
	run(t, "ip link set lo up")
	run(t, "tc qdisc add dev lo root tbf rate 8kbit burst 1600 limit 100")
	g := group(t, upstream.Config{
		Policy: upstream.Sequential, Sockets: 1, Attempts: 2, PacketRate: 1_000_000, // no hedges
		RetryMin: 5 * time.Second, RetryMax: 5 * time.Second, Budget: 20 * time.Second,
	}, plain(serve(t, silent), serve(t, silent)))
	given, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var asking sync.WaitGroup
	for i := range 60 {
		asking.Go(func() { _, _ = g.Exchange(given, nil, query(t, nameOf(i))) })
	}
	asking.Wait()
	if st := g.Status(); st.Retries != 0 || st.Targets[0].HardErrors != 0 || st.Targets[0].Sent != 60 {
		t.Errorf("%d retries, %d hard errors, %d sent", st.Retries, st.Targets[0].HardErrors, st.Targets[0].Sent)
	}
}

// inNamespace runs the test once more, as a process in a network namespace of its
// own, and reports whether it is that process.
func inNamespace(t *testing.T) bool {
	t.Helper()
	if os.Getenv("NODENS_NETNS_CHILD") != "" {
		return true
	}
	needs(t, "root", os.Geteuid() == 0)
	_, err := exec.LookPath("ip")
	needs(t, "ip", err == nil)
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=1m")
	child.Env = append(os.Environ(), "NODENS_NETNS_CHILD=1")
	child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	out, err := child.CombinedOutput()
	needs(t, "netns", !strings.Contains(string(out), "operation not permitted") || err == nil)
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("in a namespace: %v\n%s", err, out)
	}
	return false
}

// needs skips the test where something is missing, or fails it where
// NODENS_REQUIRE counts on it.
func needs(t *testing.T, what string, there bool) {
	t.Helper()
	switch {
	case there:
	case slices.Contains(strings.Split(os.Getenv("NODENS_REQUIRE"), ","), what):
		t.Fatalf("this run counts on %s, and it is missing", what)
	default:
		t.Skipf("needs %s", what)
	}
}

func run(t *testing.T, command string) {
	t.Helper()
	words := strings.Fields(command)
	if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
}

func set(t *testing.T, path, value string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(value), 0o644); err != nil {
		t.Fatal(err)
	}
}
