package upstream_test

import (
	"fmt"
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
