package upstream_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/upstream"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// inOrder asks the servers in the table's order, with wide retry times.
var inOrder = upstream.Config{
	Policy: upstream.Sequential, RetryMin: 300 * time.Millisecond, RetryMax: 300 * time.Millisecond,
}

func TestAnswer(t *testing.T) {
	s := serve(t, good(t))
	g := group(t, upstream.Config{}, plain(s))
	mustAnswer(t, g, "a.test", wire.NoError)

	st := g.Status()
	if st.Exchanges != 1 || st.Attempts != 1 || st.Retries != 0 || st.Served[upstream.ClusterTier] != 1 {
		t.Errorf("status %+v", st)
	}
	ts := st.Targets[0]
	if ts.Addr != s.addr || ts.Sent != 1 || ts.InFlight != 0 || ts.SRTT == 0 || ts.Suspect {
		t.Errorf("target %+v", ts)
	}
	if n := ts.Replies[upstream.ClassNoError].Count(); n != 1 {
		t.Errorf("%d replies counted", n)
	}
}

func TestNoTargets(t *testing.T) {
	g := group(t, upstream.Config{}, upstream.Table{})
	if _, _, err := ask(t, g, "a.test"); !errors.Is(err, upstream.ErrNoTargets) {
		t.Errorf("error %v", err)
	}
}

func TestFailureCodesGoElsewhere(t *testing.T) {
	tests := map[string]struct {
		codes []int
		want  wire.RCode
		asked []int
	}{
		"SERVFAIL, then an answer":              {[]int{2, 0}, wire.NoError, []int{1, 1}},
		"REFUSED, then an answer":               {[]int{5, 0}, wire.NoError, []int{1, 1}},
		"NXDOMAIN is an answer":                 {[]int{3, 0}, wire.NXDomain, []int{1, 0}},
		"all fail: the last is told":            {[]int{2, 5}, wire.Refused, []int{1, 1}},
		"one server is not asked twice":         {[]int{2}, wire.ServFail, []int{1}},
		"three of four are asked":               {[]int{2, 2, 2, 0}, wire.ServFail, []int{1, 1, 1, 0}},
		"not understood, with and without EDNS": {[]int{1, 0}, wire.NoError, []int{2, 1}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var servers []*server
			for _, code := range tc.codes {
				servers = append(servers, serve(t, coded(t, code)))
			}
			g := group(t, inOrder, plain(servers...))
			_, took := mustAnswer(t, g, "a.test", tc.want)
			if took > 250*time.Millisecond {
				t.Errorf("took %v: it waited for the retry time", took)
			}
			for i, s := range servers {
				if n := s.count(); n != tc.asked[i] {
					t.Errorf("server %d was asked %d times, want %d", i, n, tc.asked[i])
				}
			}
			for _, ts := range g.Status().Targets {
				if ts.Suspect || ts.Misses != 0 {
					t.Errorf("a reply made %v suspect", ts.Addr)
				}
			}
		})
	}
}

func TestSilentServerIsRetriedElsewhere(t *testing.T) {
	dead, alive := serve(t, silent), serve(t, good(t))
	cfg := inOrder
	cfg.RetryMin, cfg.RetryMax = 50*time.Millisecond, 50*time.Millisecond
	g := group(t, cfg, plain(dead, alive))
	for i := range 10 {
		_, took := mustAnswer(t, g, "a.test", wire.NoError)
		if took > time.Second {
			t.Errorf("query %d took %v", i, took)
		}
	}
	// Three misses make it suspect; from then on it gets trials only.
	ts := g.Status().Targets[0]
	if !ts.Suspect || ts.Timeouts != 3 {
		t.Errorf("suspect %v after %d timeouts", ts.Suspect, ts.Timeouts)
	}
	if n := dead.count(); n < 3 || n > 5 {
		t.Errorf("the dead server was asked %d times", n)
	}
}

func TestLoneServerIsAskedAgain(t *testing.T) {
	s := serve(t, func(r *request) {
		if r.number == 2 {
			r.reply(t, dns.RcodeSuccess)
		}
	})
	cfg := upstream.Config{RetryMin: 20 * time.Millisecond, RetryMax: 20 * time.Millisecond}
	g := group(t, cfg, plain(s))
	mustAnswer(t, g, "a.test", wire.NoError)
	if st := g.Status(); st.Retries != 2 {
		t.Errorf("%d retries", st.Retries)
	}
}

