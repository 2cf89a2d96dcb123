package upstream

import "time"

// The letters of a name asked of an external server over UDP are in upper and
// lower case by chance. Servers repeat the question as it was put; who forges a
// reply has to guess each letter, beside port and ID.
const (
	// caseFaults is how many replies in a row with the question in other
	// letters show that a server does not repeat them, so that it is asked as
	// the client spelled it,
	caseFaults = 2
	// for this time.
	sameCaseFor = time.Hour
)

// mixCase turns the letters of a name in wire form around by the bits, which
// are asked for 64 at a time. Length bytes are below all letters.
func mixCase(name []byte, bits func() uint64) {
	var word uint64
	left := 0
	for i, c := range name {
		if lower := c | 0x20; lower < 'a' || lower > 'z' {
			continue
		}
		if left == 0 {
			word, left = bits(), 64
		}
		name[i] ^= byte(word&1) << 5
		word, left = word>>1, left-1
	}
}

// sameCase notes whether a reply repeated the letters of the question.
func (s *score) sameCase(now time.Duration, same bool) {
	switch {
	case !same && s.caseFaults.Add(1) >= caseFaults:
		s.caseFaults.Store(0)
		s.sameCaseUntil.Store(int64(now + sameCaseFor))
	case same && s.caseFaults.Load() != 0:
		s.caseFaults.Store(0)
	}
}
