package search

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/bench/names"
	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/forwarder"
	"github.com/nodens-dns/nodens/forwarder/cache"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

const (
	trip = time.Millisecond // to any server and back
	rate = 200              // lookups a second
)

// zoneGroup answers from the mix's zone after a trip.
type zoneGroup struct {
	zone  *names.Zone
	asked atomic.Int64
}

func (g *zoneGroup) Exchange(_ context.Context, _ []byte, q *wire.Query) (wire.Reply, error) {
	g.asked.Add(1)
	time.Sleep(trip)
	says := g.zone.Answer(q.Name(), uint16(q.Type))
	m := new(dns.Msg)
	if err := m.Unpack(wire.AppendQuery(nil, q, 1, 0)); err != nil {
		return wire.Reply{}, err
	}
	m.Response, m.Rcode = true, int(says.RCode)
	owner := m.Question[0].Name
	switch {
	case !says.Addr.IsValid():
		apex := "example."
		if _, cluster := g.zone.Authority(q.Name()); cluster {
			apex = "cluster.local."
		}
		m.Ns = []dns.RR{&dns.SOA{Hdr: dns.RR_Header{Name: apex, Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: says.TTL}, Ns: "ns." + apex, Mbox: "h." + apex, Minttl: says.TTL}}
	case says.Addr.Is4():
		m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: owner, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: says.TTL}, A: says.Addr.AsSlice()}}
	default:
		m.Answer = []dns.RR{&dns.AAAA{Hdr: dns.RR_Header{Name: owner, Rrtype: dns.TypeAAAA, Class: dns.ClassINET, Ttl: says.TTL}, AAAA: says.Addr.AsSlice()}}
	}
	b, err := m.Pack()
	if err != nil {
		return wire.Reply{}, err
	}
	return wire.ParseReply(b)
}

// lookup is the queries of one, step by step: A and AAAA of each name.
type lookup struct {
	steps   [][2][]byte
	outside bool
}

// draw takes lookups out of the mix. The last name of each is the one that exists.
func draw(t *testing.T, mix *names.Mix, n int) []lookup {
	t.Helper()
	stream := mix.Stream(1)
	list := make([]lookup, 0, n)
	for len(list) < n {
		var l lookup
		for found := false; !found; {
			var step [2][]byte
			for i := range step {
				q := stream.Next()
				header := []byte{0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}
				step[i] = append(header, q.Question...)
				found = q.Want.RCode == names.NoError && q.Want.Class != names.Bare
				l.outside = q.Want.Class == names.External || q.Want.Class == names.Stable
			}
			l.steps = append(l.steps, step)
		}
		list = append(list, l)
	}
	return list
}

// measured is what one play came to.
type measured struct {
	cluster, outside float64 // questions to servers for each lookup
	mean, p99, last  time.Duration
}