func TestFirstStaysOpenAfterTheRetry(t *testing.T) {
	slow := serve(t, func(r *request) {
		time.Sleep(150 * time.Millisecond)
		r.reply(t, dns.RcodeSuccess)
	})
	dead := serve(t, silent)
	cfg := inOrder
	cfg.RetryMin, cfg.RetryMax = 30*time.Millisecond, 30*time.Millisecond
	g := group(t, cfg, plain(slow, dead))
	mustAnswer(t, g, "a.test", wire.NoError)
}

func TestAllDead(t *testing.T) {
	t.Run("silent", func(t *testing.T) {
		cfg := upstream.Config{Budget: 400 * time.Millisecond}
		g := group(t, cfg, plain(serve(t, silent), serve(t, silent)))
		_, took, err := ask(t, g, "a.test")
		if !errors.Is(err, upstream.ErrBudget) || took < 350*time.Millisecond || took > 2*time.Second {
			t.Errorf("error %v after %v", err, took)
		}
	})
	t.Run("refused", func(t *testing.T) {
		a, b := serve(t, silent), serve(t, silent)
		a.stop()
		b.stop()
		g := group(t, upstream.Config{Budget: 3 * time.Second}, plain(a, b))
		_, took, err := ask(t, g, "a.test")
		if !errors.Is(err, upstream.ErrFailed) || !errors.Is(err, syscall.ECONNREFUSED) || took > 2*time.Second {
			t.Errorf("error %v after %v", err, took)
		}
	})
}

func TestRefusedGoesOnAtOnce(t *testing.T) {
	gone, alive := serve(t, silent), serve(t, good(t))
	gone.stop()
	cfg := inOrder
	cfg.RetryMin, cfg.RetryMax = 2*time.Second, 2*time.Second
	g := group(t, cfg, plain(gone, alive))
	_, took := mustAnswer(t, g, "a.test", wire.NoError)
	if took > time.Second {
		t.Errorf("took %v: it waited for the retry time", took)
	}
	ts := g.Status().Targets[0]
	if !ts.Suspect || ts.HardErrors != 1 || ts.InFlight != 0 {
		t.Errorf("target %+v", ts)
	}
}

func TestReturnAfterHardError(t *testing.T) {
	clk := newClock()
	gone, alive := serve(t, silent), serve(t, good(t))
	gone.stop()
	cfg := inOrder
	cfg.Now = clk.now
	g := group(t, cfg, plain(gone, alive))
	mustAnswer(t, g, "a.test", wire.NoError)
	back := serveAt(t, gone.addr, good(t))
	mustAnswer(t, g, "b.test", wire.NoError)
	if n := back.count(); n != 0 {
		t.Errorf("the suspect was asked %d times before its time", n)
	}
	clk.move(200 * time.Millisecond)
	mustAnswer(t, g, "c.test", wire.NoError)
	waitFor(t, "the trial clears the target", func() bool { return !g.Status().Targets[0].Suspect })
	mustAnswer(t, g, "d.test", wire.NoError)
	if n := back.count(); n != 2 {
		t.Errorf("the server that is back was asked %d times", n)
	}
}

func TestLoneServerReturns(t *testing.T) {
	s := serve(t, silent)
	s.stop()
	clk := newClock()
	g := group(t, upstream.Config{Budget: 500 * time.Millisecond, Now: clk.now}, plain(s))
	for range 3 {
		if _, _, err := ask(t, g, "a.test"); err == nil {
			t.Fatal("a dead server answered")
		}
		clk.move(20 * time.Second)
	}
	serveAt(t, s.addr, good(t))
	mustAnswer(t, g, "a.test", wire.NoError)
	if g.Status().Targets[0].Suspect {
		t.Error("still suspect after a reply")
	}
}

func TestRemovedFailsOver(t *testing.T) {
	entered := make(chan struct{}, 1)
	leaving := serve(t, func(*request) { entered <- struct{}{} })
	staying := serve(t, good(t))
	cfg := inOrder
	cfg.RetryMin, cfg.RetryMax = 2*time.Second, 2*time.Second
	cfg.RemoveLinger = 50 * time.Millisecond
	g := group(t, cfg, plain(leaving, staying))
	done := make(chan time.Duration)
	go func() {
		_, took := mustAnswer(t, g, "a.test", wire.NoError)
		done <- took
	}()
	<-entered
	g.Update(plain(staying))
	if took := <-done; took > time.Second {
		t.Errorf("took %v: it waited for the retry time", took)
	}
	st := g.Status()
	if len(st.Targets) != 1 || st.Targets[0].Addr != staying.addr {
		t.Errorf("targets %+v", st.Targets)
	}
	waitFor(t, "the removed target's sockets close", func() bool { return g.Status().Open == 1 })
}

