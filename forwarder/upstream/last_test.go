package upstream_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/upstream"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// at is the member of a server at a step of the last resort.
func (s *server) at(step upstream.Step) upstream.Member {
	m := s.member()
	m.State, m.Step = upstream.NotReady, step
	return m
}

// TestNoFallbackWhileOthersAnswer has three endpoints that are not ready and
// answer, slower than a copy of a question waits, and a fallback that denies
// what they know. Then they go.
func TestNoFallbackWhileOthersAnswer(t *testing.T) {
	slow := func(r *request) {
		time.Sleep(40 * time.Millisecond)
		r.reply(t, dns.RcodeSuccess)
	}
	endpoints := []*server{serve(t, slow), serve(t, slow), serve(t, slow)}
	service, fallback := serve(t, good(t)), serve(t, coded(t, dns.RcodeNameError))
	table := upstream.Table{Last: []upstream.Member{fallback.at(upstream.FallbackStep), service.at(upstream.ServiceStep)}}
	for _, s := range endpoints {
		table.Last = append(table.Last, s.at(upstream.ClusterStep))
	}
	g := group(t, upstream.Config{}, table)
	for i := range 30 {
		mustAnswer(t, g, nameOf(i), wire.NoError)
	}
	for i, s := range endpoints {
		if s.count() == 0 {
			t.Errorf("endpoint %d was not asked: equals share", i)
		}
		s.stop()
	}
	for i := range 10 {
		mustAnswer(t, g, nameOf(i), wire.NoError)
	}
	if n := fallback.count(); n != 0 {
		t.Errorf("the fallback was asked %d times while others answered", n)
	}
	if service.count() < 10 {
		t.Errorf("the Service was asked %d times", service.count())
	}
	service.stop()
	mustAnswer(t, g, "a.test", wire.NXDomain)
}

// TestLastNearestFirst has every query put to the nearest step, until that is
// gone.
func TestLastNearestFirst(t *testing.T) {
	steps := []upstream.Step{upstream.NodeStep, upstream.ZoneStep, upstream.ClusterStep, upstream.ServiceStep, upstream.FallbackStep}
	var servers []*server
	var table upstream.Table
	for _, step := range steps {
		s := serve(t, good(t))
		servers = append(servers, s)
		table.Last = append([]upstream.Member{s.at(step)}, table.Last...)
	}
	g := group(t, upstream.Config{}, table)
	for i, s := range servers {
		for j := range 5 {
			mustAnswer(t, g, fmt.Sprintf("%d-%d.test", i, j), wire.NoError)
		}
		if s.count() < 5 {
			t.Errorf("step %d was asked %d times", i, s.count())
		}
		s.stop()
	}
}

// notReady are so many endpoints elsewhere where nobody listens.
func notReady(n int) (members []upstream.Member) {
	for i := range n {
		addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 9, byte(i >> 8), byte(i)}), 9)
		members = append(members, upstream.Member{UDP: addr, TCP: addr, State: upstream.NotReady, Step: upstream.ClusterStep})
	}
	return members
}

// TestManyNotReady has 5000 endpoints become the last resort, and a few of them
// come and go.
func TestManyNotReady(t *testing.T) {
	const most = 8
	members := notReady(5000)
	g := group(t, upstream.Config{Node: "n"}, upstream.Table{Last: members})
	used := func() map[netip.AddrPort]bool {
		used := map[netip.AddrPort]bool{}
		for _, ts := range g.Status().Targets {
			used[ts.Addr] = true
		}
		return used
	}
	before := used()
	if len(before) != most {
		t.Fatalf("%d targets", len(before))
	}
	for i := range 50 {
		g.Update(upstream.Table{Last: slices.Delete(slices.Clone(members), i*100, i*100+10)})
		gone := 0
		for addr := range used() {
			if !before[addr] {
				gone++
			}
		}
		if len(used()) != most || gone > 1 {
			t.Errorf("%d targets, %d of them new, after 10 of 5000 went", len(used()), gone)
		}
	}
	g.Update(upstream.Table{Last: members})
	if !maps.Equal(before, used()) {
		t.Error("other targets after they came back")
	}
}

// TestLastIsNotProbed has the last resort fail, and be left alone once a tier is
// healthy.
func TestLastIsNotProbed(t *testing.T) {
	s, last := serve(t, good(t)), notReady(4)
	last[3].Step = upstream.ServiceStep
	g := group(t, upstream.Config{}, upstream.Table{Last: last})
	waitFor(t, "all are out", func() bool {
		_, _, _ = ask(t, g, "a.test")
		return !slices.ContainsFunc(g.Status().Targets, func(ts upstream.TargetStatus) bool { return !ts.Out })
	})
	before := g.Status().Probes
	waitFor(t, "they are probed", func() bool { return g.Status().Probes > before })
	table := tiered(s)
	table.Last = append(notReady(6)[4:], last...)
	g.Update(table)
	waitFor(t, "the node's is in use", func() bool { return !g.Status().Targets[0].Out })
	sent := func() (n uint64) {
		for _, ts := range g.Status().Targets[1:] {
			n += ts.Sent
		}
		return n
	}
	time.Sleep(200 * time.Millisecond) // those on their way
	first := sent()
	time.Sleep(1500 * time.Millisecond)
	if n := sent() - first; n != 0 {
		t.Errorf("the last resort was asked %d times", n)
	}
	s.stop()
	waitFor(t, "they are probed again", func() bool {
		_, _, _ = ask(t, g, "a.test")
		return sent() > first+6
	})
}
