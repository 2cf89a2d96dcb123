package wire

// AppendQuery appends a query for q's question as the forwarder asks it: built
// from parsed fields only, so that no byte of the client's packet but the
// question travels on. RD, CD and DO are the client's; AD is always set, so
// that the reply says whether it is authentic (RFC 6840 section 5.7). The OPT
// is our own, with udpSize as the size we can take; 0 leaves it out.
func AppendQuery(dst []byte, q *Query, id, udpSize uint16) []byte {
	flags := flagAD | q.flags&(flagRD|flagCD)
	dst = appendHeader(dst, id, flags)
	start := len(dst) - HeaderLen
	dst = append(dst, q.Question()...)
	put16(dst[start:], offQDCount, 1)
	if udpSize != 0 {
		dst = appendOPT(dst, start, udpSize, 0, q.DO, NoEDE)
	}
	return dst
}

// AppendError appends a reply without records: the client's ID and question,
// RA set, the response code, and an OPT if the client sent one, with the
// extended error if one is given. udpSize is what we can take over UDP.
func AppendError(dst []byte, q *Query, rcode RCode, udpSize uint16, ede EDE) []byte {
	start := len(dst)
	flags := flagQR | flagRA | q.flags&(opcodeMask|flagRD|flagCD) | uint16(rcode)&rcodeMask
	dst = appendHeader(dst, q.ID, flags)
	if q.end != 0 {
		dst = append(dst, q.Question()...)
		put16(dst[start:], offQDCount, 1)
	}
	if q.EDNS {
		dst = appendOPT(dst, start, udpSize, rcode, q.DO, ede)
	}
	return dst
}

// Echo makes the bare reply in msg the client's own: ID, RD and CD from its
// query, its question laid over ours, so that its letter case comes back
// (answer names that point at the question follow by themselves), and AD only
// for clients that asked with AD or DO (RFC 6840 section 5.8). The question in
// msg must have the length of the client's, which equal keys give.
func Echo(msg []byte, q *Query) {
	put16(msg, 0, q.ID)
	flags := get16(msg, offFlags) | q.flags&(flagRD|flagCD)
	if !q.AD() && !q.DO {
		flags &^= flagAD
	}
	put16(msg, offFlags, flags)
	copy(msg[HeaderLen:q.end], q.Question())
}

// AgeTTLs lowers the TTLs at the given offsets by age seconds, never below 0.
func AgeTTLs(msg []byte, offsets []uint16, age uint32) {
	if age == 0 {
		return
	}
	for _, at := range offsets {
		ttl := get32(msg, int(at))
		put32(msg, int(at), ttl-min(ttl, age))
	}
}

// CapTTLs lowers the TTLs at the given offsets to at most ttl seconds.
func CapTTLs(msg []byte, offsets []uint16, ttl uint32) {
	for _, at := range offsets {
		put32(msg, int(at), min(get32(msg, int(at)), ttl))
	}
}

// SetTTL writes one TTL, in seconds.
func SetTTL(msg []byte, at int, ttl uint32) { put32(msg, at, ttl) }

// AppendOPT appends our OPT to the message that starts at dst[start], if q had
// one (RFC 6891 section 7), with an extended error unless it is NoEDE. DO is
// copied, no other flag and no option is.
func AppendOPT(dst []byte, start int, q *Query, udpSize uint16, ede EDE) []byte {
	if !q.EDNS {
		return dst
	}
	return appendOPT(dst, start, udpSize, 0, q.DO, ede)
}

func appendHeader(dst []byte, id, flags uint16) []byte {
	dst = append16(append16(dst, id), flags)
	return append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
}

func appendOPT(dst []byte, start int, udpSize uint16, rcode RCode, do bool, ede EDE) []byte {
	var doBit byte
	if do {
		doBit = 1 << 7
	}
	dst = append(dst, 0)
	dst = append16(append16(dst, uint16(TypeOPT)), udpSize)
	dst = append(dst, byte(rcode>>4), 0, doBit, 0)
	if ede == NoEDE {
		dst = append16(dst, 0)
	} else {
		dst = append16(append16(dst, EDELen), optionEDE)
		dst = append16(append16(dst, 2), uint16(ede-1))
	}
	put16(dst[start:], offARCount, get16(dst[start:], offARCount)+1)
	return dst
}
