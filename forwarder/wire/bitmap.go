package wire

// bitmap has a bit for every byte of a message that a name reached through a
// pointer can touch: pointers have 14 bits (RFC 1035 section 4.1.4), and a name
// is at most MaxName bytes.
type bitmap [(1<<14 + MaxName + 63) / 64]uint64

// add sets the bits from up to, not including, end.
func (b *bitmap) add(from, end int) {
	end = min(end, 64*len(b))
	for at := from; at < end; at = at&^63 + 64 {
		b[at/64] |= mask(at, end)
	}
}

// has reports whether a bit from up to, not including, end is set.
func (b *bitmap) has(from, end int) bool {
	end = min(end, 64*len(b))
	for at := from; at < end; at = at&^63 + 64 {
		if b[at/64]&mask(at, end) != 0 {
			return true
		}
	}
	return false
}

// mask has the bits of at's word that stand for the bytes from at to end.
func mask(at, end int) uint64 {
	m := ^uint64(0) << (at & 63)
	if left := end - at&^63; left < 64 {
		m &= 1<<left - 1
	}
	return m
}
