package cache_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/cache"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// visit looks a name up as the forwarder does, and puts its answer there, with a
// TTL of five minutes, if it was not.
func visit(t *testing.T, c *cache.Cache, name string, now time.Duration) (hit bool) {
	t.Helper()
	folded, _ := wire.AppendName(nil, name)
	k := wire.AppendKeyFor(nil, folded, wire.TypeA, false, false)
	if e := get(c, k); e != nil && e.Live(now) {
		return true
	}
	msg := append([]byte("\x00\x00\x80\x00\x00\x01\x00\x01\x00\x00\x00\x00"), folded...)
	msg = append(msg, "\x00\x01\x00\x01\xc0\x0c\x00\x01\x00\x01\x00\x00\x01\x2c\x00\x04\x0a\x00\x00\x01"...)
	r, err := wire.ParseReply(msg)
	if err != nil {
		t.Fatal(err)
	}
	e, _, _ := cache.NewEntry(k, &r, policy(), 0, now)
	put(c, k, e, now, 0)
	return false
}

func hotName(i int) string { return fmt.Sprintf("service-%d.namespace.svc.cluster.local.", i) }

func unique(i int) string { return fmt.Sprintf("%08x.random.example.", i) }

// TestFloodOfNames holds that names asked for once do not push out those that
// are asked for again: each hot name comes once in 5000 names that never come
// twice, of which the cache holds about 2500.
func TestFloodOfNames(t *testing.T) {
	const hot, perHot = 500, 10
	for name, warm := range map[string]bool{"hot before the flood": true, "hot from the flood on": false} {
		t.Run(name, func(t *testing.T) {
			c := newCache(t, cache.Config{Bytes: 1 << 20})
			for i := range 2 * hot {
				if warm {
					visit(t, c, hotName(i%hot), 0)
				}
			}
			hits, seen := 0, 0
			for i := range 20 * hot {
				for j := range perHot {
					visit(t, c, unique(i*perHot+j), 0)
				}
				hit := visit(t, c, hotName(i%hot), 0)
				if !warm { // a second client, and then nobody for long
					visit(t, c, hotName(i%hot), 0)
				}
				if seen++; hit && (warm || i >= hot) {
					hits++
				}
			}
			if !warm {
				seen -= hot
			}
			ratio := float64(hits) / float64(seen)
			t.Logf("%d unique names, %d entries: hit ratio of the hot names %.3f", 20*hot*perHot, c.Stats().Entries[cache.Positive], ratio)
			if ratio < 0.97 {
				t.Errorf("hit ratio of the hot names %.3f, want 0.97", ratio)
			}
			if s := c.Stats(); s.Bytes > 1<<20 {
				t.Errorf("%d bytes in use", s.Bytes)
			}
		})
	}
}

// TestNamesGoOutOfUse holds that proof does not last for ever: when the names in
// use change, the new ones take over.
func TestNamesGoOutOfUse(t *testing.T) {
	const set = 1500
	c := newCache(t, cache.Config{Bytes: 1 << 20})
	for generation := range 5 {
		hits := 0
		for i := range 10 * set {
			now := time.Duration(generation) * time.Hour
			hit := visit(t, c, hotName(generation*set+i%set), now)
			if i >= 9*set && hit {
				hits++
			}
		}
		t.Logf("generation %d: %d of %d", generation, hits, set)
		if hits < set*95/100 {
			t.Errorf("generation %d: %d of %d names are in memory", generation, hits, set)
		}
	}
}

// TestSkewedNames is a load without enemies: names by Zipf's law over twenty
// times what the cache holds.
func TestSkewedNames(t *testing.T) {
	c := newCache(t, cache.Config{Bytes: 1 << 20})
	random := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(random, 1.1, 10, 50_000)
	hits, n := 0, 100_000
	for range n {
		if visit(t, c, hotName(int(zipf.Uint64())), 0) {
			hits++
		}
	}
	t.Logf("hit ratio %.3f", float64(hits)/float64(n))
	if float64(hits) < 0.6*float64(n) {
		t.Errorf("hit ratio %.3f", float64(hits)/float64(n))
	}
}

func TestFlush(t *testing.T) {
	c := newCache(t, cache.Config{Bytes: 1 << 20})
	fill(t, c, 0, 1000, 1)
	fill(t, c, 0, 500, 1)
	odd := func(k []byte) bool { return k[len("\x0aservice-00")-1]&1 == 1 }
	before := c.Stats().Entries[cache.Positive]
	n := c.Flush(odd)
	if again := c.Flush(odd); n == 0 || again != 0 {
		t.Errorf("%d dropped, then %d", n, again)
	}
	if got := c.Stats().Entries[cache.Positive]; got != before-int64(n) {
		t.Errorf("%d entries of %d after %d were dropped", got, before, n)
	}
	c.Flush(func([]byte) bool { return true })
	if s := c.Stats(); s.Entries[cache.Positive] != 0 || s.Bytes != 0 {
		t.Errorf("after all were dropped: %+v", s)
	}
}

func TestPeekLeavesNoTrace(t *testing.T) {
	c := newCache(t, cache.Config{Bytes: 1 << 20})
	fill(t, c, 0, 1, 1)
	k := key(ask(t, "service-0.namespace-0.svc.cluster.local.", dns.TypeA, 0))
	for range 3 {
		if c.Peek(c.Hash(k), k) == nil {
			t.Fatal("not found")
		}
	}
	e := get(c, k)
	if n := c.Hits(c.Hash(k), e); n != 1 {
		t.Errorf("%d hits, want 1", n)
	}
	other := key(ask(t, "service-0.namespace-0.svc.cluster.local.", dns.TypeAAAA, 0))
	if c.Peek(c.Hash(other), other) != nil {
		t.Error("another type is found")
	}
}
