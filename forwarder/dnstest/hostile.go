package dnstest

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
)

// Outcome is what a client's packet deserves.
type Outcome uint8

// Outcomes.
const (
	Ignored   Outcome = iota // no reply at all
	BareError                // FORMERR without a question
	FormErr                  // FORMERR with the question
	NotImp                   // NOTIMP
	BadVers                  // BADVERS, with the question
	Refused                  // REFUSED
	Fine                     // an answer: the packet is odd, and sound
)

// Packet is one that a client may send and a forwarder must survive.
type Packet struct {
	Name    string
	Bytes   []byte
	Outcome Outcome
}

// Pieces of packets.
var (
	name       = []byte("\x01a\x04test\x00")
	typeA      = []byte{0, 1, 0, 1}
	plainQuery = packet(flagRD, 1, 0, 0, 0, name, typeA)
	emptyOPT   = opt(0, 0)
)

const (
	flagQR = 1 << 15
	flagRD = 1 << 8
)

// packet is a header with flags and counts, and what follows.
func packet(flags, qd, an, ns, ar uint16, rest ...[]byte) []byte {
	out := []byte{0x12, 0x34}
	for _, v := range []uint16{flags, qd, an, ns, ar} {
		out = binary.BigEndian.AppendUint16(out, v)
	}
	return append(out, bytes.Join(rest, nil)...)
}

// record is a resource record of TTL 60.
func record(owner []byte, rtype, class uint16, data ...byte) []byte {
	out := bytes.Clone(owner)
	out = binary.BigEndian.AppendUint16(out, rtype)
	out = binary.BigEndian.AppendUint16(out, class)
	out = append(out, 0, 0, 0, 60)
	out = binary.BigEndian.AppendUint16(out, uint16(len(data)))
	return append(out, data...)
}

// opt is an OPT record of size 1232.
func opt(version, flags byte, options ...byte) []byte {
	out := []byte{0, 0, 41, 1232 >> 8, 1232 & 255, 0, version, flags, 0}
	out = binary.BigEndian.AppendUint16(out, uint16(len(options)))
	return append(out, options...)
}

// withOPT is a query for name with the given additional records.
func withOPT(o ...[]byte) []byte {
	return packet(flagRD, 1, 0, 0, uint16(len(o)), name, typeA, bytes.Join(o, nil))
}

// named is a query for a name in wire form.
func named(n string) []byte { return packet(flagRD, 1, 0, 0, 0, []byte(n), typeA) }

// HostilePackets are odd, broken and malicious packets.
func HostilePackets() []Packet {
	return slices.Concat(notQueries(), badQuestions(), badRecords(), unwanted(), oddButFine())
}

// Deserving are the packets that get a reply.
func Deserving(packets []Packet) []Packet {
	return slices.DeleteFunc(slices.Clone(packets), func(p Packet) bool { return p.Outcome == Ignored })
}

func notQueries() []Packet {
	return []Packet{
		{"nothing", nil, Ignored},
		{"one byte", []byte{0}, Ignored},
		{"eleven bytes", plainQuery[:11], Ignored},
		{"a response", packet(flagQR|flagRD, 1, 0, 0, 0, name, typeA), Ignored},
		{"a response without anything", packet(flagQR, 0, 0, 0, 0), Ignored},
		{"a malformed response", packet(flagQR, 9, 9, 9, 9, []byte{0xC0}), Ignored},
		{"a response with another opcode", packet(flagQR|5<<11, 1, 0, 0, 0, name, typeA), Ignored},
	}
}

