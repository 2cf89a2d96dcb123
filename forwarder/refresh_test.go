package forwarder_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder"
	"github.com/nodens-dns/nodens/forwarder/dnstest"
)

func prefetching(hits uint32) func(*forwarder.Config) {
	return func(c *forwarder.Config) { c.Routes[0].Policy.Prefetch = hits }
}

// inBubble runs a test in false time, which the rig's clock follows.
func inBubble(t *testing.T, reply dnstest.Answer, test func(t *testing.T, r *rig), change ...func(*forwarder.Config)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		change = append(change, func(c *forwarder.Config) { c.Now = func() time.Duration { return time.Since(start) } })
		r := newRig(t, reply, change...)
		r.received = func() time.Duration { return time.Since(start) }
		defer func() { _ = r.Close() }()
		test(t, r)
	})
}

// TestPrefetchTakesPopularity asks so and so often, then once in the last tenth.
func TestPrefetchTakesPopularity(t *testing.T) {
	for _, tt := range []struct {
		name  string
		hits  int           // before the last tenth of 30 s
		after time.Duration // of the last hit
		want  int           // questions to the servers
	}{
		{"popular", 3, 27 * time.Second, 2},
		{"too early", 10, 26 * time.Second, 1},
		{"unpopular", 2, 27 * time.Second, 1},
		{"unpopular at the end", 2, 29 * time.Second, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, dnstest.Addresses(1), func(t *testing.T, r *rig) {
				m := dnstest.Question("a.test.", dns.TypeA)
				r.exchange(m, forwarder.UDP)
				for range tt.hits {
					r.exchange(m, forwarder.UDP)
				}
				time.Sleep(tt.after)
				got, hit := r.exchange(m, forwarder.UDP)
				if !hit || got.Answer[0].Header().Ttl != uint32((30*time.Second-tt.after)/time.Second) {
					t.Errorf("hit %v, %v", hit, got)
				}
				synctest.Wait()
				if n := r.server.Asked(); n != tt.want {
					t.Errorf("%d questions to the servers, want %d", n, tt.want)
				}
			}, prefetching(4))
		})
	}
}

