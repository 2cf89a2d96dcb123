package wire

// AppendDenial appends the reply to q that says that its name does not exist, with
// the SOA record of another such reply of the same zone, in denial, whose TTL is
// lowered by age seconds. Without one in denial it has none.
func AppendDenial(dst []byte, q *Query, denial []byte, age uint32) []byte {
	start := len(dst)
	flags := flagQR | flagRA | q.flags&(flagRD|flagCD) | uint16(NXDomain)
	dst = append(appendHeader(dst, q.ID, flags), q.Question()...)
	put16(dst[start:], offQDCount, 1)
	r, err := ParseReply(denial)
	if err != nil {
		return dst
	}
	var rr Record
	for c := r.Records(); c.Next(&rr); {
		if rr.Type == TypeSOA && rr.Section == Authority {
			put16(dst[start:], offNSCount, 1)
			return appendUnfoldedSOA(dst, denial, &rr, age)
		}
	}
	return dst
}

// appendUnfoldedSOA appends an SOA record of msg without pointers.
func appendUnfoldedSOA(dst, msg []byte, soa *Record, age uint32) []byte {
	const numbers = 20
	dst = appendUnfolded(dst, msg, soa.Owner)
	dst = append16(append16(dst, uint16(TypeSOA)), uint16(ClassIN))
	dst = append16(append32(dst, soa.TTL-min(soa.TTL, age)), 0)
	data := len(dst)
	dst = appendUnfolded(dst, msg, soa.Data)
	dst = appendUnfolded(dst, msg, nameEnd(msg, soa.Data))
	dst = append(dst, msg[soa.End-numbers:soa.End]...)
	put16(dst, data-2, uint16(len(dst)-data))
	return dst
}

// appendUnfolded appends the name at off of a checked message without pointers.
func appendUnfolded(dst, msg []byte, off int) []byte {
	for {
		var text []byte
		text, off = label(msg, off)
		dst = append(append(dst, byte(len(text))), text...)
		if len(text) == 0 {
			return dst
		}
	}
}
