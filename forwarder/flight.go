package forwarder

import (
	"bytes"
	"net/netip"
	"sync"
	"time"

	"github.com/nodens-dns/nodens/forwarder/cache"
)

// flight is one miss being fetched, with those who wait for it. Asking once
// for all is a defence too: every further identical question in flight would
// give a forger another chance to guess it (RFC 5452 section 5).
type flight struct {
	shard   *flightShard
	key     []byte
	began   time.Duration // on Config.Now's clock
	waiting int           // followers; guarded by the shard's lock
	done    chan struct{} // made for the first who waits; guarded by the shard's lock
	entry   *cache.Entry  // what came of it, never nil then; read after ended

	// The leader writes these before the end.
	by     netip.AddrPort // the client that it is for; none for our own questions
	second bool           // it is the one more that a late follower has
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
// under way.
func (f *flights) join(hash uint64, key []byte, now time.Duration) (*flight, role) {
	s := f.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	fl := s.find(hash, key)
	switch {
	case fl == nil:
		return s.begin(hash, key, now), leader
	case fl.waiting >= f.maxFollowers:
		return nil, surplus
	}
	fl.waiting++
	return fl, follower
}

// lead makes the question of a key a flight of its own; nil if one is under way.
func (f *flights) lead(hash uint64, key []byte, now time.Duration) *flight {
	s := f.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.find(hash, key) != nil {
		return nil
	}
	return s.begin(hash, key, now)
}

// under is the flight of a key that is under way, nil without one. Whoever waits
// for it is none of its followers.
func (f *flights) under(hash uint64, key []byte) *flight {
	s := f.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.find(hash, key)
}

// find is the flight of a key, nil without one. The lock is held.
func (s *flightShard) find(hash uint64, key []byte) *flight {
	if fl := s.byKey[hash]; fl != nil && bytes.Equal(fl.key, key) {
		return fl
	}
	return nil
}

// begin makes a flight. Two keys with one hash do not share; the second then
// flies without being found. The lock is held.
func (s *flightShard) begin(hash uint64, key []byte, now time.Duration) *flight {
	fl := &flight{shard: s, key: bytes.Clone(key), began: now}
	if s.byKey == nil {
		s.byKey = make(map[uint64]*flight)
	}
	if s.byKey[hash] == nil {
		s.byKey[hash] = fl
	}
	return fl
}

// Who comes near the end of a flight that fails has hardly waited, and may have
// the question asked once more. Two kinds have waited all the same: the client
// that the flight is for, when it asks again, and those who come near the end of
// such a second flight, of whom many began with the first: with silent servers one
// flight would follow the other, and no client would ever be told.
const (
	longFlight = time.Second // one that failed sooner was told so
	lateJoin   = 4           // as a part of the flight's length, waited at most
)

// joinedLate reports whether the query of a client that followed from some time on
// waited for little of a flight that ended now.
func (fl *flight) joinedLate(client netip.AddrPort, came, now time.Duration) bool {
	took := now - fl.began
	return !fl.second && client != fl.by && took >= longFlight && now-came < took/lateJoin
}

// land ends a flight with what came of it and wakes its followers.
func (fl *flight) land(hash uint64, e *cache.Entry) {
	s := fl.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey[hash] == fl {
		delete(s.byKey, hash)
	}
	fl.entry = e
	if fl.done != nil {
		close(fl.done)
	}
}

// ended is closed when the flight has landed.
func (fl *flight) ended() <-chan struct{} {
	fl.shard.mu.Lock()
	defer fl.shard.mu.Unlock()
	if fl.done == nil {
		fl.done = make(chan struct{})
		if fl.entry != nil {
			close(fl.done)
		}
	}
	return fl.done
}

// has reports whether a key is being fetched.
func (f *flights) has(hash uint64, key []byte) bool {
	s := f.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	fl := s.byKey[hash]
	return fl != nil && bytes.Equal(fl.key, key)
}

func (f *flights) shard(hash uint64) *flightShard { return &f.shards[hash%flightShards] }