// TestPrefetchOnceForAll has a thousand clients in the window while the servers
// take their time.
func TestPrefetchOnceForAll(t *testing.T) {
	inBubble(t, dnstest.Addresses(1), func(t *testing.T, r *rig) {
		m := dnstest.Question("a.test.", dns.TypeA)
		m.Id = 4711
		r.exchange(m, forwarder.UDP)
		time.Sleep(28 * time.Second)
		release := r.server.Hold()
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() {
				if got, hit := r.exchange(m, forwarder.UDP); !hit || got.Id != 4711 {
					t.Errorf("hit %v, %v", hit, got)
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		if n := r.server.Asked(); n != 2 {
			t.Errorf("%d questions to the servers", n)
		}
		time.Sleep(2 * time.Second)
		// The answer has ended: this client waits for the question under way.
		wg.Go(func() {
			if got, _ := r.exchange(m, forwarder.UDP); got.Answer[0].Header().Ttl != 30 {
				t.Errorf("got %v", got)
			}
		})
		synctest.Wait()
		release()
		wg.Wait()
		if s := r.Stats(); r.server.Asked() != 2 || s.Prefetched != 1 || s.Renewed != 1 {
			t.Errorf("%d questions, %+v", r.server.Asked(), s)
		}
	}, prefetching(1))
}

// TestPrefetchYieldsToMisses has a route that is half full.
func TestPrefetchYieldsToMisses(t *testing.T) {
	inBubble(t, dnstest.Addresses(1), func(t *testing.T, r *rig) {
		m := dnstest.Question("a.test.", dns.TypeA)
		r.exchange(m, forwarder.UDP)
		time.Sleep(28 * time.Second)
		release := r.server.Hold()
		var wg sync.WaitGroup
		wg.Go(func() { r.exchange(dnstest.Question("b.test.", dns.TypeA), forwarder.UDP) })
		synctest.Wait()
		r.exchange(m, forwarder.UDP)
		synctest.Wait()
		if s := r.Stats(); s.Unfetched != 1 || s.Prefetched != 0 {
			t.Errorf("%+v", s)
		}
		release()
		wg.Wait()
		r.exchange(m, forwarder.UDP)
		synctest.Wait()
		if s := r.Stats(); s.Prefetched != 1 {
			t.Errorf("not tried again: %+v", s)
		}
	}, prefetching(1), func(c *forwarder.Config) { c.Routes[0].MaxInFlight = 2 })
}

// TestDenialUnderLoadEnds has a name appear while it is asked for all the time.
func TestDenialUnderLoadEnds(t *testing.T) {
	no := dnstest.Records(t, dns.RcodeNameError, "---", "test. 5 IN SOA ns.test. root.test. 1 3600 600 86400 5")
	inBubble(t, no, func(t *testing.T, r *rig) {
		start := time.Now()
		for range 50 * 7 {
			if time.Since(start) > 3*time.Second {
				r.server.Script(dnstest.Addresses(1))
			}
			got, _ := r.exchange(dnstest.Question("a.test.", dns.TypeA), forwarder.UDP)
			if since := time.Since(start); since > 6*time.Second && got.Rcode != 0 {
				t.Fatalf("denied after %v", since)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}, prefetching(1))
}

// TestLiveAnswerIsNotHidden has prefetching meet an error that ends after the
// answer.
func TestLiveAnswerIsNotHidden(t *testing.T) {
	ten := dnstest.Records(t, 0, "a.test. 10 IN A 10.0.0.1")
	inBubble(t, ten, func(t *testing.T, r *rig) {
		for second := range 20 {
			r.server.Script(ten)
			if second >= 8 && second < 12 {
				r.server.Script(dnstest.RCode(dns.RcodeServerFailure))
			}
			got, _ := r.exchange(dnstest.Question("a.test.", dns.TypeA), forwarder.UDP)
			if got.Rcode != 0 || len(got.Answer) != 1 {
				t.Errorf("second %d: %v", second, got)
			}
			if second >= 17 && got.Answer[0].Header().Ttl > 10 {
				t.Errorf("second %d: the servers are well, and the answer is still an ended one", second)
			}
			time.Sleep(time.Second)
		}
	}, prefetching(1))
}

// TestHealthyServersAreAskedOncePerLife has a client each second for a minute.
func TestHealthyServersAreAskedOncePerLife(t *testing.T) {
	inBubble(t, dnstest.Records(t, 0, "a.test. 5 IN A 10.0.0.1"), func(t *testing.T, r *rig) {
		for second := range 60 {
			got, _ := r.exchange(dnstest.Question("a.test.", dns.TypeA), forwarder.UDP)
			if ttl := got.Answer[0].Header().Ttl; ttl != uint32(5-second%5) {
				t.Errorf("second %d: TTL %d", second, ttl)
			}
			time.Sleep(time.Second)
		}
		if n := r.server.Asked(); n != 12 {
			t.Errorf("asked %d times in 60 s for a TTL of 5 s", n)
		}
	})
}

// TestEveryKindStandsIn has answers of every kind end while no server answers.
func TestEveryKindStandsIn(t *testing.T) {
	for kind, rcode := range map[string]int{"answer": 0, "no data": 0, "no name": dns.RcodeNameError} {
		t.Run(kind, func(t *testing.T) {
			r := newRig(t, kinds(t)[kind])
			m := edns(dnstest.Question("a.test.", dns.TypeA), 1232, false)
			r.exchange(m, forwarder.UDP)
			r.turn(time.Hour)
			r.server.Script(dnstest.Silent)
			got, _ := r.exchange(m, forwarder.UDP)
			want := dns.ExtendedErrorCodeStaleAnswer
			if kind == "no name" {
				want = dns.ExtendedErrorCodeStaleNXDOMAINAnswer
			}
			if got.Rcode != rcode || extended(got) != want || got.Id != m.Id {
				t.Errorf("got %v", got)
			}
		})
	}
}

// TestFailureDoesNotStandIn has a failure end, and then another answer.
func TestFailureDoesNotStandIn(t *testing.T) {
	r := newRig(t, dnstest.RCode(dns.RcodeServerFailure))
	m := dnstest.Question("a.test.", dns.TypeA)
	r.exchange(m, forwarder.UDP)
	r.turn(10 * time.Second)
	r.server.Script(kinds(t)["no name"])
	for range 2 {
		if got, _ := r.exchange(m, forwarder.UDP); got.Rcode != dns.RcodeNameError {
			t.Errorf("got %v", got)
		}
		r.turn(time.Second)
	}
}

// TestRefreshesDoNotPileUp has servers that are dead and a client a hundred
// times a second.
func TestRefreshesDoNotPileUp(t *testing.T) {
	inBubble(t, dnstest.Records(t, 0, "a.test. 10 IN A 10.0.0.1"), func(t *testing.T, r *rig) {
		m := dnstest.Question("a.test.", dns.TypeA)
		r.exchange(m, forwarder.UDP)
		r.server.Script(dnstest.Silent)
		for range 30 * 100 {
			if got, _ := r.exchange(m, forwarder.UDP); got.Rcode != 0 {
				t.Fatalf("got %v", got)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if n := r.server.Asked(); n > 1+6 {
			t.Errorf("asked %d times in 30 s, with 5 s between", n)
		}
	}, prefetching(1))
}

// TestClose has a question under way that no client waits for.
func TestClose(t *testing.T) {
	inBubble(t, dnstest.Addresses(1), func(t *testing.T, r *rig) {
		m := dnstest.Question("a.test.", dns.TypeA)
		r.exchange(m, forwarder.UDP)
		time.Sleep(time.Minute)
		release := r.server.Hold()
		if got, _ := r.exchange(m, forwarder.UDP); len(got.Answer) != 1 {
			t.Errorf("while the servers think: %v", got)
		}
		closed := make(chan struct{})
		go func() {
			_ = r.Close()
			close(closed)
		}()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("Close does not wait")
		default:
		}
		release()
		<-closed
		time.Sleep(time.Minute)
		if got, _ := r.exchange(m, forwarder.UDP); len(got.Answer) != 1 || r.server.Asked() != 2 {
			t.Errorf("after Close: asked %d times, %v", r.server.Asked(), got)
		}
		if got, _ := r.exchange(dnstest.Question("b.test.", dns.TypeA), forwarder.UDP); len(got.Answer) != 1 {
			t.Errorf("after Close, a new name: %v", got)
		}
	})
}

// TestOutageAnswersFromMemory sees that while nobody is to be asked, ended
// answers cost no more than live ones.
func TestOutageAnswersFromMemory(t *testing.T) {
	r := newRig(t, dnstest.Addresses(1), func(c *forwarder.Config) { c.Routes[0].Policy.ShareNXDomain = true })
	m := edns(dnstest.Question("a.test.", dns.TypeA), 1232, false)
	r.exchange(m, forwarder.UDP)
	r.turn(time.Minute)
	r.server.Script(dnstest.Silent)
	if _, hit := r.exchange(m, forwarder.UDP); hit {
		t.Error("nobody was asked")
	}
	q, dst := dnstest.Pack(t, m), make([]byte, 0, 4096)
	if n := testing.AllocsPerRun(100, func() {
		if _, v := r.Lookup(dst, q, r.peer(0)); v != forwarder.Answered {
			t.Fatalf("verdict %d", v)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	got, hit := r.exchange(m, forwarder.UDP)
	if !hit || len(got.Answer) != 1 || got.Answer[0].Header().Ttl != 30 || extended(got) != dns.ExtendedErrorCodeStaleAnswer {
		t.Errorf("hit %v, %v", hit, got)
	}
	if n := zone(r.Stats(), ".").Responses[forwarder.FromStale][0]; n < 100 {
		t.Errorf("%d counted as stale", n)
	}
	r.turn(5 * time.Second)
	if _, hit := r.exchange(m, forwarder.UDP); hit {
		t.Error("nobody is asked after the recheck time")
	}
}

// TestNobodyWaitsInTheDark has an answer end while servers are slow, gone, and
// back. Only when they are known to be gone, it is given without a wait.
func TestNobodyWaitsInTheDark(t *testing.T) {
	inBubble(t, dnstest.Addresses(1), func(t *testing.T, r *rig) {
		ended := dnstest.Question("a.test.", dns.TypeA)
		r.exchange(ended, forwarder.UDP)
		waits := func() time.Duration {
			time.Sleep(time.Minute)
			release := r.server.Hold()
			began := time.Now()
			if got, _ := r.exchange(ended, forwarder.UDP); len(got.Answer) != 1 {
				t.Errorf("got %v", got)
			}
			took := time.Since(began)
			release()
			synctest.Wait()
			return took
		}
		ask := func(names string) {
			for _, c := range names {
				r.exchange(dnstest.Question(string(c)+".new.test.", dns.TypeA), forwarder.UDP)
			}
		}
		if took := waits(); took != time.Second {
			t.Errorf("with servers that are slow: %v", took)
		}
		r.server.Script(dnstest.Silent)
		ask("abcdefg")
		if took := waits(); took != time.Second {
			t.Errorf("after seven failures: %v", took)
		}
		if took := waits(); took != 0 { // its own refresh was the eighth
			t.Errorf("with servers that are gone: %v", took)
		}
		r.server.Script(dnstest.Addresses(1))
		ask("h")
		if took := waits(); took != time.Second {
			t.Errorf("with servers that are back: %v", took)
		}
	})
}
