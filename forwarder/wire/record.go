package wire

// Section is where a record stands in a reply.
type Section uint8

// Sections, in their order in the message.
const (
	Answer Section = iota
	Authority
	Additional
)

// Record is one resource record, as offsets into its message (RFC 1035 section
// 3.2.1).
type Record struct {
	Owner   int // offset of its name
	TTLAt   int // offset of its TTL
	Data    int // offset of its RDATA
	End     int // offset after its RDATA
	TTL     uint32
	Type    Type
	Class   Class
	Section Section
}

// readRecord reads the record at off and returns the offset after it, 0 when
// it is broken.
func readRecord(walk *nameWalk, off int) (rr Record, next int) {
	fixed := walk.end(off)
	if fixed == 0 || fixed+10 > len(walk.msg) {
		return rr, 0
	}
	rr = recordAt(walk.msg, off, fixed)
	if rr.End > len(walk.msg) {
		return rr, 0
	}
	return rr, rr.End
}

// recordAt reads the record at off whose name ends at fixed.
func recordAt(msg []byte, off, fixed int) Record {
	return Record{
		Owner: off,
		Type:  Type(get16(msg, fixed)),
		Class: Class(get16(msg, fixed+2)),
		TTLAt: fixed + 4,
		TTL:   get32(msg, fixed+4),
		Data:  fixed + 10,
		End:   fixed + 10 + int(get16(msg, fixed+8)),
	}
}

// solidEnd is the offset up to which rr, its owner aside, holds no name.
func (rr *Record) solidEnd() int {
	if rr.Type == TypeA || rr.Type == TypeAAAA {
		return rr.End
	}
	return rr.Data
}

// checkData checks the RDATA that the forwarder itself reads, or that would
// make a resolver choke. All other types are opaque (RFC 3597).
func checkData(walk *nameWalk, rr Record) bool {
	size := rr.End - rr.Data
	switch rr.Type {
	case TypeA:
		return rr.Class != ClassIN || size == 4
	case TypeAAAA:
		return size == 16
	case TypeNS, TypeCNAME, TypePTR, TypeDNAME:
		return walk.end(rr.Data) == rr.End
	case TypeMX:
		return walk.end(rr.Data+2) == rr.End
	case TypeSRV:
		return walk.end(rr.Data+6) == rr.End
	case TypeSOA:
		mname := walk.end(rr.Data)
		if mname == 0 {
			return false
		}
		rname := walk.end(mname)
		return rname != 0 && rname+20 == rr.End
	}
	return true
}

// nameEnd skips a name that was checked before.
func nameEnd(msg []byte, off int) int {
	for {
		n := int(msg[off])
		switch {
		case n == 0:
			return off + 1
		case n >= 0xC0:
			return off + 2
		}
		off += 1 + n
	}
}
