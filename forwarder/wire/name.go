package wire

// Bounds on following compression pointers.
const (
	// maxHops is how many pointers one name may follow: a name has at most 127
	// labels and each pointer must lead to at least one.
	maxHops = 126
	// MaxExpansion is how many labels and pointers the names of one message may
	// hold when they are unfolded. A message of MaxMessage bytes can be built to
	// hold millions. The largest honest ones, thousands of records of one long
	// name, stay well below.
	MaxExpansion = 64 << 10
)

// plainNameEnd returns the offset after the name that starts at off and holds
// no pointer, or 0 when it does not fit its bounds.
func plainNameEnd(msg []byte, off int) int {
	last := min(len(msg), off+MaxName)
	for off < last {
		n := int(msg[off])
		off += 1 + n
		switch {
		case n == 0:
			return off
		case n > MaxLabel:
			return 0
		}
	}
	return 0
}

// nameWalk skips names of one message and counts the work.
type nameWalk struct {
	msg      []byte
	solid    *bitmap // bytes that no name may run through; nil for none
	expanded int     // labels and pointers seen
}

// end returns the offset after the name that starts at off, or 0 when the name
// is broken. A pointer leads back to an unbroken stretch of labels that lies
// wholly before the stretch that led to it, so that every walk ends.
func (w *nameWalk) end(off int) int {
	var next, size, hops int
	start, limit := off, len(w.msg) // of this stretch; it ends before limit
	for off < limit {
		n := int(w.msg[off])
		w.expanded++
		switch {
		case n == 0:
			return w.finish(start, off+1, next)
		case n <= MaxLabel:
			size += 1 + n
			off += 1 + n
			if size >= MaxName {
				return 0
			}
		case n >= 0xC0:
			to := pointer(w.msg[:limit], off)
			hops++
			if to < HeaderLen || hops > maxHops {
				return 0
			}
			if next = w.finish(start, off+2, next); next == 0 {
				return 0
			}
			limit, off, start = start, to, to
		default:
			return 0
		}
	}
	return 0
}

// finish checks the stretch of a name from start to end and returns the offset
// after the name: next, or end if this is its first stretch.
func (w *nameWalk) finish(start, end, next int) int {
	if w.expanded > MaxExpansion {
		return 0
	}
	if next == 0 {
		return end
	}
	if w.solid != nil && w.solid.has(start, end) {
		return 0
	}
	return next
}

// pointer reads the pointer at off; -1 when it is cut off.
func pointer(msg []byte, off int) int {
	if off+1 >= len(msg) {
		return -1
	}
	return int(get16(msg, off) & 0x3FFF)
}

// label returns the label at off, following pointers, and the offset after it.
// The name must have been checked before.
func label(msg []byte, off int) (text []byte, next int) {
	for msg[off] >= 0xC0 {
		off = pointer(msg, off)
	}
	n := int(msg[off])
	return msg[off+1 : off+1+n], off + 1 + n
}

// EqualNames compares the names at offsets a and b of a checked message,
// letter case aside (RFC 4343: ASCII letters only).
func EqualNames(msg []byte, a, b int) bool {
	for {
		var la, lb []byte
		la, a = label(msg, a)
		lb, b = label(msg, b)
		if len(la) != len(lb) || !equalFold(la, lb) {
			return false
		}
		if len(la) == 0 {
			return true
		}
		if a == b {
			return true
		}
	}
}

func equalFold(a, b []byte) bool {
	for i := range a {
		if a[i] != b[i] && fold[a[i]] != fold[b[i]] {
			return false
		}
	}
	return true
}

// AppendFolded appends a name in wire form with its ASCII letters in lower
// case (RFC 4343). A length byte is at most 63, below every letter, so the
// whole form can be folded byte by byte.
func AppendFolded(dst, name []byte) []byte {
	n := len(dst)
	dst = append(dst, name...)
	rest := dst[n:]
	for ; len(rest) >= 8; rest = rest[8:] {
		put64(rest, lower8(get64(rest)))
	}
	for i, c := range rest {
		rest[i] = fold[c]
	}
	return dst
}

