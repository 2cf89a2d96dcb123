package forwarder_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder"
	"github.com/nodens-dns/nodens/forwarder/cache"
	"github.com/nodens-dns/nodens/forwarder/dnstest"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// TestLateFollowers come to a flight that will have lasted 4 s in vain. The next
// one is answered.
func TestLateFollowers(t *testing.T) {
	for _, tt := range []struct {
		name  string
		after time.Duration // the followers come
		lasts time.Duration
		rcode int
		asked int
	}{
		{"near the end", 3900 * time.Millisecond, 4 * time.Second, dns.RcodeSuccess, 2},
		{"before", 2900 * time.Millisecond, 4 * time.Second, dns.RcodeServerFailure, 1},
		{"a failure that was told soon", 400 * time.Millisecond, 410 * time.Millisecond, dns.RcodeServerFailure, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, dnstest.Silent, func(t *testing.T, r *rig) {
				release := r.server.Hold()
				m := dnstest.Question("a.test.", dns.TypeA)
				var clients sync.WaitGroup
				clients.Go(func() {
					if got, _ := r.exchange(m, forwarder.UDP); got.Rcode != dns.RcodeServerFailure {
						t.Errorf("the leader got %v", got)
					}
				})
				time.Sleep(tt.after)
				for range 3 {
					clients.Go(func() {
						if got, _ := r.exchange(m, forwarder.UDP); got.Rcode != tt.rcode {
							t.Errorf("a follower got %v", got)
						}
					})
				}
				time.Sleep(tt.lasts - tt.after)
				synctest.Wait()
				next := r.server.Hold() // the next question waits for the script
				release()
				synctest.Wait()
				r.server.Script(dnstest.Addresses(1))
				next()
				clients.Wait()
				if n := r.server.Asked(); n != tt.asked {
					t.Errorf("%d questions to the servers, want %d", n, tt.asked)
				}
			})
		})
	}
}

// TestFollowersOfARouteAreBounded has the followers of many names take no more
// than half as many places as the route may have.
func TestFollowersOfARouteAreBounded(t *testing.T) {
	r := newRig(t, dnstest.Addresses(1), func(c *forwarder.Config) { c.Routes[0].MaxInFlight = 8 })
	release := r.server.Hold()
	var clients sync.WaitGroup
	ask := func(name string) {
		clients.Go(func() { r.ask(dnstest.Pack(t, dnstest.Question(name, dns.TypeA)), forwarder.UDP) })
	}
	for i := range 4 {
		ask(fmt.Sprintf("n%d.test.", i))
	}
	waitFor(t, func() bool { return r.server.Asked() == 4 })
	for i := range 12 {
		ask(fmt.Sprintf("n%d.test.", i%4))
	}
	waitFor(t, func() bool { return r.Stats().Shared+r.Stats().Surplus == 12 })
	if s := r.Stats(); s.Shared != 4 || s.Surplus != 8 {
		t.Errorf("%d wait, %d were sent away", s.Shared, s.Surplus)
	}
	release()
	clients.Wait()
	if got, _ := r.exchange(dnstest.Question("n0.test.", dns.TypeA), forwarder.UDP); got.Rcode != dns.RcodeSuccess {
		t.Errorf("afterwards: %v", got)
	}
}

// TestPrefetchThatCannotBegin leaves the answer as it was, so that it can be tried
// again.
func TestPrefetchThatCannotBegin(t *testing.T) {
	store := newCache(t, cache.Config{Bytes: 1 << 20})
	inBubble(t, dnstest.Addresses(1), func(t *testing.T, r *rig) {
		m := dnstest.Question("a.test.", dns.TypeA)
		r.exchange(m, forwarder.UDP)
		time.Sleep(28 * time.Second)
		_ = r.Close()
		if _, hit := r.exchange(m, forwarder.UDP); !hit {
			t.Error("no hit")
		}
		if s := r.Stats(); s.Prefetched != 0 || s.Renewed != 0 {
			t.Errorf("something began: %+v", s)
		}
		if e := entryOf(t, store, m); e == nil || e.Refreshing.Load() {
			t.Error("the answer is marked as being asked for again")
		}
	}, prefetching(1), func(c *forwarder.Config) { c.Cache = store })
}

// entryOf is what the cache has for a question.
func entryOf(t *testing.T, c *cache.Cache, m *dns.Msg) *cache.Entry {
	t.Helper()
	q, _ := wire.ParseQuery(dnstest.Pack(t, m))
	key := q.AppendKey(nil)
	return c.Get(c.Hash(key), key)
}
