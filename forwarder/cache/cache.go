package cache

import (
	"errors"
	"hash/maphash"
	"math/bits"
	"sync/atomic"
	"time"
)

// Bounds of Config.
const (
	MinBytes = 64 << 10
	// MaxEntry is the longest reply that is kept, in bytes: longer ones are
	// rare and would push out hundreds of others.
	MaxEntry = 16 << 10

	maxShards  = 64
	shardBytes = 256 << 10 // a shard is not made smaller than this
)

// Config is how a Cache is made.
type Config struct {
	// Bytes bounds keys, replies and the memory that keeps them. At least
	// MinBytes.
	Bytes int64
	// HashBits keeps only the low bits of the hash, to provoke collisions in
	// tests. Default and at most 64.
	HashBits int
}

// Cache is a bounded set of entries, safe for concurrent use.
type Cache struct {
	seed   maphash.Seed
	mask   uint64 // bits of the hash in use
	bytes  atomic.Int64
	shards []shard
}

// New makes an empty cache.
func New(cfg Config) (*Cache, error) {
	if cfg.Bytes < MinBytes {
		return nil, errors.New("cache: the size is below 64 KiB; raise it, or nothing can be kept")
	}
	if cfg.HashBits <= 0 || cfg.HashBits > 64 {
		cfg.HashBits = 64
	}
	n := 1 << bits.Len64(uint64(min(cfg.Bytes/shardBytes, maxShards)/2))
	c := &Cache{
		seed:   maphash.MakeSeed(),
		mask:   ^uint64(0) >> (64 - cfg.HashBits),
		shards: make([]shard, n),
	}
	c.bytes.Store(cfg.Bytes)
	for i := range c.shards {
		c.shards[i].init(cfg.Bytes / int64(n))
	}
	return c, nil
}

// Resize changes Config.Bytes, of which at least MinBytes stay, and drops entries
// until that holds. It keeps readers waiting for a few of them at a time only. Call it
// from one goroutine.
func (c *Cache) Resize(size int64, now time.Duration) {
	size = max(size, MinBytes)
	c.bytes.Store(size)
	for i := range c.shards {
		c.shards[i].resize(size/int64(len(c.shards)), now)
	}
}

// Hash is the keyed hash of a key. It cannot be foretold from outside, so that
// nobody can make keys that meet (hash flooding).
func (c *Cache) Hash(key []byte) uint64 { return maphash.Bytes(c.seed, key) & c.mask }

// Get returns the entry with the key whose Hash is given, live or ended; nil
// without one. It neither keeps nor changes key.
func (c *Cache) Get(hash uint64, key []byte) *Entry { return c.shard(hash).get(hash, key) }

// Peek is Get for onlookers: it counts no hit and keeps no entry from going.
func (c *Cache) Peek(hash uint64, key []byte) *Entry { return c.shard(hash).peek(hash, key) }

// Put keeps e under its key in place of what was there, and drops the entries
// not used for longest until the budget holds, those that were never used first. An entry over MaxEntry is not
// kept, nor one before which p prefers what is there.
func (c *Cache) Put(hash uint64, e *Entry, p *Policy, now time.Duration) {
	if len(e.blob) <= MaxEntry {
		c.shard(hash).put(hash, e, p, now)
	}
}

// Drop forgets the entry with the key whose Hash is given, if there is one.
func (c *Cache) Drop(hash uint64, key []byte) { c.shard(hash).drop(hash, key) }

// Flush forgets the entries whose key matches, and tells how many. It looks at
// all there are, and keeps readers waiting for a few of them at a time only. What
// is put meanwhile may stay. matches neither waits nor keeps the key.
func (c *Cache) Flush(matches func(key []byte) bool) (dropped int) {
	for i := range c.shards {
		dropped += c.shards[i].flush(matches)
	}
	return dropped
}

// Hits is how often Get found the entry, whose key's Hash is given, and half
// of the hits of the entry before it, so that popularity lasts and fades.
func (c *Cache) Hits(hash uint64, e *Entry) uint32 { return c.shard(hash).hits(e) }

func (c *Cache) shard(hash uint64) *shard {
	return &c.shards[hash>>32&uint64(len(c.shards)-1)]
}

// Stats is what a cache holds and did since it was made.
type Stats struct {
	Entries    [Kinds]int64  // kept now, by Kind
	Evictions  [Kinds]uint64 // dropped for room, by Kind
	Bytes      int64         // of the budget in use
	Limit      int64         // the budget
	Collisions uint64        // look-ups that met another key with the same hash
}

// Kinds is the number of kinds an entry in the cache can be.
const Kinds = int(Failure) + 1

// Stats adds up all shards.
func (c *Cache) Stats() Stats {
	sum := Stats{Limit: c.bytes.Load()}
	for i := range c.shards {
		c.shards[i].addTo(&sum)
	}
	return sum
}