// lower8 folds eight bytes at once. Without its top bit a byte can take an
// addition that sets the top bit from 'A' on, or from behind 'Z' on, and does
// not reach the next byte; the letters differ by 0x20, a quarter of that bit.
func lower8(v uint64) uint64 {
	const each, top = 0x0101010101010101, 0x8080808080808080
	low := v &^ top
	upper := (low + each*(0x80-'A')) &^ (low + each*(0x80-'Z'-1)) &^ v & top
	return v | upper>>2
}

// AppendText appends a name in wire form as text with a final dot (RFC 1035
// section 5.1): dots and backslashes inside labels are escaped, bytes outside
// printable ASCII written as \DDD.
func AppendText(dst, name []byte) []byte {
	if len(name) <= 1 {
		return append(dst, '.')
	}
	for off := 0; off < len(name) && name[off] != 0; {
		n := int(name[off])
		for _, c := range name[off+1 : off+1+n] {
			dst = appendEscaped(dst, c)
		}
		dst = append(dst, '.')
		off += 1 + n
	}
	return dst
}

func appendEscaped(dst []byte, c byte) []byte {
	switch {
	case c == '.' || c == '\\' || c == '"' || c == ';' || c == '(' || c == ')' || c == '@' || c == '$':
		return append(dst, '\\', c)
	case c <= ' ' || c > '~':
		return append(dst, '\\', '0'+c/100, '0'+c/10%10, '0'+c%10)
	}
	return append(dst, c)
}

// AppendName appends the wire form of a name given as plain text ("svc.local."
// or "svc.local"), with no escapes. ok is false when a label or the name is
// empty or too long; dst is then returned as it was.
func AppendName(dst []byte, text string) (_ []byte, ok bool) {
	start := len(dst)
	if text == "." {
		return append(dst, 0), true
	}
	if n := len(text); n > 0 && text[n-1] == '.' {
		text = text[:n-1]
	}
	for at := 0; at <= len(text); {
		end := at
		for end < len(text) && text[end] != '.' {
			end++
		}
		if n := end - at; n == 0 || n > MaxLabel {
			return dst[:start], false
		}
		dst = append(dst, byte(end-at))
		dst = append(dst, text[at:end]...)
		at = end + 1
	}
	dst = append(dst, 0)
	if len(dst)-start > MaxName {
		return dst[:start], false
	}
	return dst, true
}

// fold maps ASCII upper case to lower case and every other byte to itself.
var fold = [256]byte{
	0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f,
	0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f,
	0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x2b, 0x2c, 0x2d, 0x2e, 0x2f,
	0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3a, 0x3b, 0x3c, 0x3d, 0x3e, 0x3f,
	0x40, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x6b, 0x6c, 0x6d, 0x6e, 0x6f,
	0x70, 0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a, 0x5b, 0x5c, 0x5d, 0x5e, 0x5f,
	0x60, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x6b, 0x6c, 0x6d, 0x6e, 0x6f,
	0x70, 0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a, 0x7b, 0x7c, 0x7d, 0x7e, 0x7f,
	0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x8b, 0x8c, 0x8d, 0x8e, 0x8f,
	0x90, 0x91, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9a, 0x9b, 0x9c, 0x9d, 0x9e, 0x9f,
	0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf,
	0xb0, 0xb1, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xbb, 0xbc, 0xbd, 0xbe, 0xbf,
	0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xcb, 0xcc, 0xcd, 0xce, 0xcf,
	0xd0, 0xd1, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda, 0xdb, 0xdc, 0xdd, 0xde, 0xdf,
	0xe0, 0xe1, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea, 0xeb, 0xec, 0xed, 0xee, 0xef,
	0xf0, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe, 0xff,
}
