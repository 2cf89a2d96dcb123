package forwarder_test

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder"
	"github.com/nodens-dns/nodens/forwarder/cache"
	"github.com/nodens-dns/nodens/forwarder/dnstest"
	"github.com/nodens-dns/nodens/forwarder/upstream"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// TestLateFollowers come to a flight that will have lasted 4 s in vain. The next
// one is answered.
func TestLateFollowers(t *testing.T) {
	for _, tt := range []struct {
		name  string
		port  uint16        // of the followers; the leader's is 4000
		after time.Duration // they come
		lasts time.Duration
		rcode int
		asked int
	}{
		{"near the end", 4001, 3900 * time.Millisecond, 4 * time.Second, dns.RcodeSuccess, 2},
		{"before", 4001, 2900 * time.Millisecond, 4 * time.Second, dns.RcodeServerFailure, 1},
		{"a failure that was told soon", 4001, 400 * time.Millisecond, 410 * time.Millisecond, dns.RcodeServerFailure, 1},
		{"the leader's client asks again", 4000, 3900 * time.Millisecond, 4 * time.Second, dns.RcodeServerFailure, 1},
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
						if got := r.rcodeFrom(tt.port, m); got != tt.rcode {
							t.Errorf("a follower got %s", dns.RcodeToString[got])
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

// rcodeFrom is the code of the reply to a client with a port.
func (r *rig) rcodeFrom(port uint16, m *dns.Msg) int {
	from := r.peer(forwarder.UDP)
	from.Client = netip.AddrPortFrom(from.Client.Addr(), port)
	reply, _ := r.askFrom(from, dnstest.Pack(r.t, m))
	return dnstest.Unpack(r.t, reply).Rcode
}

// silence is a group whose servers never answer.
type silence struct {
	budget time.Duration
	asked  atomic.Int32
}

func (s *silence) Exchange(context.Context, []byte, *wire.Query) (wire.Reply, error) {
	s.asked.Add(1)
	time.Sleep(s.budget)
	return wire.Reply{}, upstream.ErrBudget
}

// TestSilentServersAreTold has clients come near the end of a flight, and ask again
// near the end of the one that it brought them: there is no third.
func TestSilentServersAreTold(t *testing.T) {
	servers := &silence{budget: 3500 * time.Millisecond}
	inBubble(t, dnstest.Silent, func(t *testing.T, r *rig) {
		m, began := dnstest.Question("a.test.", dns.TypeA), time.Now()
		var clients sync.WaitGroup
		for _, c := range []struct {
			port         uint16
			asks, isTold time.Duration
		}{
			{4000, 0, 3500 * time.Millisecond},
			{4001, 3 * time.Second, 7 * time.Second},
			{4000, 3100 * time.Millisecond, 3500 * time.Millisecond},
			{4002, 3200 * time.Millisecond, 7 * time.Second},
			{4001, 6500 * time.Millisecond, 7 * time.Second},
			{4002, 6600 * time.Millisecond, 7 * time.Second},
		} {
			clients.Go(func() {
				time.Sleep(c.asks)
				rcode := r.rcodeFrom(c.port, m)
				if told := time.Since(began); rcode != dns.RcodeServerFailure || told != c.isTold {
					t.Errorf("port %d, asked after %v: %s after %v, want it after %v", c.port, c.asks, dns.RcodeToString[rcode], told, c.isTold)
				}
			})
		}
		clients.Wait()
		if n := servers.asked.Load(); n != 2 {
			t.Errorf("%d flights", n)
		}
	}, func(c *forwarder.Config) { c.Routes[0].Group = servers })
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
