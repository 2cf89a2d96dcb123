package cache_test

import (
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/cache"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// ofKind makes entries of a name that were stored at 0 and end at 10 s.
func ofKind(t *testing.T, kind cache.Kind) *cache.Entry {
	t.Helper()
	soa := "test. 10 IN SOA ns.test. root.test. 1 3600 600 86400 10"
	var m *dns.Msg
	switch kind {
	case cache.Positive:
		m = message(t, "a.test.", dns.TypeA, 0, "a.test. 10 IN A 10.0.0.1")
	case cache.NoData:
		m = message(t, "a.test.", dns.TypeA, 0, "---", soa)
	case cache.NXDomain:
		m = message(t, "a.test.", dns.TypeA, dns.RcodeNameError, "---", soa)
	default:
		return cache.NewFailure(key(ask(t, "a.test.", dns.TypeA, 0)), wire.EDENetworkError, wire.NoEDE, 10*time.Second, 0, 0)
	}
	e, _ := entry(t, m, policy(), 0)
	return e
}

// TestWhoYields puts one answer in the place of another and sees which stays.
func TestWhoYields(t *testing.T) {
	const p, d, n, f = cache.Positive, cache.NoData, cache.NXDomain, cache.Failure
	tests := []struct {
		name          string
		old, next     cache.Kind
		now           time.Duration
		stale, prefer time.Duration
		oldStays      bool
	}{
		{"answer by answer", p, p, 5, 60, 60, false},
		{"answer by denial", p, n, 5, 60, 0, false},
		{"answer by no data", p, d, 5, 60, 0, false},
		{"preferred answer by denial", p, n, 29, 60, 20, true},
		{"preferred answer by no data", p, d, 29, 60, 20, true},
		{"preferred no longer", p, n, 30, 60, 20, false},
		{"preferred at most while it may stand in", p, n, 15, 5, 20, false},
		{"preferred without standing in", p, n, 5, 0, 20, false},
		{"denial by denial", n, n, 5, 60, 60, false},
		{"denial by answer", n, p, 5, 60, 60, false},
		{"answer by failure", p, f, 69, 60, 0, true},
		{"denial by failure", n, f, 69, 60, 0, true},
		{"answer that ended long ago by failure", p, f, 70, 60, 0, false},
		{"live answer by failure, never stale", p, f, 9, 0, 0, true},
		{"failure by failure", f, f, 5, 60, 60, false},
		{"failure by denial", f, n, 5, 60, 60, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newCache(t, cache.Config{Bytes: 1 << 20})
			pol := policy()
			pol.MaxStale, pol.PreferPositive = tt.stale*time.Second, tt.prefer*time.Second
			old, next := ofKind(t, tt.old), ofKind(t, tt.next)
			c.Put(c.Hash(old.Key()), old, pol, 0)
			c.Put(c.Hash(next.Key()), next, pol, tt.now*time.Second)
			if got := get(c, old.Key()); (got == old) != tt.oldStays {
				t.Errorf("the old stays: %v", got == old)
			}
			if s := c.Stats(); s.Entries[tt.old]+s.Entries[tt.next] == 0 || s.Entries[p]+s.Entries[d]+s.Entries[n]+s.Entries[f] != 1 {
				t.Errorf("entries %v", s.Entries)
			}
		})
	}
}

func TestFailureLife(t *testing.T) {
	fail := func(life, stored time.Duration) *cache.Entry {
		return cache.NewFailure([]byte("k"), wire.EDENetworkError, wire.NoEDE, life*time.Second, 0, stored*time.Second)
	}
	tests := []struct {
		name string
		old  *cache.Entry
		why  wire.EDE
		most time.Duration
		now  time.Duration
		want time.Duration
	}{
		{"first", nil, wire.EDENetworkError, 30, 0, 5},
		{"second", fail(5, 0), wire.EDENetworkError, 30, 5, 10},
		{"fourth", fail(20, 0), wire.EDENetworkError, 30, 20, 30},
		{"at most", fail(30, 0), wire.EDENetworkError, 30, 30, 30},
		{"does not grow", fail(5, 0), wire.EDENetworkError, 0, 5, 5},
		{"long after the last", fail(5, 0), wire.EDENetworkError, 30, 35, 5},
		{"after silence", fail(1, 0), wire.EDENetworkError, 30, 1, 5},
		{"silence", fail(20, 0), wire.EDENoReachable, 30, 20, 1},
		{"after an answer", ofKind(t, cache.NXDomain), wire.EDENetworkError, 30, 10, 5},
	}
	for _, tt := range tests {
		p := policy()
		p.MaxServFailTTL = tt.most * time.Second
		if got := p.FailureLife(tt.old, tt.why, tt.now*time.Second); got != tt.want*time.Second {
			t.Errorf("%s: %v, want %v s", tt.name, got, tt.want)
		}
	}
}

