package upstream_test

import (
	"context"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/forwarder/upstream"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// TestUnreachable has a neighbour that nobody answers for, so that the kernel
// reports it unreachable after a moment, and then takes the route to it away.
func TestUnreachable(t *testing.T) {
	if !space.Alone(t, "ip") {
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
	if !space.Alone(t, "ip", "tc") {
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
