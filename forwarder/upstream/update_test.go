package upstream_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/upstream"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

func TestRemovedFailsOver(t *testing.T) {
	entered := make(chan struct{}, 1)
	leaving := serve(t, func(*request) { entered <- struct{}{} })
	staying := serve(t, good(t))
	cfg := inOrder
	cfg.RemoveLinger = 1500 * time.Millisecond
	g := group(t, cfg, plain(leaving, staying))
	done := make(chan time.Duration)
	go func() {
		_, took := mustAnswer(t, g, "a.test", wire.NoError)
		done <- took
	}()
	<-entered
	g.Update(plain(staying))
	if took := <-done; took > soon {
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
	cfg := inOrder
	cfg.RemoveLinger = time.Minute
	g := group(t, cfg, plain(s))
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
	g := group(t, inOrder, plain(a, b))
	done := make(chan time.Duration)
	go func() {
		_, took := mustAnswer(t, g, "a.test", wire.NoError)
		done <- took
	}()
	<-entered
	table := plain(a, b)
	table.Tiers[upstream.ClusterTier][0].State = upstream.NotReady
	g.Update(table)
	if took := <-done; took > soon {
		t.Errorf("took %v: it waited for the retry time", took)
	}
}

func TestAltFamily(t *testing.T) {
	// A link-local address on the loopback link, which has none.
	first := netip.MustParseAddrPort("[fe80::1%lo]:53")
	s := serve(t, good(t))
	tests := map[string]upstream.Member{
		"the first is invalid":     {AltUDP: s.addr, AltTCP: s.addr},
		"the first is unreachable": {UDP: first, TCP: first, AltUDP: s.addr, AltTCP: s.addr},
	}
	for name, m := range tests {
		t.Run(name, func(t *testing.T) {
			g := group(t, inOrder, upstream.Table{Tiers: [3][]upstream.Member{0: {m}}})
			for range 2 {
				if _, took := mustAnswer(t, g, "a.test", wire.NoError); took > soon {
					t.Errorf("took %v", took)
				}
			}
			st := g.Status()
			if len(st.Targets) != 1 || st.Targets[0].Out || st.Targets[0].InFlight != 0 || st.Attempts != 2 {
				t.Errorf("%d attempts, targets %+v", st.Attempts, st.Targets)
			}
		})
	}
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

func TestCloseEndsExchanges(t *testing.T) {
	entered := make(chan struct{}, 8)
	g := group(t, upstream.Config{}, plain(serve(t, func(*request) { entered <- struct{}{} })))
	closeWhileAsking(t, g, entered)
	if _, _, err := ask(t, g, "b.test"); !errors.Is(err, upstream.ErrClosed) {
		t.Errorf("error %v", err)
	}
	g.Update(upstream.Table{})
}

// closeWhileAsking closes a group once a question has come as far as it ever gets, which
// ends it.
func closeWhileAsking(t *testing.T, g *upstream.Group, entered <-chan struct{}) {
	t.Helper()
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
}

// TestCloseEndsDials has connections that neither come about nor fail.
func TestCloseEndsDials(t *testing.T) {
	entered := make(chan struct{}, 8)
	g := group(t, upstream.Config{
		ForceTCP: true, TCPDial: time.Hour, Budget: time.Hour, RetryMin: time.Hour, RetryMax: time.Hour,
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			entered <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		},
	}, plain(serve(t, good(t))))
	closeWhileAsking(t, g, entered)
}

// TestUpdateStorm exists to feed the race detector. One good server is in every
// table.
func TestUpdateStorm(t *testing.T) {
	a, b, c := serve(t, good(t)), serve(t, good(t)), serve(t, coded(t, dns.RcodeServerFailure))
	g := group(t, upstream.Config{
		SocketQueries: 7, RemoveLinger: time.Millisecond,
		RetryMin: time.Second, RetryMax: time.Second,
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
