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
	return uint32(get16(b, off))<<16 | uint32(get16(b, off+2))
}

func put32(b []byte, off int, v uint32) {
	put16(b, off, uint16(v>>16))
	put16(b, off+2, uint16(v))
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