func TestRemovedMayStillAnswer(t *testing.T) {
	entered, removed := make(chan struct{}), make(chan struct{})
	s := serve(t, func(r *request) {
		close(entered)
		<-removed
		r.reply(t, dns.RcodeSuccess)
	})
	g := group(t, inOrder, plain(s))
	done := make(chan struct{})
	go func() {
		defer close(done)
		mustAnswer(t, g, "a.test", wire.NoError)
	}()
	<-entered
	g.Update(upstream.Table{})
	close(removed)
	<-done
}

func TestUpdateKeepsWhatStays(t *testing.T) {
	a, b := serve(t, good(t)), serve(t, good(t))
	g := group(t, upstream.Config{Sockets: 1, Policy: upstream.Sequential}, plain(a))
	mustAnswer(t, g, "a.test", wire.NoError)
	// a moves to another tier, gets a second family and a neighbour.
	m := a.member()
	m.AltUDP = netip.MustParseAddrPort("[::1]:9")
	table := plain(b)
	table.Tiers[upstream.NodeTier] = []upstream.Member{m}
	g.Update(table)
	mustAnswer(t, g, "b.test", wire.NoError)
	seen := a.requests(false)
	if len(seen) != 2 || seen[0].from != seen[1].from {
		t.Errorf("the target did not keep its socket: %d queries", len(seen))
	}
	if ts := g.Status().Targets[0]; ts.Sent != 2 || ts.Tier != upstream.NodeTier {
		t.Errorf("target %+v", ts)
	}
}

func TestNotReadyFailsOver(t *testing.T) {
	entered := make(chan struct{}, 1)
	a := serve(t, func(*request) { entered <- struct{}{} })
	b := serve(t, good(t))
	cfg := inOrder
	cfg.RetryMin, cfg.RetryMax = 2*time.Second, 2*time.Second
	g := group(t, cfg, plain(a, b))
	done := make(chan time.Duration)
	go func() {
		_, took := mustAnswer(t, g, "a.test", wire.NoError)
		done <- took
	}()
	<-entered
	table := plain(a, b)
	table.Tiers[upstream.ClusterTier][0].State = upstream.NotReady
	g.Update(table)
	if took := <-done; took > time.Second {
		t.Errorf("took %v: it waited for the retry time", took)
	}
}

func TestAltFamily(t *testing.T) {
	first := serveAt6(t)
	s := serve(t, good(t))
	tests := map[string]upstream.Member{
		"the first is invalid":     {AltUDP: s.addr, AltTCP: s.addr},
		"the first is unreachable": {UDP: first, TCP: first, AltUDP: s.addr, AltTCP: s.addr},
	}
	for name, m := range tests {
		t.Run(name, func(t *testing.T) {
			g := group(t, inOrder, upstream.Table{Tiers: [3][]upstream.Member{0: {m}}})
			_, took := mustAnswer(t, g, "a.test", wire.NoError)
			if took > 250*time.Millisecond {
				t.Errorf("took %v", took)
			}
			if st := g.Status(); len(st.Targets) != 1 || st.Targets[0].Suspect || st.Targets[0].InFlight != 0 {
				t.Errorf("targets %+v", st.Targets)
			}
		})
	}
}

// serveAt6 is an address that cannot be reached: from a documentation prefix,
// where this host has no way there.
func serveAt6(t *testing.T) netip.AddrPort {
	addr := netip.MustParseAddrPort("[2001:db8::1]:53")
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(addr))
	if err == nil {
		_ = c.Close()
		addr = netip.MustParseAddrPort("255.255.255.255:53")
		if c, err = net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(addr)); err == nil {
			_ = c.Close()
			t.Skip("this host has a way to everywhere")
		}
	}
	return addr
}

