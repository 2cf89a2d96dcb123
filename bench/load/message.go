package load

import (
	"encoding/binary"

	"github.com/nodens-dns/nodens/bench/names"
)

const (
	headerSize  = 12
	maxQuestion = 255 + 4
	maxQuery    = 2 + headerSize + maxQuestion + 11 // with its length and an OPT

	flagQR     = 0x80
	flagTC     = 0x02
	opcodeMask = 0x78

	rcodeServFail = 2
	rcodeNXDomain = 3
)

// appendQuery appends a query with its length in front, as TCP wants it: RD set,
// and an OPT of 1232 octets if q has one.
func appendQuery(dst []byte, id uint16, q *names.Query) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, byte(id>>8), byte(id), 1, 0, 0, 1, 0, 0, 0, 0, 0, 0)
	dst = append(dst, q.Question...)
	if q.EDNS {
		dst[start+13] = 1
		dst = append(dst, 0, 0, 41, 1232>>8, 1232&0xff, 0, 0, 0, 0, 0, 0)
	}
	binary.BigEndian.PutUint16(dst[start:], uint16(len(dst)-start-2))
	return dst
}

// questionEnd gives the offset behind the first question, or -1 if it is cut
// off or its name compressed.
func questionEnd(msg []byte) int {
	off := headerSize
	for off < len(msg) && msg[off] != 0 {
		if msg[off] > 63 {
			return -1
		}
		off += int(msg[off]) + 1
	}
	off += 5
	if off > len(msg) || off-headerSize > maxQuestion {
		return -1
	}
	return off
}

// record is one resource record; data borrows from the message. owner and start are
// where its name and its data stand there.
type record struct {
	kind         uint16
	data         []byte
	owner, start int
}

// readRecord reads the record at off and gives the offset behind it, or -1 if
// it is cut off. Pointers in its name are not followed.
func readRecord(msg []byte, off int) (record, int) {
	owner := off
	for {
		if off >= len(msg) {
			return record{}, -1
		}
		n := int(msg[off])
		off++
		if n == 0 {
			break
		}
		if n >= 0xc0 {
			off++
			break
		}
		if n > 63 {
			return record{}, -1
		}
		off += n
	}
	if off+10 > len(msg) {
		return record{}, -1
	}
	kind := binary.BigEndian.Uint16(msg[off:])
	start := off + 10
	end := start + int(binary.BigEndian.Uint16(msg[off+8:]))
	if end > len(msg) {
		return record{}, -1
	}
	return record{kind, msg[start:end], owner, start}, end
}
