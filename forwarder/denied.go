package forwarder

import (
	"time"

	"github.com/nodens-dns/nodens/forwarder/cache"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// maxAbove is how many names above one are looked at for a denial that covers it.
const maxAbove = 6

// denied is what memory has that says that the name of a key, its first n bytes,
// does not exist: a denial for another type, or of a name above, or of any other
// where nothing can be.
func (f *Forwarder) denied(key []byte, n int, z *zone, now time.Duration) (a answer, ok bool) {
	if z.route.Policy.ShareNXDomain {
		if e := f.denial(key, now); e != nil {
			return answer{entry: e, source: FromCache}, true
		}
	}
	s := z.route.search
	if s == nil || !s.Cut && !s.Strict {
		return a, false
	}
	var e *cache.Entry
	if s.Cut {
		e = f.above(key, n, z, s, now)
	}
	if e == nil && s.Strict && key[len(key)-1] == 0 && s.foreign(key[:n]) {
		if e = s.denial.Load(); e != nil && !e.Live(now) {
			e = nil
		}
	}
	return answer{entry: e, source: FromCache, implied: true}, e != nil
}

// denial is the live denial of the name of a key, whatever the type.
func (f *Forwarder) denial(key []byte, now time.Duration) *cache.Entry {
	var buf [wire.MaxKey]byte
	any := wire.AppendKeyOfType(buf[:0], key, 0)
	if e := f.cache.Get(f.cache.Hash(any), any); e != nil && e.Live(now) {
		return e
	}
	return nil
}

// above is the denial of a name above the one of a key, from the top. Both lie in
// the cluster's domain and in the same zone: what lies above that, others answer.
func (f *Forwarder) above(key []byte, n int, z *zone, s *search, now time.Duration) *cache.Entry {
	p, ok := s.locate(key[:n])
	if !ok {
		return nil
	}
	for i := p.n - 1; i > 0 && i >= p.n-maxAbove; i-- {
		at := int(p.at[i])
		if n-at < z.size {
			continue
		}
		if e := f.denial(key[at:], now); e != nil {
			return e
		}
	}
	return nil
}

// spread lets a denial that is kept serve other questions than its own.
func (f *Forwarder) spread(e *cache.Entry, z *zone, now time.Duration) {
	p, s := &z.route.Policy, z.route.search
	if !e.Denies() {
		return
	}
	if p.ShareNXDomain || s != nil && s.Cut {
		name := e.ForAnyType()
		f.cache.Put(f.cache.Hash(name.Key()), name, p, now)
	}
	if key := e.Key(); s != nil && s.Strict && key[len(key)-1] == 0 {
		if _, inside := s.locate(wire.KeyName(key)); inside {
			s.denial.Store(e)
		}
	}
}

// learn tells those who go by it what kinds of names there are.
func (t *table) learn(name []byte, kind cache.Kind) {
	if kind != cache.Positive && kind != cache.NoData {
		return
	}
	for _, r := range t.routes {
		if r.search != nil {
			r.search.learn(name, kind)
		}
	}
}
