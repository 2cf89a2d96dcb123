package wire

// AppendDenial appends the reply to q that says that its name does not exist,
// with the SOA record of another such reply of the same zone, in denial, whose
// TTL is lowered by age seconds; ok is false when that has none.
func AppendDenial(dst []byte, q *Query, denial []byte, age uint32) (_ []byte, ok bool) {
	r, err := ParseReply(denial)
	if err != nil {
		return dst, false
	}
	var rr Record
	for c := r.Records(); c.Next(&rr); {
		if rr.Type == TypeSOA && rr.Section == Authority {
			return appendDenial(dst, q, denial, &rr, age), true
		}
	}
	return dst, false
}

func appendDenial(dst []byte, q *Query, denial []byte, soa *Record, age uint32) []byte {
	const numbers = 20
	start := len(dst)
	flags := flagQR | flagRA | q.flags&(flagRD|flagCD) | uint16(NXDomain)
	dst = append(appendHeader(dst, q.ID, flags), q.Question()...)
	put16(dst[start:], offQDCount, 1)
	put16(dst[start:], offNSCount, 1)
	dst = appendUnfolded(dst, denial, soa.Owner)
	dst = append16(append16(dst, uint16(TypeSOA)), uint16(ClassIN))
	dst = append16(append32(dst, soa.TTL-min(soa.TTL, age)), 0)
	data := len(dst)
	dst = appendUnfolded(dst, denial, soa.Data)
	dst = appendUnfolded(dst, denial, nameEnd(denial, soa.Data))
	dst = append(dst, denial[soa.End-numbers:soa.End]...)
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
