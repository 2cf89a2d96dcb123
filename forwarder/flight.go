package forwarder

import (
	"bytes"
	"sync"

	"github.com/nodens-dns/nodens/forwarder/cache"
)

// flight is one miss being fetched, with those who wait for it. Asking once
// for all is a defence too: every further identical question in flight would
// give a forger another chance to guess it (RFC 5452 section 5).
type flight struct {
	key     []byte
	waiting int           // followers; guarded by the shard's lock
	done    chan struct{} // closed when entry is set
	entry   *cache.Entry  // what came of it, never nil then
}

// flights are the misses being fetched.
type flights struct {
	maxFollowers int
	shards       [flightShards]flightShard
}

const flightShards = 16

type flightShard struct {
	mu    sync.Mutex
	byKey map[uint64]*flight
}

// role is what a question becomes in a flight.
type role uint8

const (
	leader   role = iota // asks the servers, and must call land
	follower             // waits for the leader
	surplus              // one follower too many: is not answered
)

// join makes the question of a key a flight of its own, or adds it to the one
// under way. Two keys with one hash do not share; the second then flies
// without being found.
func (f *flights) join(hash uint64, key []byte) (*flight, role) {
	s := f.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	fl := s.byKey[hash]
	switch {
	case fl == nil:
		fl = newFlight(key)
		if s.byKey == nil {
			s.byKey = make(map[uint64]*flight)
		}
		s.byKey[hash] = fl
		return fl, leader
	case !bytes.Equal(fl.key, key):
		return newFlight(key), leader
	case fl.waiting >= f.maxFollowers:
		return nil, surplus
	}
	fl.waiting++
	return fl, follower
}

func newFlight(key []byte) *flight {
	return &flight{key: bytes.Clone(key), done: make(chan struct{})}
}

// land ends a flight with what came of it and wakes its followers.
func (f *flights) land(hash uint64, fl *flight, e *cache.Entry) {
	s := f.shard(hash)
	s.mu.Lock()
	if s.byKey[hash] == fl {
		delete(s.byKey, hash)
	}
	s.mu.Unlock()
	fl.entry = e
	close(fl.done)
}

func (f *flights) shard(hash uint64) *flightShard { return &f.shards[hash%flightShards] }
