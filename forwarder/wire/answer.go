package wire

// AppendAnswerHead appends the header and question of an authoritative reply
// to q, with a response code of at most 15. The functions below add to it; all
// take start, the offset of the header in dst.
func AppendAnswerHead(dst []byte, q *Query, rcode RCode) []byte {
	start := len(dst)
	flags := flagQR | flagAA | flagRA | q.flags&(flagRD|flagCD) | uint16(rcode)&rcodeMask
	dst = append(appendHeader(dst, q.ID, flags), q.Question()...)
	put16(dst[start:], offQDCount, 1)
	return dst
}

// AppendAnswer adds a record of the question's name, type and class, with at
// most 65535 bytes of data, to the answer section.
func AppendAnswer(dst []byte, start int, q *Query, ttl uint32, data []byte) []byte {
	return AppendAnswerOf(dst, start, q, q.Type, ttl, data)
}

// AppendAnswerOf is AppendAnswer for a record of a type of its own, such as the
// alias that stands for the data asked for.
func AppendAnswerOf(dst []byte, start int, q *Query, t Type, ttl uint32, data []byte) []byte {
	dst = appendRecordHead(dst, HeaderLen, t, q.Class, ttl, len(data))
	dst = append(dst, data...)
	increment(dst[start:], offANCount)
	return dst
}

// AppendSOA adds the record that lets the client keep a negative answer for ttl
// seconds (RFC 2308 section 3). Its owner is the zone's apex: the last apex
// bytes of the question's name.
func AppendSOA(dst []byte, start int, q *Query, apex int, ttl uint32) []byte {
	const refresh, retry, expire, numbers = 3600, 600, 86400, 20
	owner := HeaderLen + len(q.Name()) - apex
	dst = appendRecordHead(dst, owner, TypeSOA, ClassIN, ttl, 2+1+numbers)
	dst = append(appendPointer(dst, owner), 0) // MNAME the apex, RNAME the root
	for _, v := range [...]uint32{1, refresh, retry, expire, ttl} {
		dst = append32(dst, v)
	}
	increment(dst[start:], offNSCount)
	return dst
}

func appendRecordHead(dst []byte, owner int, t Type, c Class, ttl uint32, size int) []byte {
	dst = append16(append16(appendPointer(dst, owner), uint16(t)), uint16(c))
	return append16(append32(dst, ttl), uint16(size))
}

func appendPointer(dst []byte, to int) []byte { return append16(dst, 0xC000|uint16(to)) }

func append32(dst []byte, v uint32) []byte {
	return append16(append16(dst, uint16(v>>16)), uint16(v))
}

func increment(msg []byte, off int) { put16(msg, off, get16(msg, off)+1) }
