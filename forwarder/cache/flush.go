package cache

// flushStep is how many entries are looked at under one holding of the lock.
const flushStep = 256

// flush drops the entries whose key matches.
func (s *shard) flush(matches func(key []byte) bool) (dropped int) {
	hashes := s.hashes()
	for len(hashes) > 0 {
		n := min(len(hashes), flushStep)
		dropped += s.flushSome(hashes[:n], matches)
		hashes = hashes[n:]
	}
	return dropped
}

// hashes are those of all entries.
func (s *shard) hashes() []uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append(s.fresh.Keys(), s.proven.Keys()...)
}

func (s *shard) flushSome(hashes []uint64, matches func(key []byte) bool) (dropped int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, hash := range hashes {
		if e, list := s.there(hash); e != nil && matches(e.Key()) {
			s.remove(list, hash, e)
			dropped++
		}
	}
	return dropped
}
