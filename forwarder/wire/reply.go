package wire

// Error is why a reply cannot be used. Values are constants, so that errors
// cost nothing and can be compared.
type Error string

func (e Error) Error() string { return string(e) }

// Errors of ParseReply.
const (
	ErrShort    Error = "reply is shorter than a header"
	ErrNotReply Error = "message is not a response"
	ErrQuestion Error = "reply does not hold exactly one plain question"
	ErrRecord   Error = "reply holds a record that is cut off or malformed"
	ErrOPT      Error = "reply holds more than one OPT record or a misplaced one"
)

// Reply is a server's reply, borrowed from its bytes. Its structure was
// checked, so reading it cannot fail.
type Reply struct {
	Msg   []byte
	RCode RCode // 12 bits, those of the OPT record included
	Type  Type  // of the question
	Class Class // of the question
	TC    bool  // cut short by the server
	Via   uint8 // where it came from, in the words of who got it; 0 for unknown
	Made  bool  // by who got it, of an answer of another type

	qEnd   int // offset after the question
	end    int // offset after the last counted record
	opt    int // offset of the OPT record, 0 without
	counts [3]uint16
	simple bool // nothing but an OPT in last place has to be taken out
}

// ParseReply checks the structure of a whole reply with bounded work. A reply
// with TC set may break off anywhere (servers cut inside records): it is taken
// without records.
func ParseReply(msg []byte) (Reply, error) {
	r := Reply{Msg: msg, simple: true}
	switch {
	case len(msg) < HeaderLen:
		return r, ErrShort
	case !IsResponse(msg):
		return r, ErrNotReply
	case len(msg) > MaxMessage:
		return r, ErrRecord
	}
	r.RCode, r.TC = HeaderRCode(msg), IsTruncated(msg)
	end := plainNameEnd(msg, HeaderLen)
	if get16(msg, offQDCount) != 1 || end == 0 || end+4 > len(msg) {
		return r, ErrQuestion
	}
	r.Type, r.Class = Type(get16(msg, end)), Class(get16(msg, end+2))
	r.qEnd, r.end = end+4, end+4
	bare := r
	var solid bitmap
	err := r.checkRecords(&nameWalk{msg: msg, solid: &solid})
	if err != nil && r.TC {
		return bare, nil
	}
	return r, err
}

// checkRecords walks all records. What a forwarder changes in place later, the
// TTLs and the order of addresses, must not be part of a name, or names that
// were checked here would not be sound any more: no name may run through the
// fixed fields of a record or through an address.
func (r *Reply) checkRecords(walk *nameWalk) error {
	for s := Answer; s <= Additional; s++ {
		r.counts[s] = get16(r.Msg, offANCount+2*int(s))
		for range r.counts[s] {
			rr, next := readRecord(walk, r.end)
			if next == 0 {
				return ErrRecord
			}
			walk.solid.add(rr.TTLAt-4, rr.solidEnd())
			if !checkData(walk, rr) {
				return ErrRecord
			}
			if !r.noteSpecial(rr, s) {
				return ErrOPT
			}
			r.end = next
		}
	}
	return nil
}

// noteSpecial remembers the pseudo-records, which are between the server and
// us alone.
func (r *Reply) noteSpecial(rr Record, s Section) bool {
	if r.opt != 0 {
		r.simple = false // something follows the OPT
	}
	switch rr.Type {
	case TypeOPT:
		if r.opt != 0 || s != Additional || r.Msg[rr.Owner] != 0 {
			return false
		}
		r.opt = rr.Owner
		r.RCode |= RCode(rr.TTL>>24) << 4
	case TypeTSIG:
		r.simple = false
	case TypeSIG:
		r.simple = r.simple && s != Additional
	}
	return true
}

// HasOPT reports whether the server speaks EDNS.
func (r *Reply) HasOPT() bool { return r.opt != 0 }

// AuthenticData reports the AD bit (RFC 6840 section 5.8).
func (r *Reply) AuthenticData() bool { return get16(r.Msg, offFlags)&flagAD != 0 }

// Count is the number of records in a section, pseudo-records included.
func (r *Reply) Count(s Section) int { return int(r.counts[s]) }

// Name is the offset of the question's name.
func (r *Reply) Name() int { return HeaderLen }

// Simple reports whether AppendBare can make the reply ready for clients: an
// OPT, if any, is the last record, and there is no transaction signature.
// Anything else is rare and needs the message rebuilt.
func (r *Reply) Simple() bool { return r.simple }

// AppendBare appends the reply as it is kept and shared: without OPT and
// trailing bytes, ID 0, and of the flags only QR, TC, RA, AD and the response
// code, of which the lower 4 bits remain. AA is dropped because a forwarder is
// no authority (RFC 1035 section 4.1.1); RA stays set because stub resolvers
// take an empty answer without RA for a lame referral. The reply must be Simple.
func (r *Reply) AppendBare(dst []byte) []byte {
	start, end, extra := len(dst), r.end, r.counts[Additional]
	if r.opt != 0 {
		end = r.opt
		extra--
	}
	dst = append(dst, r.Msg[:end]...)
	bare := dst[start:]
	put16(bare, 0, 0)
	put16(bare, offFlags, flagQR|flagRA|get16(r.Msg, offFlags)&(flagTC|flagAD|rcodeMask))
	put16(bare, offANCount, r.counts[Answer])
	put16(bare, offNSCount, r.counts[Authority])
	put16(bare, offARCount, extra)
	return dst
}

// Cursor walks the records of a reply, in order.
type Cursor struct {
	msg  []byte
	off  int
	left [3]uint16
	at   Section
}

// Records starts at the first record of the answer section.
func (r *Reply) Records() Cursor { return Cursor{msg: r.Msg, off: r.qEnd, left: r.counts} }

// Next reads the next record; false at the end.
func (c *Cursor) Next(rr *Record) bool {
	for c.left[c.at] == 0 {
		if c.at == Additional {
			return false
		}
		c.at++
	}
	c.left[c.at]--
	*rr = recordAt(c.msg, c.off, nameEnd(c.msg, c.off))
	rr.Section = c.at
	c.off = rr.End
	return true
}

// SOAMinimum is the MINIMUM field of an SOA record of msg (RFC 2308 section 4).
func SOAMinimum(msg []byte, rr Record) uint32 { return get32(msg, rr.End-4) }

// Matches reports whether reply answers query, both whole messages: a response
// with the query's ID and question, letter case aside. A reply that repeats
// another question is somebody else's, or forged (RFC 5452 section 9.1).
func Matches(reply, query []byte) bool {
	if len(reply) < HeaderLen || len(query) < HeaderLen || ID(reply) != ID(query) {
		return false
	}
	flags := get16(reply, offFlags)
	if flags&flagQR == 0 || flags&opcodeMask != 0 || get16(reply, offQDCount) != 1 {
		return false
	}
	end := plainNameEnd(query, HeaderLen)
	if end == 0 || end+4 > len(query) || end+4 > len(reply) {
		return false
	}
	return equalFold(reply[HeaderLen:end], query[HeaderLen:end]) &&
		get32(reply, end) == get32(query, end)
}
