package wire

// AppendQueryFor appends q as if its client had asked for another name, in wire
// form, and type: with q's class and flags, and an OPT if q had one.
func AppendQueryFor(dst []byte, q *Query, name []byte, t Type) []byte {
	start := len(dst)
	dst = appendHeader(dst, q.ID, q.flags&(flagRD|flagAD|flagCD))
	dst = append16(append16(append(dst, name...), uint16(t)), uint16(q.Class))
	put16(dst[start:], offQDCount, 1)
	return AppendOPT(dst, start, q, q.UDPSize, NoEDE)
}
