package cache

import (
	"bytes"
	"math"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// entryOverhead is the memory of one entry beside its bytes: the Entry, its
// list node, its share of the map at the load it has after growing, and the
// rounding of the allocator. TestHeapStaysWithinBudget measures it.
const entryOverhead = 256

const (
	// provenShare is the part of the budget, in quarters, that entries which
	// were asked for again may fill.
	provenShare = 3
	// maxMoves bounds how many entries one put moves between the lists.
	maxMoves = 32
)

// shard is two least-recently-used lists under a lock of their own. What comes
// in is fresh. What is found to have been asked for when it would have to go is
// proven, and goes only when others prove themselves or nobody has had it renewed
// for long: a flood of names that are asked for once pushes out its like.
//
// The lock is a leaf: nothing is called under it that could take another.
type shard struct {
	mu            sync.Mutex
	fresh, proven *lru
	budget        int64
	provenBytes   int64
	stats         Stats
	_             [64]byte // neighbours' locks stay on other cache lines
}

type lru = simplelru.LRU[uint64, *Entry]

func (s *shard) init(budget int64) {
	s.budget = budget
	// The lists are bounded in bytes, by fit; never by number.
	s.fresh, _ = simplelru.NewLRU[uint64, *Entry](math.MaxInt, nil)
	s.proven, _ = simplelru.NewLRU[uint64, *Entry](math.MaxInt, nil)
}

// get compares the whole key: an equal hash alone is a collision, a miss.
func (s *shard) get(hash uint64, key []byte) *Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.fresh.Get(hash)
	if !ok {
		e, ok = s.proven.Get(hash)
	}
	if !ok {
		return nil
	}
	if !bytes.Equal(e.Key(), key) {
		s.stats.Collisions++
		return nil
	}
	e.hits++
	return e
}

// peek is get without a trace.
func (s *shard) peek(hash uint64, key []byte) *Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, _ := s.there(hash); e != nil && bytes.Equal(e.Key(), key) {
		return e
	}
	return nil
}

// there is the entry with a hash, nil without one, and the list it is in.
func (s *shard) there(hash uint64) (*Entry, *lru) {
	if e, ok := s.fresh.Peek(hash); ok {
		return e, s.fresh
	}
	e, _ := s.proven.Peek(hash)
	return e, s.proven
}

// put keeps e, unless p prefers what was there under the same key.
func (s *shard) put(hash uint64, e *Entry, p *Policy, now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.fresh
	if old, in := s.there(hash); old != nil {
		if bytes.Equal(old.Key(), e.Key()) {
			if p.Prefers(old, e, now) {
				return
			}
			e.hits = old.hits / 2
		}
		s.count(in, old, -1)
		list = in
	}
	s.add(list, hash, e)
	s.fit(now, math.MaxInt)
}

// resizeStep is how many entries are moved or dropped under one holding of the lock.
const resizeStep = 256

func (s *shard) resize(budget int64, now time.Duration) {
	for fits := false; !fits; {
		s.mu.Lock()
		s.budget = budget
		s.fit(now, resizeStep)
		fits = s.stats.Bytes <= budget
		s.mu.Unlock()
	}
}

// fit makes room until the budget holds, in so many steps at most.
func (s *shard) fit(now time.Duration, steps int) {
	if _, e, ok := s.proven.GetOldest(); ok && s.stats.Bytes > s.budget && e.worn(now) {
		s.doubt()
	}
	for moves := 0; s.stats.Bytes > s.budget && steps > 0; steps-- {
		hash, e, ok := s.fresh.GetOldest()
		switch {
		case !ok || s.provenBytes > s.budget/4*provenShare:
			s.doubt()
		case e.hits > 0 && moves < maxMoves:
			moves++
			s.remove(s.fresh, hash, e)
			s.add(s.proven, hash, e)
		default:
			s.remove(s.fresh, hash, e)
			s.stats.Evictions[e.kind]++
		}
	}
}

// doubt lets the proven entry that was not asked for longest prove itself anew.
func (s *shard) doubt() {
	hash, e, _ := s.proven.GetOldest()
	s.remove(s.proven, hash, e)
	e.hits = 0
	s.add(s.fresh, hash, e)
}

func (s *shard) drop(hash uint64, key []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, list := s.there(hash); old != nil && bytes.Equal(old.Key(), key) {
		s.remove(list, hash, old)
	}
}

func (s *shard) add(list *lru, hash uint64, e *Entry) {
	list.Add(hash, e)
	s.count(list, e, 1)
}

func (s *shard) remove(list *lru, hash uint64, e *Entry) {
	list.Remove(hash)
	s.count(list, e, -1)
}

func (s *shard) hits(e *Entry) uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return e.hits
}

func (s *shard) count(list *lru, e *Entry, n int64) {
	s.stats.Entries[e.kind] += n
	s.stats.Bytes += n * e.cost()
	if list == s.proven {
		s.provenBytes += n * e.cost()
	}
}

func (s *shard) addTo(sum *Stats) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range sum.Entries {
		sum.Entries[k] += s.stats.Entries[k]
		sum.Evictions[k] += s.stats.Evictions[k]
	}
	sum.Bytes += s.stats.Bytes
	sum.Collisions += s.stats.Collisions
}
