package proof

import (
	"encoding/binary"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/bench/load"
	"github.com/nodens-dns/nodens/bench/names"
	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/bench/upstream"
)

// TestExternal has the resolver for all names outside the cluster die, fall
// silent, also while a crowd asks for more of them than may be in flight, become
// slow and answer garbage. Names of the cluster must not notice.
func TestExternal(t *testing.T) {
	c := newCluster(t, newLoopback(t), mustMix(t, 0))
	c.boot(1, 2, 3)
	resolver, err := upstream.New(upstream.Config{Zone: c.mix.Zone(), Addr: freeAddress(t, "127.0.0.53")})
	if err == nil {
		err = resolver.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(resolver.Close)
	d := c.startNodens(1, budget, outside(resolver.Addr()))
	c.warm(d)
	inside := c.ask(d, usual(rate()))
	outside := c.askOutside(d, space.Form(100.0, 300.0))
	mark := func(phase string) {
		inside.mark(phase)
		outside.mark(phase)
	}
	faults := c.faultsOf(resolver, d)
	for range space.Form(1, 5) {
		for _, f := range faults {
			if f.ready != nil {
				f.ready()
				time.Sleep(space.Form(0, time.Second)) // whose start takes CPU time from all who ask
			}
			mark("before " + f.name)
			time.Sleep(space.Form(time.Second, 5*time.Second))
			mark(f.name)
			if err := f.set(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(space.Form(3*time.Second, 8*time.Second))
			mark("rest")
			if err := f.end(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(space.Form(time.Second, 5*time.Second)) // what is in flight ends
		}
	}
	inside.stop().expectNone()
	outside.stop()
	if got := outside.total(); got.Lost != 0 || got.Wrong != 0 {
		t.Errorf("of %d names outside %d were lost and %d answered wrong; %s", got.Sent, got.Lost, got.Wrong, outside.loss())
	}
	for _, f := range faults {
		compareExternal(t, inside, outside, f.name)
	}
}

// fault is something that happens to a resolver, and its end.
type fault struct {
	name     string
	set, end func() error
	ready    func() // what goes on before it too; nil for nothing
}

// faultsOf are what may be wrong with the resolver for names outside the cluster.
func (c *cluster) faultsOf(resolver *upstream.Server, d *daemon) []fault {
	well := func() error { return resolver.Set(upstream.Faults{}) }
	silence := func() error { return resolver.Set(upstream.Faults{Blackhole: true}) }
	var crowd *traffic
	var hush func()
	return []fault{
		{name: "dead", set: func() error { resolver.Kill(); return nil }, end: resolver.Start},
		{name: "silent", set: silence, end: well},
		{name: "crowd", set: silence, end: func() error { crowd.stop(); return well() }, ready: func() { crowd = c.askOutside(d, 2500) }},
		{name: "slow", set: func() error { return resolver.Set(upstream.Faults{Delay: 2 * time.Second}) }, end: well},
		{name: "garbage", set: func() (err error) { resolver.Kill(); hush, err = c.garble(resolver.Addr()); return err }, end: func() error { hush(); return resolver.Start() }},
	}
}

// compareExternal asserts that the cluster's names were as fast as just before,
// when the resolver was good: the machine may be up to other things at other times.
func compareExternal(t *testing.T, inside, outside *traffic, fault string) {
	t.Helper()
	good, misses := usualP99(inside.misses(), "before "+fault), usualP99(inside.misses(), fault)
	goodHits, hits := usualP99(inside.hits(), "before "+fault), usualP99(inside.hits(), fault)
	ext := phases(outside.hits(), fault)
	t.Logf("%s: p99 of misses %v after %v, of hits %v after %v; outside %d of %d failed", fault, misses, good, hits, goodHits, ext.ServFail, ext.Sent)
	figure("external resolver "+fault, "loopback", []*traffic{inside}, "p99 of the cluster's misses %s ms, just before, with a good resolver, %s; of hits %s, %s; outside %d of %d SERVFAIL, %d late",
		ms(misses), ms(good), ms(hits), ms(goodHits), ext.ServFail, ext.Sent, ext.Late)
	if limit := atMost(good); misses > limit {
		t.Errorf("%s: p99 of the cluster's misses is %v, at most %v expected", fault, misses, limit)
	}
	if limit := atMost(goodHits); hits > limit {
		t.Errorf("%s: p99 of hits is %v, at most %v expected", fault, hits, limit)
	}
}

// usualP99 is the median of the 99th percentiles of the phases with a name.
func usualP99(r *load.Report, phase string) time.Duration {
	var all []time.Duration
	for _, p := range r.Phases {
		if p.Name == phase {
			all = append(all, p.Latency.P99)
		}
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// atMost is what a 99th percentile may become: a tenth more, and some time for what
// else the machine may be up to.
func atMost(before time.Duration) time.Duration {
	return before + before/10 + space.Form(4*time.Second, 5*time.Millisecond)
}

// askOutside starts the traffic of names outside the cluster, each of them new.
func (c *cluster) askOutside(d *daemon, rate float64) *traffic {
	c.t.Helper()
	wild, err := names.Wire(names.WildSuffix)
	if err != nil {
		c.t.Fatal(err)
	}
	unheard := c.mix.Zone().Unique(wild, uint64(nextSequence()))
	return startTraffic(c.t, c.ground.client(d.node), d, 0, stream{rate, func(int) load.Source { return unheard }})
}

// garble answers every query at an address, until its end, with what is no answer: noise, the
// query itself, a reply with another ID, and a reply to another question.
func (c *cluster) garble(at netip.AddrPort) (end func(), err error) {
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	if err != nil {
		return nil, err
	}
	done := make(chan struct{})
	end = func() { conn.Close(); <-done }
	c.t.Cleanup(end)
	go func() {
		defer close(done)
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			for _, msg := range garbage(buf[:n]) {
				_, _ = conn.WriteToUDPAddrPort(msg, from)
			}
		}
	}()
	return end, nil
}

func garbage(query []byte) [][]byte {
	noise := make([]byte, 1+rand.IntN(600))
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	copy(noise, query[:2]) // with the right ID
	otherID := append([]byte(nil), query...)
	otherID[2] |= 0x80
	binary.BigEndian.PutUint16(otherID, binary.BigEndian.Uint16(query)+1)
	otherName := append([]byte(nil), query...)
	otherName[2] |= 0x80
	otherName[14] ^= 1
	cut := append([]byte(nil), query...)
	cut[2] |= 0x80
	cut[7] = 1 // one answer, which is not there
	return [][]byte{noise, append([]byte(nil), query...), otherID, otherName, cut}
}
