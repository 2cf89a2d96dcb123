package cache_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/cache"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

func newCache(t testing.TB, cfg cache.Config) *cache.Cache {
	t.Helper()
	c, err := cache.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func put(c *cache.Cache, k []byte, e *cache.Entry, now, standby time.Duration) {
	c.Put(c.Hash(k), e, &cache.Policy{MaxStale: standby}, now)
}

func get(c *cache.Cache, k []byte) *cache.Entry { return c.Get(c.Hash(k), k) }

func TestGetWhatWasPut(t *testing.T) {
	c := newCache(t, cache.Config{Bytes: 1 << 20})
	q := ask(t, "a.test.", dns.TypeA, 1)
	e, _ := entry(t, message(t, "a.test.", dns.TypeA, 0, "a.test. 60 IN A 10.0.0.1"), policy(), 0)
	if get(c, key(q)) != nil {
		t.Fatal("something is in an empty cache")
	}
	put(c, key(q), e, 0, 0)
	if got := get(c, key(ask(t, "A.TEST.", dns.TypeA, 2))); got != e {
		t.Error("the entry is not found with other letters")
	}
	if got := get(c, key(ask(t, "a.test.", dns.TypeAAAA, 1))); got != nil {
		t.Error("the entry is found with another type")
	}
	if s := c.Stats(); s.Entries[cache.Positive] != 1 || s.Bytes <= 0 {
		t.Errorf("stats: %+v", s)
	}
}

func TestPutReplaces(t *testing.T) {
	c := newCache(t, cache.Config{Bytes: 1 << 20})
	fill(t, c, 0, 1, 3)
	once := c.Stats()
	fill(t, c, 0, 1, 3)
	if twice := c.Stats(); twice != once {
		t.Errorf("after the same again: %+v, before: %+v", twice, once)
	}
	k := key(ask(t, "a.test.", dns.TypeA, 1))
	for i := range 2 {
		e, _ := entry(t, message(t, "a.test.", dns.TypeA, 0, fmt.Sprintf("a.test. 60 IN A 10.0.0.%d", i)), policy(), 0)
		put(c, k, e, 0, 0)
		if get(c, k) != e {
			t.Errorf("answer %d is not there", i)
		}
	}
}

func TestCollisionIsAMiss(t *testing.T) {
	c := newCache(t, cache.Config{Bytes: 1 << 20, HashBits: 1})
	for i := range 10 {
		name := fmt.Sprintf("n%d.test.", i)
		e, _ := entry(t, message(t, name, dns.TypeA, 0, fmt.Sprintf("%s 60 IN A 10.0.0.%d", name, i)), policy(), 0)
		q := ask(t, name, dns.TypeA, 1)
		put(c, key(q), e, 0, 0)
		if got := get(c, key(q)); got != e {
			t.Fatalf("%s: not found right after put", name)
		}
	}
	found := 0
	for i := range 10 {
		q := ask(t, fmt.Sprintf("n%d.test.", i), dns.TypeA, 1)
		if e := get(c, key(q)); e != nil {
			found++
			if a := unpack(t, e.Append(nil, &q, 0, false)).Answer[0].(*dns.A).A; int(a[3]) != i {
				t.Errorf("n%d has the address of n%d", i, a[3])
			}
		}
	}
	if found > 2 || c.Stats().Collisions < 8 {
		t.Errorf("%d entries for one bit of hash, %d collisions counted", found, c.Stats().Collisions)
	}
}

func TestFailureNeverHidesAnAnswer(t *testing.T) {
	k := key(ask(t, "a.test.", dns.TypeA, 1))
	answer, _ := entry(t, message(t, "a.test.", dns.TypeA, 0, "a.test. 10 IN A 10.0.0.1"), policy(), 0)
	failure := cache.NewFailure(k, wire.EDENoReachable, wire.NoEDE, 5*time.Second, 0, 0)
	tests := []struct {
		name         string
		now, standby time.Duration
		want         *cache.Entry
	}{
		{"live", 9 * time.Second, 0, answer},
		{"ended, no stale", 10 * time.Second, 0, failure},
		{"ended, may stand in", 69 * time.Second, time.Minute, answer},
		{"ended too long ago", 70 * time.Second, time.Minute, failure},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newCache(t, cache.Config{Bytes: 1 << 20})
			put(c, k, answer, 0, 0)
			put(c, k, failure, tt.now, tt.standby)
			if got := get(c, k); got != tt.want {
				t.Errorf("got the entry of kind %d", got.Kind())
			}
			put(c, k, answer, tt.now, tt.standby)
			if get(c, k) != answer {
				t.Error("an answer does not replace what was there")
			}
		})
	}
}