func TestTiers(t *testing.T) {
	node, zone, cluster, last := serve(t, silent), serve(t, good(t)), serve(t, good(t)), serve(t, good(t))
	g := group(t, upstream.Config{}, upstream.Table{
		Tiers: [3][]upstream.Member{{node.member()}, {zone.member()}, {cluster.member()}},
		Last:  []upstream.Member{last.member()},
	})
	mustAnswer(t, g, "a.test", wire.NoError)
	if st := g.Status(); st.Served != [4]uint64{0, 1, 0, 0} || last.count()+cluster.count() != 0 {
		t.Errorf("served %v", st.Served)
	}
}

func TestCancelled(t *testing.T) {
	g := group(t, upstream.Config{}, plain(serve(t, silent)))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, err := g.Exchange(ctx, nil, query(t, "a.test"))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if n := g.Status().Targets[0].InFlight; n != 0 {
		t.Errorf("%d in flight", n)
	}
}

func TestCloseEndsExchanges(t *testing.T) {
	entered := make(chan struct{}, 8)
	g := group(t, upstream.Config{}, plain(serve(t, func(*request) { entered <- struct{}{} })))
	done := make(chan error)
	go func() {
		_, _, err := ask(t, g, "a.test")
		done <- err
	}()
	<-entered
	_ = g.Close()
	if err := <-done; !errors.Is(err, upstream.ErrClosed) {
		t.Errorf("error %v", err)
	}
	if _, _, err := ask(t, g, "b.test"); !errors.Is(err, upstream.ErrClosed) {
		t.Errorf("error %v", err)
	}
	g.Update(upstream.Table{})
}

func TestReplyBytesAreTheCallers(t *testing.T) {
	g := group(t, upstream.Config{}, plain(serve(t, good(t))))
	dst := make([]byte, 7, 1024)
	first, err := g.Exchange(t.Context(), dst, query(t, "first.test"))
	if err != nil || &first.Msg[0] != &dst[:1][0] {
		t.Fatalf("the reply is not in dst (%v)", err)
	}
	kept := string(first.Msg)
	for range 20 {
		mustAnswer(t, g, "second.test", wire.NoError)
	}
	if string(first.Msg) != kept {
		t.Error("the reply's bytes changed after the exchange")
	}
}

// TestManyNames asks 200 names at once and has them answered in reverse order.
func TestManyNames(t *testing.T) {
	const names = 200
	for _, tcp := range []bool{false, true} {
		t.Run(map[bool]string{false: "UDP", true: "TCP"}[tcp], func(t *testing.T) {
			var mu sync.Mutex
			var waiting []*request
			s := serve(t, func(r *request) {
				mu.Lock()
				defer mu.Unlock()
				if waiting = append(waiting, r); len(waiting) < names {
					return
				}
				for i := len(waiting) - 1; i >= 0; i-- {
					waiting[i].reply(t, dns.RcodeSuccess)
				}
			})
			g := group(t, upstream.Config{
				ForceTCP: tcp, Sockets: 1, TCPConns: 1, TCPDepth: names,
				RetryMin: 3 * time.Second, RetryMax: 3 * time.Second,
			}, plain(s))
			var asking sync.WaitGroup
			for i := range names {
				asking.Go(func() { mustAnswer(t, g, nameOf(i), wire.NoError) })
			}
			asking.Wait()
		})
	}
}

func nameOf(i int) string {
	return string(rune('a'+i%26)) + string(rune('a'+i/26)) + ".test"
}

// TestUpdateStorm exists to feed the race detector. One good server is in every
// table.
func TestUpdateStorm(t *testing.T) {
	a, b, c := serve(t, good(t)), serve(t, good(t)), serve(t, coded(t, dns.RcodeServerFailure))
	g := group(t, upstream.Config{
		SocketQueries: 7, RemoveLinger: time.Millisecond,
	}, plain(a, b, c))
	var stop atomic.Bool
	var asking sync.WaitGroup
	for i := range 8 {
		asking.Go(func() {
			for !stop.Load() {
				mustAnswer(t, g, nameOf(i), wire.NoError)
			}
		})
	}
	tables := []upstream.Table{plain(a, b, c), plain(b, a), plain(a), plain(c, a), plain(a, b)}
	for i := range 100 {
		g.Update(tables[i%len(tables)])
		_ = g.Status()
		time.Sleep(10 * time.Millisecond)
	}
	stop.Store(true)
	asking.Wait()
}