func newForwarder(t *testing.T, groups [2]*zoneGroup, s forwarder.Search, share bool, now func() time.Duration) *forwarder.Forwarder {
	t.Helper()
	store, err := cache.New(cache.Config{Bytes: 32 << 20})
	if err != nil {
		t.Fatal(err)
	}
	s.Domain = "cluster.local"
	policy := cache.Policy{
		MaxTTL: 30 * time.Second, MaxNegativeTTL: 5 * time.Second, FailureTTL: time.Second, ServFailTTL: 5 * time.Second,
		MaxStale: time.Hour, StaleTTL: 30 * time.Second, Recheck: 5 * time.Second, Prefetch: 5,
	}
	rest := policy
	rest.MaxTTL, rest.MaxNegativeTTL, rest.StaleOnError = time.Hour, 30*time.Second, true
	policy.ShareNXDomain = share
	f, err := forwarder.New(forwarder.Config{
		Routes: []forwarder.Route{
			{Zones: []string{"cluster.local"}, Group: groups[0], Policy: policy, Search: s, MaxInFlight: 2048},
			{Zones: []string{"."}, Group: groups[1], Policy: rest, MaxInFlight: 2048},
		},
		Cache: store, Listeners: 1, Stripes: 1, UDPSize: 1232, MaxFollowers: 1000, Now: now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// play has the lookups made at their rate, and takes the times of those of names
// outside.
func play(t *testing.T, mix *names.Mix, list []lookup, s forwarder.Search, share bool) (m measured) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		now := func() time.Duration { return time.Since(start) }
		groups := [2]*zoneGroup{{zone: mix.Zone()}, {zone: mix.Zone()}}
		f := newForwarder(t, groups, s, share, now)
		took := make([]time.Duration, len(list))
		var clients sync.WaitGroup
		for i, l := range list {
			clients.Go(func() {
				time.Sleep(time.Duration(i) * time.Second / rate)
				began := now()
				for _, step := range l.steps {
					ask(f, step, now)
				}
				took[i] = now() - began
			})
		}
		clients.Wait()
		_ = f.Close()
		var times []time.Duration
		var sum time.Duration
		for i, l := range list {
			if l.outside {
				times, sum = append(times, took[i]), sum+took[i]
			}
		}
		slices.Sort(times)
		n := float64(len(list))
		m = measured{cluster: float64(groups[0].asked.Load()) / n, outside: float64(groups[1].asked.Load()) / n}
		m.mean, m.p99, m.last = sum/time.Duration(len(times)), times[len(times)*99/100], times[len(times)-1]
	})
	return m
}

// ask asks both questions of a step at once.
func ask(f *forwarder.Forwarder, step [2][]byte, now func() time.Duration) {
	var both sync.WaitGroup
	for _, query := range step {
		both.Go(func() {
			from := forwarder.Peer{Client: netip.MustParseAddrPort("127.0.0.1:4000"), Received: now()}
			dst := make([]byte, 0, 1232)
			if _, v := f.Lookup(dst, query, from); v == forwarder.Miss {
				f.Resolve(context.Background(), dst, query, from)
			}
		})
	}
	both.Wait()
}

func TestSearchMix(t *testing.T) {
	lookups := 1500
	if space.Full() {
		lookups = 6000
	}
	tests := []struct {
		name   string
		search forwarder.Search
		share  bool
	}{
		{"nothing", forwarder.Search{}, false},
		{"prefetch", forwarder.Search{Prefetch: true}, false},
		{"shareNXDomain", forwarder.Search{}, true},
		{"cut", forwarder.Search{Cut: true}, false},
		{"strict", forwarder.Search{Strict: true}, false},
		{"prefetch, shareNXDomain", forwarder.Search{Prefetch: true}, true},
		{"prefetch, shareNXDomain, cut", forwarder.Search{Prefetch: true, Cut: true}, true},
		{"all", forwarder.Search{Prefetch: true, Cut: true, Strict: true}, true},
	}
	for _, share := range []float64{0.3, 1} {
		mix, err := names.NewMix(names.Config{Services: 500, External: 2000, ExternalShare: share, TCPShare: -1, EDNSShare: -1})
		if err != nil {
			t.Fatal(err)
		}
		list := draw(t, mix, lookups)
		table := fmt.Sprintf("%d lookups, %.0f %% of names outside, %d/s, a trip to a server %v\n", lookups, 100*share, rate, trip)
		table += fmt.Sprintf("%-30s %s\n", "", "questions a lookup, cluster + outside; time of a lookup outside: mean, 99 %, longest")
		var before, after measured
		for i, tt := range tests {
			m := play(t, mix, list, tt.search, tt.share)
			table += fmt.Sprintf("%-30s %.2f + %.2f   %8v %8v %8v\n", tt.name, m.cluster, m.outside, m.mean.Round(10*time.Microsecond), m.p99, m.last)
			if i == 0 {
				before = m
			}
			after = m
		}
		t.Log("\n" + table)
		if after.cluster > before.cluster*2/3 || after.mean > before.mean*2/3 || after.outside > before.outside*1.1 {
			t.Errorf("all switches together spare too little: %+v, without %+v", after, before)
		}
	}
}