// fill puts n names with long replies and returns their payload in bytes.
func fill(t testing.TB, c *cache.Cache, from, n int, records int) (payload int) {
	for i := from; i < from+n; i++ {
		name := fmt.Sprintf("service-%d.namespace-%d.svc.cluster.local.", i, i%50)
		var rrs []string
		for j := range records {
			rrs = append(rrs, fmt.Sprintf("%s 60 IN A %d.%d.%d.%d", name, 10+j>>8, j&255, i>>8&255, i&255))
		}
		m := message(t, name, dns.TypeA, 0, rrs...)
		e, _ := entry(t, m, policy(), 0)
		k := key(ask(t, name, dns.TypeA, 0))
		put(c, k, e, 0, 0)
		payload += len(k) + m.Len()
	}
	return payload
}

func TestBudgetHolds(t *testing.T) {
	for _, size := range []int64{cache.MinBytes, 1 << 20, 4 << 20} {
		c := newCache(t, cache.Config{Bytes: size})
		fill(t, c, 0, int(size/200), 3)
		s := c.Stats()
		if s.Bytes > size || s.Bytes < size*8/10 {
			t.Errorf("budget %d: %d bytes in use", size, s.Bytes)
		}
		if s.Evictions[cache.Positive] == 0 {
			t.Errorf("budget %d: nothing was evicted of %d names", size, size/200)
		}
	}
}

func TestTheUsedStay(t *testing.T) {
	c := newCache(t, cache.Config{Bytes: 1 << 20})
	fill(t, c, 0, 1, 3)
	hot := key(ask(t, "service-0.namespace-0.svc.cluster.local.", dns.TypeA, 0))
	for i := range 100 {
		fill(t, c, 1+i*100, 100, 3)
		if get(c, hot) == nil {
			t.Fatalf("the name in use was dropped after %d others", 100+i*100)
		}
	}
}

func TestLongRepliesAreNotKept(t *testing.T) {
	c := newCache(t, cache.Config{Bytes: 8 << 20})
	fill(t, c, 0, 1, cache.MaxEntry/16+20)
	if n := c.Stats().Entries[cache.Positive]; n != 0 {
		t.Errorf("%d entries kept", n)
	}
}

// TestHeapStaysWithinBudget measures what the budget promises: the memory in
// use after a collection is at most the budget and a fifth.
func TestHeapStaysWithinBudget(t *testing.T) {
	if testing.Short() {
		t.Skip("fills 100 000 names")
	}
	for _, records := range []int{1, 4} {
		t.Run(fmt.Sprintf("%d addresses", records), func(t *testing.T) {
			before := heap()
			c := newCache(t, cache.Config{Bytes: 32 << 20})
			payload := fill(t, c, 0, 100_000, records)
			if records == 1 { // those asked for again go to another list
				for i := range 100_000 {
					get(c, key(ask(t, fmt.Sprintf("service-%d.namespace-%d.svc.cluster.local.", i, i%50), dns.TypeA, 0)))
				}
				payload += fill(t, c, 100_000, 100_000, records)
			}
			used, s := heap()-before, c.Stats()
			t.Logf("payload put %d, heap %d, budget in use %d, entries %d", payload, used, s.Bytes, s.Entries[cache.Positive])
			if used > 32<<20*12/10 {
				t.Errorf("heap %d bytes, over the budget of %d and a fifth", used, 32<<20)
			}
			if used < s.Bytes/2 {
				t.Errorf("heap %d bytes is less than half of the %d counted: entryOverhead is far too large", used, s.Bytes)
			}
			runtime.KeepAlive(c)
		})
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestGetAllocatesNothing(t *testing.T) {
	c := newCache(t, cache.Config{Bytes: 1 << 20})
	fill(t, c, 0, 1, 3)
	q := ask(t, "service-0.namespace-0.svc.cluster.local.", dns.TypeA, 0)
	k, dst := key(q), make([]byte, 0, 4096)
	if n := testing.AllocsPerRun(100, func() {
		dst = get(c, k).Append(dst[:0], &q, time.Second, true)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestTooSmall(t *testing.T) {
	if _, err := cache.New(cache.Config{Bytes: cache.MinBytes - 1}); err == nil {
		t.Error("no error")
	}
}

func BenchmarkGet(b *testing.B) {
	for _, n := range []int{1e3, 1e4, 1e5, 1e6} {
		b.Run(fmt.Sprintf("names=%d", n), func(b *testing.B) {
			c := newCache(b, cache.Config{Bytes: 1 << 30})
			fill(b, c, 0, n, 1)
			const sample = 1000
			var keys [sample][]byte
			for i := range keys {
				j := i * (n / sample)
				keys[i] = key(ask(b, fmt.Sprintf("service-%d.namespace-%d.svc.cluster.local.", j, j%50), dns.TypeA, 0))
			}
			for i := 0; b.Loop(); i++ {
				if get(c, keys[i%sample]) == nil {
					b.Fatal("miss")
				}
			}
		})
	}
}
