package wire

// Bits of the header's second word (RFC 1035 section 4.1.1, RFC 4035 section
// 3.2 for AD and CD).
const (
	flagQR     uint16 = 1 << 15
	flagAA     uint16 = 1 << 10
	flagTC     uint16 = 1 << 9
	flagRD     uint16 = 1 << 8
	flagRA     uint16 = 1 << 7
	flagAD     uint16 = 1 << 5
	flagCD     uint16 = 1 << 4
	opcodeMask uint16 = 15 << 11
	rcodeMask  uint16 = 15
)

// Offsets of the header's fields.
const (
	offFlags   = 2
	offQDCount = 4
	offANCount = 6
	offNSCount = 8
	offARCount = 10
)

func get16(b []byte, off int) uint16 {
	_ = b[off+1]
	return uint16(b[off])<<8 | uint16(b[off+1])
}

func put16(b []byte, off int, v uint16) {
	_ = b[off+1]
	b[off], b[off+1] = byte(v>>8), byte(v)
}

func get32(b []byte, off int) uint32 {
	b = b[off : off+4]
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

func put32(b []byte, off int, v uint32) {
	b = b[off : off+4]
	b[0], b[1], b[2], b[3] = byte(v>>24), byte(v>>16), byte(v>>8), byte(v)
}

// get64 and put64 take the bytes in the order of small machines, where that is
// one load or store; their callers do not mind which.
func get64(b []byte) uint64 {
	_ = b[7]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

func put64(b []byte, v uint64) {
	_ = b[7]
	b[0], b[1], b[2], b[3] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24)
	b[4], b[5], b[6], b[7] = byte(v>>32), byte(v>>40), byte(v>>48), byte(v>>56)
}

func append16(dst []byte, v uint16) []byte { return append(dst, byte(v>>8), byte(v)) }

// ID is the message's identifier. msg must hold at least two bytes.
func ID(msg []byte) uint16 { return get16(msg, 0) }

// SetID changes the message's identifier. msg must hold at least two bytes.
func SetID(msg []byte, id uint16) { put16(msg, 0, id) }

// IsResponse reports whether msg has a whole header with QR set.
func IsResponse(msg []byte) bool {
	return len(msg) >= HeaderLen && get16(msg, offFlags)&flagQR != 0
}

// IsTruncated reports whether msg has a whole header with TC set.
func IsTruncated(msg []byte) bool {
	return len(msg) >= HeaderLen && get16(msg, offFlags)&flagTC != 0
}

// HeaderRCode is the lower four bits of the response code. msg must hold a
// whole header.
func HeaderRCode(msg []byte) RCode { return RCode(get16(msg, offFlags) & rcodeMask) }
