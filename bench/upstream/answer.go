package upstream

import (
	"encoding/binary"

	"github.com/nodens-dns/nodens/bench/names"
)

const (
	headerSize = 12
	classIN    = 1
	typeSOA    = 6
	typeOPT    = 41
	ownUDPSize = 1232

	rcodeFormErr  = 1
	rcodeServFail = 2
	rcodeNXDomain = 3
	rcodeNotImp   = 4
	rcodeRefused  = 5

	flagsQR = 0x80
	flagsAA = 0x04
	flagsTC = 0x02
	flagsRD = 0x01
	flagsRA = 0x80 // in the second octet

	opcodeMask = 0x78
)

// answerer turns queries into replies. It has no state of its own.
type answerer struct{ zone *names.Zone }

// question is what of a query matters, found by read.
type question struct {
	end   int // of the question section
	name  []byte
	qtype uint16
	class uint16
	edns  bool
	do    bool
}

// reply appends to dst[:0] the reply to query, spoilt as told, and tells the
// class of the name. It is nil for what deserves no reply: something too short,
// or itself a reply.
func (a answerer) reply(dst, query []byte, what spoil) ([]byte, names.Class) {
	if len(query) < headerSize || query[2]&flagsQR != 0 {
		return nil, names.Missing
	}
	q, ok := read(query)
	switch {
	case query[2]&opcodeMask != 0:
		return refusal(dst, query, headerSize, rcodeNotImp), names.Missing
	case !ok:
		return refusal(dst, query, headerSize, rcodeFormErr), names.Missing
	case q.class != classIN:
		return refusal(dst, query, q.end, rcodeRefused), names.Missing
	}
	answer := a.zone.Answer(q.name, q.qtype)
	switch what {
	case servFail:
		dst = refusal(dst, query, q.end, rcodeServFail)
	case refused:
		dst = refusal(dst, query, q.end, rcodeRefused)
	case truncated:
		dst = refusal(dst, query, q.end, 0)
		dst[2] |= flagsTC
	case nxDomain:
		dst = a.negative(dst, query, q, names.Answer{RCode: rcodeNXDomain, TTL: names.NegativeTTL})
	case garbage:
		dst = a.truth(dst, query, q, answer)
		dst[headerSize+1] ^= 1
	case asItIs, drop:
		dst = a.truth(dst, query, q, answer)
	}
	if q.edns {
		dst = appendOPT(dst, q.do)
	}
	return dst, answer.Class
}

// read finds the question of a query whose header is whole. Names in queries
// are never compressed.
func read(query []byte) (question, bool) {
	if binary.BigEndian.Uint16(query[4:]) != 1 {
		return question{}, false
	}
	end := headerSize
	for end < len(query) && query[end] != 0 {
		if query[end] > 63 {
			return question{}, false
		}
		end += int(query[end]) + 1
	}
	end += 5
	if end > len(query) || end-4-headerSize > 255 {
		return question{}, false
	}
	q := question{
		end:   end,
		name:  query[headerSize : end-4],
		qtype: binary.BigEndian.Uint16(query[end-4:]),
		class: binary.BigEndian.Uint16(query[end-2:]),
	}
	// An OPT is looked for where clients put it: as the first record.
	rest := query[end:]
	if len(rest) >= 11 && rest[0] == 0 && binary.BigEndian.Uint16(rest[1:]) == typeOPT {
		q.edns, q.do = true, rest[7]&0x80 != 0
	}
	return q, true
}

// begin appends the header, with all record counts 0, and what of the query
// follows it up to end.
func begin(dst, query []byte, end int, flags1, flags2 byte) []byte {
	dst = append(dst[:0], query[:end]...)
	dst[2] = flagsQR | query[2]&(opcodeMask|flagsRD) | flags1
	dst[3] = query[3]&0x10 | flags2 // CD comes back
	clear(dst[6:headerSize])
	if end == headerSize {
		clear(dst[4:6])
	}
	return dst
}

func refusal(dst, query []byte, end int, rcode byte) []byte {
	return begin(dst, query, end, 0, flagsRA|rcode)
}

// truth appends what the zone says.
func (a answerer) truth(dst, query []byte, q question, answer names.Answer) []byte {
	if !answer.Addr.IsValid() {
		return a.negative(dst, query, q, answer)
	}
	flags1, flags2 := byte(flagsAA), byte(0)
	if answer.Class >= names.External {
		flags1, flags2 = 0, flagsRA // as if it came from a forwarder
	}
	dst = begin(dst, query, q.end, flags1, flags2)
	dst[7] = 1
	dst = append(dst, 0xc0, headerSize, byte(q.qtype>>8), byte(q.qtype), 0, classIN)
	dst = binary.BigEndian.AppendUint32(dst, answer.TTL)
	if answer.Addr.Is4() {
		addr := answer.Addr.As4()
		return append(append(dst, 0, 4), addr[:]...)
	}
	addr := answer.Addr.As16()
	return append(append(dst, 0, 16), addr[:]...)
}

// negative appends NXDOMAIN or NODATA with the SOA of the zone that says so. Its
// names are pointers into the question, which ends in that zone's name.
func (a answerer) negative(dst, query []byte, q question, answer names.Answer) []byte {
	suffix, cluster := a.zone.Authority(q.name)
	flags1, flags2 := byte(flagsAA), byte(0)
	if !cluster {
		flags1, flags2 = 0, flagsRA
	}
	dst = begin(dst, query, q.end, flags1, flags2|answer.RCode)
	dst[9] = 1
	at := 0xc000 | uint16(headerSize+len(q.name)-suffix)
	zone := [2]byte{byte(at >> 8), byte(at)}
	dst = append(append(dst, zone[:]...), 0, typeSOA, 0, classIN)
	dst = binary.BigEndian.AppendUint32(dst, answer.TTL)
	dst = append(dst, 0, 9+13+20)
	dst = append(append(dst, "\x02ns\x03dns"...), zone[:]...)
	dst = append(append(dst, "\x0ahostmaster"...), zone[:]...)
	for _, v := range [...]uint32{1, 7200, 1800, 86400, answer.TTL} { // serial, refresh, retry, expire, minimum
		dst = binary.BigEndian.AppendUint32(dst, v)
	}
	return dst
}

func appendOPT(dst []byte, do bool) []byte {
	dst[11]++
	var flags byte
	if do {
		flags = 0x80
	}
	return append(dst, 0, 0, typeOPT, ownUDPSize>>8, ownUDPSize&0xff, 0, 0, flags, 0, 0, 0)
}