func badQuestions() []Packet {
	return []Packet{
		{"a header alone", packet(flagRD, 0, 0, 0, 0), BareError},
		{"a header that promises a question", packet(flagRD, 1, 0, 0, 0), BareError},
		{"two questions", packet(flagRD, 2, 0, 0, 0, name, typeA, name, typeA), BareError},
		{"65535 of everything", packet(flagRD, 65535, 65535, 65535, 65535, name, typeA), BareError},
		{"a name to the last byte", packet(flagRD, 1, 0, 0, 0, name), BareError},
		{"half a type", packet(flagRD, 1, 0, 0, 0, name, []byte{0}), BareError},
		{"a type without class", packet(flagRD, 1, 0, 0, 0, name, []byte{0, 1, 0}), BareError},
		{"a label over the end", named("\x3fa"), BareError},
		{"a name without end", named("\x01a\x01b"), BareError},
		{"a label of 64", named("\x40" + strings.Repeat("a", 64) + "\x00"), BareError},
		{"a label of an old kind", named("\x80a\x00"), BareError},
		{"a name of 256", named(strings.Repeat("\x3f"+strings.Repeat("a", 63), 3) + "\x3f" + strings.Repeat("a", 63) + "\x00"), BareError},
		{"a pointer to itself", named("\xc0\x0c"), BareError},
		{"a pointer back", named("\xc0\x00"), BareError},
		{"a pointer forward", named("\xc0\x20"), BareError},
		{"a pointer behind a label", named("\x01a\xc0\x0c"), BareError},
		{"half a pointer", packet(flagRD, 1, 0, 0, 0, []byte{0xC0}), BareError},
	}
}

func badRecords() []Packet {
	address := record(name, 1, 1, 10, 0, 0, 1)
	cookies := bytes.Repeat([]byte{0, 10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8}, 50)
	return []Packet{
		{"an answer in a query", packet(flagRD, 1, 1, 0, 0, name, typeA, address), FormErr},
		{"authority in a query", packet(flagRD, 1, 0, 1, 0, name, typeA, address), FormErr},
		{"an address as additional", packet(flagRD, 1, 0, 0, 1, name, typeA, address), FormErr},
		{"additional that is not there", packet(flagRD, 1, 0, 0, 1, name, typeA), FormErr},
		{"60000 additional that are not there", packet(flagRD, 1, 0, 0, 60000, name, typeA), FormErr},
		{"a record cut in its head", withOPT(emptyOPT[:7]), FormErr},
		{"data over the end", withOPT(append(bytes.Clone(emptyOPT[:9]), 0xff, 0xff)), FormErr},
		{"two OPT", withOPT(emptyOPT, emptyOPT), FormErr},
		{"an OPT with a name", withOPT(append(bytes.Clone(name), emptyOPT[1:]...)), FormErr},
		{"an OPT with a pointer to a name", withOPT(append([]byte{0xC0, 12}, emptyOPT[1:]...)), FormErr},
		{"an option over the end", withOPT(opt(0, 0, 0, 10, 0, 9, 1)), FormErr},
		{"half an option", withOPT(opt(0, 0, 0, 10, 0)), FormErr},
		{"50 cookies", withOPT(opt(0, 0, cookies...)), FormErr},
		{"a signature before the OPT", withOPT(record([]byte{0}, 250, 255, 1), emptyOPT), FormErr},
	}
}

func unwanted() []Packet {
	address := record(name, 1, 1, 10, 0, 0, 1)
	return []Packet{
		{"NOTIFY", packet(4<<11, 1, 0, 0, 0, name, typeA), NotImp},
		{"UPDATE with records", packet(5<<11, 1, 1, 1, 1, name, typeA, address, address, address), NotImp},
		{"DSO without a question", packet(6<<11, 0, 0, 0, 0), NotImp},
		{"opcode 15 and nonsense", packet(15<<11, 7, 7, 7, 7, []byte{0xC0}), NotImp},
		{"EDNS version 1", withOPT(opt(1, 0)), BadVers},
		{"EDNS version 255 with options", withOPT(opt(255, 0x80, 0, 3, 0, 0)), BadVers},
		{"class CH", packet(flagRD, 1, 0, 0, 0, name, []byte{0, 16, 0, 3}), Refused},
		{"class NONE", packet(flagRD, 1, 0, 0, 0, name, []byte{0, 1, 0, 254}), Refused},
		{"AXFR", packet(flagRD, 1, 0, 0, 0, name, []byte{0, 252, 0, 1}), Refused},
	}
}

