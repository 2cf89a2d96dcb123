package main

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nodens-dns/nodens/forwarder"
	"github.com/nodens-dns/nodens/forwarder/listener"
	"github.com/nodens-dns/nodens/forwarder/upstream"
	"github.com/nodens-dns/nodens/topology"
)

// Every field of a table reaches the group: a field that is added to one side
// only shows here.
func TestTableOf(t *testing.T) {
	a := addrPorts("192.0.2.1:53", "192.0.2.1:54", "[2001:db8::1]:53", "[2001:db8::1]:54")
	member := func(pod string, s topology.State) topology.Member {
		return topology.Member{Pod: pod, UDP: a[0], TCP: a[1], AltUDP: a[2], AltTCP: a[3], State: s}
	}
	want := func(pod string, s upstream.State) upstream.Member {
		return upstream.Member{Pod: pod, UDP: a[0], TCP: a[1], AltUDP: a[2], AltTCP: a[3], State: s}
	}
	last, wantLast := member("last", topology.NotReady), want("last", upstream.NotReady)
	last.Step, wantLast.Step = topology.StepZone, upstream.ZoneStep
	got := tableOf(topology.Table{
		Tiers: [3][]topology.Member{
			{member("node", topology.Ready)}, {member("zone", topology.Draining)}, {member("cluster", topology.Ready)},
		},
		Last:     []topology.Member{last},
		Draining: true,
	})
	table := upstream.Table{
		Tiers: [3][]upstream.Member{
			{want("node", upstream.Ready)}, {want("zone", upstream.Draining)}, {want("cluster", upstream.Ready)},
		},
		Last:     []upstream.Member{wantLast},
		Draining: true,
	}
	if diff := cmp.Diff(table, got, byValue()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestStepOf(t *testing.T) {
	for theirs, ours := range map[topology.Step]upstream.Step{
		topology.StepNode: upstream.NodeStep, topology.StepZone: upstream.ZoneStep, topology.StepCluster: upstream.ClusterStep,
		topology.StepService: upstream.ServiceStep, topology.StepServers: upstream.FallbackStep,
	} {
		if got := stepOf(theirs); got != ours {
			t.Errorf("step %d of the topology is %d of the group, want %d", theirs, got, ours)
		}
	}
}

func TestPeerAndVerdict(t *testing.T) {
	got := peer(listener.Peer{Client: addrPorts("192.0.2.1:5")[0], Received: 7, Listener: 2, Stripe: 3, Proto: listener.ProtoTCP})
	want := forwarder.Peer{Client: addrPorts("192.0.2.1:5")[0], Received: 7, Listener: 2, Stripe: 3, Proto: forwarder.TCP}
	if got != want {
		t.Errorf("peer %+v, want %+v", got, want)
	}
	for theirs, ours := range map[forwarder.Verdict]listener.Verdict{
		forwarder.Drop: listener.Drop, forwarder.Answered: listener.Answered, forwarder.Miss: listener.Miss, forwarder.Close: listener.Close,
	} {
		if listener.Verdict(theirs) != ours {
			t.Errorf("verdict %d of the forwarder is %d of the listener", theirs, ours)
		}
	}
}

// What the configuration says of stale answers reaches the cache.
func TestStaleAnswers(t *testing.T) {
	up := newScripted(t, 4, 0)
	config := func(maxStale string) string {
		return fmt.Sprintf("listen: [127.0.0.1:0]\ncache: {maxStale: %s}\nroutes: [{zones: [.], servers: [%q], timeout: 2s, cache: {maxTTL: 1s}}]\n", maxStale, up.address)
	}
	with, without := serve(t, config("1h")), serve(t, config("0s"))
	for _, h := range []*house{with, without} {
		h.expect("udp", h.address(0), "a.example.", 0, "NOERROR 192.0.2.4")
	}
	up.silent.Store(true)
	time.Sleep(1100 * time.Millisecond)
	with.expect("udp", with.address(0), "a.example.", 0, "NOERROR 192.0.2.4")
	without.expect("udp", without.address(0), "a.example.", 0, "SERVFAIL")
	if r := with.report(); r.Rates.Total["stale"] != 1 {
		t.Errorf("replies by source: %v, want one stale", r.Rates.Total)
	}
}

func TestCovers(t *testing.T) {
	own := []netip.Addr{netip.MustParseAddr("10.0.0.5")}
	for _, test := range []struct {
		listen, address string
		want            bool
	}{
		{"127.0.0.1:53", "127.0.0.1:53", true},
		{"127.0.0.1:53", "127.0.0.1:54", false},
		{"127.0.0.1:53", "127.0.0.2:53", false},
		{"127.0.0.1:0", "127.0.0.1:0", false},
		{"0.0.0.0:53", "127.0.0.9:53", true},
		{"0.0.0.0:53", "10.0.0.5:53", true},
		{"0.0.0.0:53", "10.0.0.6:53", false},
		{"0.0.0.0:53", "0.0.0.0:53", true},
		{"0.0.0.0:53", "[::1]:53", false},
		{"[::]:53", "[::1]:53", true},
		{"[::]:53", "127.0.0.1:53", false},
	} {
		if got := covers(addrPorts(test.listen)[0], addrPorts(test.address)[0], own); got != test.want {
			t.Errorf("%s covers %s: %v, want %v", test.listen, test.address, got, test.want)
		}
	}
}
