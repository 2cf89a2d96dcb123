package load

import (
	"bytes"
	"encoding/binary"
)

const (
	typeCNAME = 5

	maxAliases  = 16
	maxLabels   = 128 // of a name of 255 octets
	maxPointers = 128 // before one label
)

// owner is where the name stands whose records answer the question: the question's, or
// the one that the aliases of the answer section lead to, in whatever order they come
// (RFC 1034, section 3.6.2). It is -1 if the section cannot be read or they go round.
func owner(msg []byte, section int) int {
	name := headerSize
	for range maxAliases {
		to, ok := alias(msg, section, name)
		if !ok {
			return -1
		}
		if to < 0 {
			return name
		}
		name = to
	}
	return -1
}

// alias is where the name stands that the answer section has for name, -1 for none.
func alias(msg []byte, section, name int) (to int, ok bool) {
	to = -1
	for range binary.BigEndian.Uint16(msg[6:]) {
		r, next := readRecord(msg, section)
		if next < 0 {
			return -1, false
		}
		if r.kind == typeCNAME && sameName(msg, r.owner, name) {
			to = r.start
		}
		section = next
	}
	return to, true
}

// sameName compares the names at two places of a message, in whatever letter case. One
// that cannot be read is like no other.
func sameName(msg []byte, a, b int) bool {
	for range maxLabels {
		labelA, nextA := label(msg, a)
		labelB, nextB := label(msg, b)
		if nextA < 0 || nextB < 0 || !bytes.EqualFold(labelA, labelB) {
			return false
		}
		if len(labelA) == 0 {
			return true
		}
		a, b = nextA, nextB
	}
	return false
}

// label reads the label at off, behind the pointers there, and gives the offset behind
// it, or -1 if it cannot be read.
func label(msg []byte, off int) (text []byte, next int) {
	for range maxPointers {
		if off >= len(msg) {
			break
		}
		n := int(msg[off])
		if end := off + 1 + n; n <= 63 && end <= len(msg) {
			return msg[off+1 : end], end
		}
		if n < 0xc0 || off+1 >= len(msg) {
			break
		}
		off = n&0x3f<<8 | int(msg[off+1])
	}
	return nil, -1
}