func oddButFine() []Packet {
	return []Packet{
		{"a plain query", plainQuery, Fine},
		{"all header bits but QR", packet(0x07f0, 1, 0, 0, 0, name, typeA), Fine},
		{"a response code in a query", packet(flagRD|15, 1, 0, 0, 0, name, typeA), Fine},
		{"an OPT behind the end", packet(flagRD, 1, 0, 0, 0, name, typeA, emptyOPT), Fine},
		{"a question behind the end", packet(flagRD, 1, 0, 0, 0, name, typeA, name, typeA), Fine},
		{"64 KiB behind the end", append(bytes.Clone(plainQuery), make([]byte, 65535-len(plainQuery))...), Fine},
		{"all EDNS flags", withOPT(opt(0, 0xff)), Fine},
		{"an unknown option", withOPT(opt(0, 0, 0xfd, 0xe9, 0, 1, 7)), Fine},
		{"a size of 0", withOPT(append([]byte{0, 0, 41, 0, 0}, emptyOPT[5:]...)), Fine},
		{"the root", packet(flagRD, 1, 0, 0, 0, []byte{0}, []byte{0, 2, 0, 1}), Fine},
		{"type 65535", packet(flagRD, 1, 0, 0, 0, name, []byte{255, 255, 0, 1}), Fine},
		{"a name of 255", named(strings.Repeat("\x3f"+strings.Repeat("a", 63), 3) + "\x3d" + strings.Repeat("a", 61) + "\x00"), Fine},
		{"a dot and a zero inside a label", named("\x05a.b\x00c\x00"), Fine},
	}
}

// HostileReplies are replies of servers to the question for a.test. and type A
// that must not be taken.
func HostileReplies() []Packet {
	head := func(an uint16, rest ...[]byte) []byte {
		return packet(flagQR|flagRD, 1, an, 0, 0, append([][]byte{name, typeA}, rest...)...)
	}
	end := byte(12 + len(name) + len(typeA))
	return []Packet{
		{Name: "a header alone", Bytes: packet(flagQR, 0, 0, 0, 0)},
		{Name: "no response", Bytes: plainQuery},
		{Name: "half a header", Bytes: plainQuery[:6]},
		{Name: "a compressed question", Bytes: packet(flagQR, 1, 0, 0, 0, []byte{0xC0, 12}, typeA)},
		{Name: "answers that are not there", Bytes: head(3)},
		{Name: "an address of 3 bytes", Bytes: head(1, record(name, 1, 1, 10, 0, 0))},
		{Name: "an IPv6 address of 4 bytes", Bytes: head(1, record(name, 28, 1, 10, 0, 0, 1))},
		{Name: "an owner that points to itself", Bytes: head(1, record([]byte{0xC0, end}, 1, 1, 10, 0, 0, 1))},
		{Name: "an owner that points forward", Bytes: head(1, record([]byte{0xC0, end + 9}, 1, 1, 10, 0, 0, 1))},
		{Name: "an owner that points into the header", Bytes: head(1, record([]byte{0xC0, 2}, 1, 1, 10, 0, 0, 1))},
		{Name: "an alias shorter than its data", Bytes: head(1, record(name, 5, 1, 1, 'b', 0, 0, 0))},
		{Name: "an alias that points to itself", Bytes: head(1, record(name, 5, 1, 0xC0, end+byte(len(name))+10))},
		{Name: "a SOA without numbers", Bytes: head(1, record(name, 6, 1, 0, 0))},
		{Name: "data over the end", Bytes: head(1, record(name, 16, 1, 1, 'x')[:len(name)+10])},
		{Name: "two OPT", Bytes: packet(flagQR, 1, 0, 0, 2, name, typeA, emptyOPT, emptyOPT)},
		{Name: "an OPT among the answers", Bytes: head(1, emptyOPT)},
		{Name: "a bomb of pointers", Bytes: bomb()},
	}
}

// bomb is a reply of 64 KiB whose names unfold to millions of labels: a long
// name, and thousands of aliases that each point at it.
func bomb() []byte {
	long := []byte(strings.Repeat("\x01x", 120))
	out := packet(flagQR|flagRD, 1, 5000, 0, 0, name, typeA)
	at := len(out) + 2 + 10
	out = append(out, record([]byte{0xC0, 12}, 5, 1, append(long, 0)...)...)
	for range 4999 {
		out = append(out, record([]byte{0xC0 | byte(at>>8), byte(at)}, 1, 1)[:2+8]...)
		out = append(out, 0, 0)
	}
	return out
}
