package wire

// Fault is what ParseQuery found wrong with a message, as the reply it asks for.
type Fault uint8

// Faults.
const (
	// Sound queries can be answered.
	Sound Fault = iota
	// Ignore: shorter than a header, or a response. Answering a response
	// would let two servers talk to each other for ever.
	Ignore
	// Malformed: FORMERR, with the question when it was readable.
	Malformed
	// UnknownOpcode: NOTIMP (RFC 8906 section 3.1.4).
	UnknownOpcode
	// UnknownVersion: BADVERS (RFC 6891 section 6.1.3).
	UnknownVersion
)

// MaxKey is the longest key in bytes: a name, type, class and flags.
const MaxKey = MaxName + 5

// maxOptions is how many EDNS options of one query are looked at; more is
// Malformed.
const maxOptions = 32

// Query is a client's query, borrowed from its bytes.
type Query struct {
	msg []byte
	end int // offset after the question; 0 when it was not readable

	Type    Type
	Class   Class
	ID      uint16
	UDPSize uint16 // what the client can take over UDP, at least MinUDPSize
	flags   uint16
	version uint8
	EDNS    bool // has an OPT record
	DO      bool // wants DNSSEC records (RFC 3225)
}

// ParseQuery reads a message that came from a client. Bytes after the last
// counted record are ignored and never relayed. With a Fault other than Sound
// the Query holds what could be read, enough for AppendError.
func ParseQuery(msg []byte) (Query, Fault) {
	q := Query{msg: msg, UDPSize: MinUDPSize}
	if len(msg) < HeaderLen {
		return q, Ignore
	}
	q.ID, q.flags = get16(msg, 0), get16(msg, offFlags)
	if q.flags&flagQR != 0 {
		return q, Ignore
	}
	sound := q.parseQuestion()
	if sound {
		sound = q.parseRecords(&nameWalk{msg: msg})
	}
	switch {
	case q.flags&opcodeMask != 0:
		return q, UnknownOpcode
	case !sound:
		return q, Malformed
	case q.EDNS && q.version != 0:
		return q, UnknownVersion
	}
	return q, Sound
}

// RD reports whether the client wants recursion.
func (q *Query) RD() bool { return q.flags&flagRD != 0 }

// AD reports whether the client understands the AD bit (RFC 6840 section 5.7).
func (q *Query) AD() bool { return q.flags&flagAD != 0 }

// CD reports whether the client asks for unchecked data (RFC 4035 section 3.2.2).
func (q *Query) CD() bool { return q.flags&flagCD != 0 }

// HasQuestion reports whether the question could be read.
func (q *Query) HasQuestion() bool { return q.end != 0 }

// Name is the question's name in wire form as the client spelled it; borrowed.
func (q *Query) Name() []byte { return q.msg[HeaderLen : q.end-4] }

// Question is the question's name, type and class as the client sent them;
// borrowed, empty when the question could not be read.
func (q *Query) Question() []byte {
	if q.end == 0 {
		return nil
	}
	return q.msg[HeaderLen:q.end]
}

// AppendKey appends the identity of the answer: folded name, type, class, DO
// and CD. Everything else a client may send does not change the answer.
func (q *Query) AppendKey(dst []byte) []byte {
	dst = AppendFolded(dst, q.Name())
	dst = append(dst, q.msg[q.end-4:q.end]...)
	var flags byte
	if q.DO {
		flags |= 1
	}
	if q.CD() {
		flags |= 2
	}
	return append(dst, flags)
}

// parseQuestion reads the one question (RFC 9619 section 4). A pointer there
// has nothing to point at.
func (q *Query) parseQuestion() bool {
	if get16(q.msg, offQDCount) != 1 {
		return false
	}
	end := plainNameEnd(q.msg, HeaderLen)
	if end == 0 || end+4 > len(q.msg) {
		return false
	}
	q.Type, q.Class = Type(get16(q.msg, end)), Class(get16(q.msg, end+2))
	q.end = end + 4
	return true
}

// parseRecords checks what follows the question: no answer or authority (but
// IXFR's SOA), and of additional records only an OPT and, as the last, a
// transaction signature. It reads on behind a fault, because the reply that
// tells of it needs to know whether there was an OPT.
func (q *Query) parseRecords(walk *nameWalk) bool {
	an, ns := int(get16(q.msg, offANCount)), int(get16(q.msg, offNSCount))
	ar := int(get16(q.msg, offARCount))
	sound := an == 0 && (ns == 0 || ns == 1 && q.Type == TypeIXFR)
	off := q.end
	for left := an + ns + ar; left > 0; left-- {
		rr, next := readRecord(walk, off)
		if next == 0 {
			return false
		}
		off = next
		switch {
		case left > ar:
			// IXFR's SOA; the query is refused later.
		case rr.Type == TypeOPT:
			sound = q.readOPT(rr) && sound
		case rr.Type == TypeTSIG || rr.Type == TypeSIG:
			// Signed queries are answered unsigned: there are no keys here.
			sound = sound && left == 1
		default:
			sound = false
		}
	}
	return sound
}

// readOPT takes size, version and DO from the OPT record, of which there may be
// one, owned by the root, and checks that its options fill it exactly (RFC 6891
// section 6.1). Options are not echoed or forwarded, so nothing else of them is
// read.
func (q *Query) readOPT(rr Record) bool {
	if q.EDNS || q.msg[rr.Owner] != 0 {
		return false
	}
	q.EDNS = true
	q.UDPSize = max(uint16(rr.Class), MinUDPSize)
	q.DO = rr.TTL&(1<<15) != 0
	q.version = uint8(rr.TTL >> 16)
	for off, n := rr.Data, 0; off < rr.End; n++ {
		if n == maxOptions || off+4 > rr.End {
			return false
		}
		off += 4 + int(get16(q.msg, off+2))
		if off > rr.End {
			return false
		}
	}
	return true
}
