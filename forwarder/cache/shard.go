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

// shard is one least-recently-used list under a lock of its own. The lock is a
// leaf: nothing is called under it that could take another.
type shard struct {
	mu     sync.Mutex
	lru    *simplelru.LRU[uint64, *Entry]
	budget int64
	stats  Stats
	_      [64]byte // neighbours' locks stay on other cache lines
}

func (s *shard) init(budget int64) {
	s.budget = budget
	// The list is bounded in bytes, by put; never by number.
	s.lru, _ = simplelru.NewLRU[uint64, *Entry](math.MaxInt, nil)
}

// get compares the whole key: an equal hash alone is a collision, a miss.
func (s *shard) get(hash uint64, key []byte) *Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.lru.Get(hash)
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

// put keeps e, unless p prefers what was there under the same key.
func (s *shard) put(hash uint64, e *Entry, p *Policy, now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.lru.Peek(hash); ok {
		if bytes.Equal(old.Key(), e.Key()) {
			if p.Prefers(old, e, now) {
				return
			}
			e.hits = old.hits / 2
		}
		s.count(old, -1)
	}
	s.lru.Add(hash, e)
	s.count(e, 1)
	for s.stats.Bytes > s.budget {
		_, old, ok := s.lru.RemoveOldest()
		if !ok {
			return
		}
		s.count(old, -1)
		s.stats.Evictions[old.kind]++
	}
}

func (s *shard) drop(hash uint64, key []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.lru.Peek(hash); ok && bytes.Equal(old.Key(), key) {
		s.lru.Remove(hash)
		s.count(old, -1)
	}
}

func (s *shard) hits(e *Entry) uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return e.hits
}

func (s *shard) count(e *Entry, n int64) {
	s.stats.Entries[e.kind] += n
	s.stats.Bytes += n * e.cost()
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
