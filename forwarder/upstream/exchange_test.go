package upstream_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/upstream"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// patient waits for a server as long as a slow machine may take, and sends no
// hedges meanwhile.
var patient = upstream.Config{
	RetryMin: 10 * time.Second, RetryMax: 10 * time.Second, Budget: 30 * time.Second, PacketRate: 1_000_000,
}

// soon is less than patient's retry time: what took less did not wait for it.
const soon = 9 * time.Second

// inOrder is patient, and asks the servers in the table's order.
var inOrder = upstream.Config{
	Policy: upstream.Sequential, RetryMin: patient.RetryMin, RetryMax: patient.RetryMax,
	Budget: patient.Budget, PacketRate: patient.PacketRate,
}

func TestAnswer(t *testing.T) {
	s := serve(t, good(t))
	g := group(t, patient, plain(s))
	mustAnswer(t, g, "a.test", wire.NoError)

	st := g.Status()
	if st.Exchanges != 1 || st.Attempts != 1 || st.Retries != 0 || st.Served[upstream.ClusterTier] != 1 {
		t.Errorf("status %+v", st)
	}
	ts := st.Targets[0]
	if ts.Addr != s.addr || ts.Sent != 1 || ts.InFlight != 0 || ts.SRTT == 0 || ts.Out {
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
		"YXDOMAIN is an answer":                 {[]int{6, 0}, wire.YXDomain, []int{1, 0}},
		"YXDOMAIN after a failure":              {[]int{2, 6}, wire.YXDomain, []int{1, 1}},
		"all fail: the last is told":            {[]int{2, 5}, wire.Refused, []int{1, 1}},
		"one server is not asked twice":         {[]int{2}, wire.ServFail, []int{1}},
		"two SERVFAILs are believed":            {[]int{2, 2, 0}, wire.ServFail, []int{1, 1, 0}},
		"three of four are asked":               {[]int{5, 5, 5, 0}, wire.Refused, []int{1, 1, 1, 0}},
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
			if took > soon {
				t.Errorf("took %v: it waited for the retry time", took)
			}
			for i, s := range servers {
				if n := s.count(); n != tc.asked[i] {
					t.Errorf("server %d was asked %d times, want %d", i, n, tc.asked[i])
				}
			}
			for _, ts := range g.Status().Targets {
				if ts.Out || ts.Misses != 0 {
					t.Errorf("a reply made %v suspect", ts.Addr)
				}
			}
		})
	}
}

func TestSilentServerIsRetriedElsewhere(t *testing.T) {
	dead, alive := serve(t, silent), serve(t, good(t))
	cfg := inOrder
	cfg.RetryMin, cfg.RetryMax, cfg.PacketRate = 50*time.Millisecond, 50*time.Millisecond, 0
	g := group(t, cfg, plain(dead, alive))
	// Three misses make it suspect, of which those do not count in which we got no
	// CPU; from then on it gets probes only, unless the other is late, too.
	named := func() (n uint64) {
		for _, r := range dead.requests(false) {
			if strings.Contains(string(r.msg), "\x01a\x04test") {
				n++
			}
		}
		return n
	}
	avoided := func() bool { ts := g.Status().Targets[0]; return ts.Suspect || ts.Out }
	waitFor(t, "three misses", func() bool {
		mustAnswer(t, g, "a.test", wire.NoError)
		return avoided()
	})
	if n := named(); n < 3 {
		t.Errorf("suspect after %d questions", n)
	}
	before := named()
	for range 10 {
		mustAnswer(t, g, "a.test", wire.NoError)
	}
	if n := named() - before; n >= 10 {
		t.Errorf("10 queries later a suspect server was asked %d times more", n)
	}
	waitFor(t, "the probes eject it", func() bool { return g.Status().Targets[0].Out })
}

// A copy goes to a second server before the first is late, and its reply is the client's.
func TestHedgeGoesElsewhere(t *testing.T) {
	cfg := inOrder
	cfg.PacketRate = 0 // which would forbid it
	g := group(t, cfg, plain(serve(t, silent), serve(t, good(t))))
	_, took := mustAnswer(t, g, "a.test", wire.NoError)
	if st := g.Status(); took > soon || st.Hedges[upstream.ClusterTier] != 1 || st.Retries != 1 {
		t.Errorf("took %v: %d hedges, %d retries", took, st.Hedges[upstream.ClusterTier], st.Retries)
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
	g := group(t, inOrder, plain(gone, alive))
	_, took := mustAnswer(t, g, "a.test", wire.NoError)
	if took > soon {
		t.Errorf("took %v: it waited for the retry time", took)
	}
	ts := g.Status().Targets[0]
	if !ts.Out || ts.HardErrors != 1 || ts.InFlight != 0 {
		t.Errorf("target %+v", ts)
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

// TestRepliesAtOnce has the replies to a few queries come at once on one socket,
// each twice, again and again: no reply may be left unread while it is waited for.
func TestRepliesAtOnce(t *testing.T) {
	const most, rounds = 4, 500
	var mu sync.Mutex
	var waiting []*request
	together := most
	s := serve(t, func(r *request) {
		mu.Lock()
		defer mu.Unlock()
		if waiting = append(waiting, r); len(waiting) < together {
			return
		}
		for _, w := range waiting {
			w.reply(t, dns.RcodeSuccess)
			w.reply(t, dns.RcodeSuccess)
		}
		waiting = nil
	})
	cfg := inOrder
	cfg.Sockets = 1
	g := group(t, cfg, plain(s))
	for round := range rounds {
		mu.Lock()
		together = 1 + round%most
		mu.Unlock()
		var asking sync.WaitGroup
		for i := range together {
			asking.Go(func() {
				if _, took := mustAnswer(t, g, nameOf(i), wire.NoError); took > soon {
					t.Errorf("round %d: a reply was read after %v", round, took)
				}
			})
		}
		asking.Wait()
		if t.Failed() {
			return
		}
	}
}

func nameOf(i int) string {
	return string(rune('a'+i%26)) + string(rune('a'+i/26)) + ".test"
}

func TestIPv6(t *testing.T) {
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv6loopback})
	if err != nil {
		t.Skipf("no IPv6 on loopback: %v", err)
	}
	_ = c.Close()
	s := serveAt(t, netip.MustParseAddrPort("[::1]:0"), large(t))
	g := group(t, inOrder, plain(s))
	if r, _ := mustAnswer(t, g, "a.test", wire.NoError); r.TC {
		t.Error("TC is set")
	}
}