func TestWait(t *testing.T) {
	for _, tt := range []struct {
		wait    time.Duration
		onError bool
		want    time.Duration
	}{
		{0, true, time.Second},
		{0, false, time.Second},
		{time.Minute, false, time.Minute},
		{-1, true, 0},
		{-1, false, time.Second},
	} {
		p := cache.Policy{StaleWait: tt.wait, StaleOnError: tt.onError}
		if got := p.Wait(); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

// TestDue is when answers may be asked for before their end.
func TestDue(t *testing.T) {
	for _, tt := range []struct {
		ttl      string
		qtype    uint16
		prefetch uint32
		due      time.Duration // 0: at its end
	}{
		{"100", dns.TypeA, 1, 90 * time.Second},
		{"3600", dns.TypeA, 1, 3240 * time.Second},
		{"10", dns.TypeA, 1, 9 * time.Second},
		{"5", dns.TypeA, 1, 4 * time.Second},
		{"4", dns.TypeA, 1, 0},
		{"100", dns.TypeA, 0, 0},
		{"100", dns.TypeANY, 1, 0},
	} {
		p := policy()
		p.Prefetch = tt.prefetch
		e, _ := entry(t, message(t, "a.test.", tt.qtype, 0, "a.test. "+tt.ttl+" IN A 10.0.0.1"), p, 0)
		due := tt.due
		if due == 0 {
			due = e.Left(0)
		}
		if e.Due(due-1) || !e.Due(due) {
			t.Errorf("%+v: due at another time", tt)
		}
	}
}

// TestHitsFade counts and renews.
func TestHitsFade(t *testing.T) {
	c := newCache(t, cache.Config{Bytes: 1 << 20})
	e := ofKind(t, cache.Positive)
	hash := c.Hash(e.Key())
	for round, want := range []uint32{8, 12, 14} {
		e = ofKind(t, cache.Positive)
		c.Put(hash, e, policy(), 0)
		for range 8 {
			get(c, e.Key())
		}
		if got := c.Hits(hash, e); got != want {
			t.Errorf("round %d: %d hits, want %d", round, got, want)
		}
	}
}

func TestDrop(t *testing.T) {
	c := newCache(t, cache.Config{Bytes: 1 << 20, HashBits: 1})
	empty := c.Stats()
	e := ofKind(t, cache.Positive)
	put(c, e.Key(), e, 0, 0)
	for i := range 4 { // with one bit of hash, one of them must meet the entry
		other := key(ask(t, string(rune('b'+i))+".test.", dns.TypeA, 0))
		c.Drop(c.Hash(other), other)
	}
	if get(c, e.Key()) != e {
		t.Error("dropped by another key")
	}
	c.Drop(c.Hash(e.Key()), e.Key())
	c.Drop(c.Hash(e.Key()), e.Key())
	if get(c, e.Key()) != nil || c.Stats().Bytes != empty.Bytes || c.Stats().Entries != empty.Entries {
		t.Errorf("after: %+v", c.Stats())
	}
}

// TestSettles is which answers put an end to what was known before.
func TestSettles(t *testing.T) {
	for name, tt := range map[string]struct {
		rcode   int
		tc      bool
		records []string
		want    bool
	}{
		"TTL 0":          {records: []string{"a.test. 0 IN A 10.0.0.1"}, want: true},
		"answer":         {records: []string{"a.test. 9 IN A 10.0.0.1"}, want: true},
		"cut":            {tc: true, records: []string{"a.test. 9 IN A 10.0.0.1"}},
		"denial":         {rcode: dns.RcodeNameError, records: []string{"---", soaLong}, want: true},
		"denial, TTL 0":  {records: []string{"---", "test. 0 IN SOA ns.test. root.test. 1 2 3 4 0"}, want: true},
		"bare denial":    {rcode: dns.RcodeNameError},
		"nothing at all": {},
		"alias alone":    {records: []string{"a.test. 9 IN CNAME b.test."}},
	} {
		m := message(t, "a.test.", dns.TypeA, tt.rcode, tt.records...)
		m.Truncated = tt.tc
		if e, _ := entry(t, m, policy(), 0); e.Settles() != tt.want {
			t.Errorf("%s: %v", name, e.Settles())
		}
	}
}

func TestForAnyType(t *testing.T) {
	e := ofKind(t, cache.NXDomain)
	shared := e.ForAnyType()
	q := ask(t, "A.test.", dns.TypeMX, 7)
	got := unpack(t, shared.Append(nil, &q, 4*time.Second, false))
	if got.Question[0].Qtype != dns.TypeMX || got.Question[0].Name != "A.test." || got.Ns[0].Header().Ttl != 6 || got.Rcode != dns.RcodeNameError {
		t.Errorf("got %v", got)
	}
	for _, qtype := range []uint16{dns.TypeA, dns.TypeMX} {
		if want := wire.AppendKeyOfType(nil, key(ask(t, "a.test.", qtype, 0)), 0); string(shared.Key()) != string(want) {
			t.Errorf("key % x, want % x", shared.Key(), want)
		}
	}
	if !shared.Live(10*time.Second-1) || shared.Live(10*time.Second) || !e.Denies() {
		t.Error("it ends at another time")
	}
	alias, _ := entry(t, message(t, "a.test.", dns.TypeA, dns.RcodeNameError, "a.test. 60 IN CNAME b.test.", "---", soaLong), policy(), 0)
	if alias.Denies() || ofKind(t, cache.NoData).Denies() || ofKind(t, cache.Positive).Denies() {
		t.Error("the name is denied by what does not say so")
	}
}
