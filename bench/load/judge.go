package load

import (
	"encoding/binary"
	"hash/maphash"
	"net/netip"

	"github.com/nodens-dns/nodens/bench/names"
)

// verdict is what became of a query.
type verdict uint8

const (
	right verdict = iota
	truncated
	servFail
	wrongFormat   // not a reply, or it cannot be read
	wrongQuestion // of another name, type or class
	wrongCase     // of the same name in other letter case
	wrongRCode
	wrongRecords // address missing, of another value or name, or present where none exists
)

// String names the reason as a report prints it.
func (v verdict) String() string {
	return [...]string{"right", "truncated", "servfail", "format", "question", "case", "rcode", "records"}[v]
}

// want is what a right reply to one query says.
type want struct {
	exact, folded uint64   // hashes of the question as sent, and in lower case
	addr          [16]byte // an IPv4 address is mapped
	qtype         uint16
	rcode         uint8
	hasAddr       bool
	unjudged      bool
}

// judge holds the hashes' seed.
type judge struct{ seed maphash.Seed }

func newJudge() judge { return judge{maphash.MakeSeed()} }

// expect notes what a right reply to q says.
func (j judge) expect(q *names.Query) want {
	w := want{
		exact:    maphash.Bytes(j.seed, q.Question),
		folded:   j.folded(q.Question),
		qtype:    q.Type(),
		rcode:    q.Want.RCode,
		unjudged: q.Unjudged,
	}
	if q.Want.Addr.IsValid() {
		w.addr, w.hasAddr = q.Want.Addr.As16(), true
	}
	return w
}

func (j judge) folded(question []byte) uint64 {
	var buf [maxQuestion]byte
	n := copy(buf[:], question)
	for i, c := range buf[:n] {
		if c >= 'A' && c <= 'Z' {
			buf[i] = c + ('a' - 'A')
		}
	}
	return maphash.Bytes(j.seed, buf[:n])
}

// of judges a reply that carries the ID of the query that w belongs to.
func (j judge) of(msg []byte, w *want) verdict {
	if len(msg) < headerSize || msg[2]&flagQR == 0 || msg[2]&opcodeMask != 0 {
		return wrongFormat
	}
	rcode := msg[3] & 0x0f
	questions := binary.BigEndian.Uint16(msg[4:])
	if questions == 0 && rcode != 0 { // a server that did not understand may leave it out
		return ofRCode(rcode)
	}
	end := questionEnd(msg)
	if questions != 1 || end < 0 {
		return wrongFormat
	}
	question := msg[headerSize:end]
	switch {
	case maphash.Bytes(j.seed, question) == w.exact:
	case j.folded(question) == w.folded:
		return wrongCase
	default:
		return wrongQuestion
	}
	switch {
	case rcode == rcodeServFail:
		return servFail
	case msg[2]&flagTC != 0:
		return truncated
	case w.unjudged && (rcode == 0 || rcode == rcodeNXDomain):
		return right
	case rcode != w.rcode:
		return wrongRCode
	}
	return ofRecords(msg, end, w)
}

func ofRCode(rcode byte) verdict {
	if rcode == rcodeServFail {
		return servFail
	}
	return wrongRCode
}

// ofRecords looks for addresses in the answer section: the one that is wanted
// must be there, of the name that was asked for or its alias, and no other.
func ofRecords(msg []byte, off int, w *want) verdict {
	found, owner := false, owner(msg, off)
	if owner < 0 {
		return wrongFormat
	}
	for range binary.BigEndian.Uint16(msg[6:]) {
		r, next := readRecord(msg, off)
		if next < 0 {
			return wrongFormat
		}
		off = next
		if r.kind != w.qtype || r.kind != names.TypeA && r.kind != names.TypeAAAA {
			continue
		}
		addr, ok := netip.AddrFromSlice(r.data)
		if !ok || !w.hasAddr || addr.As16() != w.addr || !sameName(msg, r.owner, owner) {
			return wrongRecords
		}
		found = true
	}
	if found != w.hasAddr {
		return wrongRecords
	}
	return right
}
