package wire_test

import (
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

// answerTo is a reply to "a.test A" with the given counts and records.
func answerTo(flags, an, ns, ar uint16, records ...[]byte) []byte {
	return join(header(qr|flags, 1, an, ns, ar), question("a.test", dns.TypeA), join(records...))
}

// one is a reply with one answer, owned by the question's name.
func one(rrtype, class uint16, data string) []byte {
	return answerTo(0, 1, 0, 0, record(ask, rrtype, class, 300, data))
}

// qEnd is the offset after the question of answerTo.
const qEnd = 12 + 8 + 4

func TestParseReply(t *testing.T) {
	q := question("a.test", dns.TypeA)
	soa := strings.Repeat("\x00", 20)
	a6 := strings.Repeat("\x01", 16)
	// A pointer at the start of an owner at offset 36 leads into the record at
	// qEnd: its fixed fields start at qEnd+2, its address at qEnd+12.
	into := func(at byte) []byte {
		return answerTo(0, 2, 0, 0, record(ask, dns.TypeA, 1, 0, "\x00\x00\x00\x00"),
			record("\xc0"+string(rune(at)), dns.TypeA, 1, 0, "\x01\x01\x01\x01"))
	}
	tests := []struct {
		name string
		msg  []byte
		want error
	}{
		{"empty", nil, wire.ErrShort},
		{"eleven bytes", header(qr, 1, 0, 0, 0)[:11], wire.ErrShort},
		{"a query", join(header(0, 1, 0, 0, 0), q), wire.ErrNotReply},
		{"65536 bytes", append(answerTo(0, 0, 0, 0), make([]byte, 65536-qEnd)...), wire.ErrRecord},
		{"65535 bytes", append(answerTo(0, 0, 0, 0), make([]byte, 65535-qEnd)...), nil},

		{"no question", header(qr, 0, 0, 0, 0), wire.ErrQuestion},
		{"two questions", join(header(qr, 2, 0, 0, 0), q, q), wire.ErrQuestion},
		{"question cut", join(header(qr, 1, 0, 0, 0), q[:len(q)-1]), wire.ErrQuestion},
		{"question with a pointer", join(header(qr, 1, 0, 0, 0), []byte("\x01a\xc0\x0c"+inA)), wire.ErrQuestion},
		{"truncated in the question", join(header(qr|tc, 1, 0, 0, 0), q[:5]), wire.ErrQuestion},

		{"no records", answerTo(0, 0, 0, 0), nil},
		{"one A", answerTo(0, 1, 0, 0, a(300)), nil},
		{"trailing bytes", answerTo(0, 1, 0, 0, a(300), []byte("junk")), nil},
		{"more counted than there", answerTo(0, 2, 0, 0, a(300)), wire.ErrRecord},
		{"65535 counted of each", answerTo(0, 65535, 65535, 65535, a(300)), wire.ErrRecord},
		{"RDATA cut", answerTo(0, 1, 0, 0, a(300)[:15]), wire.ErrRecord},
		{"fixed fields cut", answerTo(0, 1, 0, 0, a(300)[:11]), wire.ErrRecord},
		{"owner cut", answerTo(0, 1, 0, 0, []byte("\xc0")), wire.ErrRecord},

		{"A of 3", one(dns.TypeA, 1, "\x01\x02\x03"), wire.ErrRecord},
		{"A of 5", one(dns.TypeA, 1, "\x01\x02\x03\x04\x05"), wire.ErrRecord},
		{"A of 0", one(dns.TypeA, 1, ""), wire.ErrRecord},
		{"A of class CH", one(dns.TypeA, 3, "\x00\x00\x01"), nil},
		{"AAAA of 15", one(dns.TypeAAAA, 1, a6[:15]), wire.ErrRecord},
		{"AAAA of 16", one(dns.TypeAAAA, 1, a6), nil},
		{"AAAA of 17", one(dns.TypeAAAA, 1, a6+"\x00"), wire.ErrRecord},
		{"CNAME", one(dns.TypeCNAME, 1, "\x01b\xc0\x0e"), nil},
		{"CNAME of 0", one(dns.TypeCNAME, 1, ""), wire.ErrRecord},
		{"CNAME and a byte", one(dns.TypeCNAME, 1, ask+"\x00"), wire.ErrRecord},
		{"CNAME past its RDATA", answerTo(0, 2, 0, 0, record(ask, dns.TypeCNAME, 1, 0, "\x05b"), a(0)), wire.ErrRecord},
		{"CNAME without end", one(dns.TypeCNAME, 1, "\x01b"), wire.ErrRecord},
		{"PTR", one(dns.TypePTR, 1, ask), nil},
		{"NS", one(dns.TypeNS, 1, ask), nil},
		{"DNAME", one(dns.TypeDNAME, 1, "\x00"), nil},
		{"MX", one(dns.TypeMX, 1, "\x00\x0a"+ask), nil},
		{"MX of 2", one(dns.TypeMX, 1, "\x00\x0a"), wire.ErrRecord},
		{"MX and a byte", one(dns.TypeMX, 1, "\x00\x0a"+ask+"\x00"), wire.ErrRecord},
		{"SRV", one(dns.TypeSRV, 1, "\x00\x00\x00\x00\x00\x35"+ask), nil},
		{"SRV of 6", one(dns.TypeSRV, 1, "\x00\x00\x00\x00\x00\x35"), wire.ErrRecord},
		{"SOA", one(dns.TypeSOA, 1, ask+ask+soa), nil},
		{"SOA a byte short", one(dns.TypeSOA, 1, ask+ask+soa[1:]), wire.ErrRecord},
		{"SOA a byte long", one(dns.TypeSOA, 1, ask+ask+soa+"\x00"), wire.ErrRecord},
		{"SOA of one name", one(dns.TypeSOA, 1, "\x00"), wire.ErrRecord},
		{"TXT broken inside", one(dns.TypeTXT, 1, "\xffhi"), nil},
		{"NSEC broken inside", one(dns.TypeNSEC, 1, "\x00\x00\xff\x00"), nil},
		{"SVCB broken inside", one(dns.TypeSVCB, 1, "\x00"), nil},
		{"LOC broken inside", one(dns.TypeLOC, 1, "\x00"), nil},
		{"unknown type", one(65280, 1, "\xc0\xff\xc0"), nil},
		{"RDATA of 0, unknown type", one(65280, 1, ""), nil},

		{"pointer to itself", answerTo(0, 1, 0, 0, record("\xc0\x18", dns.TypeA, 1, 0, "abcd")), wire.ErrRecord},
		{"pointer ahead", answerTo(0, 1, 0, 0, record("\xc0\x1a", dns.TypeA, 1, 0, "\x00abc")), wire.ErrRecord},
		{"pointer past the end", answerTo(0, 1, 0, 0, record("\xff\xff", dns.TypeA, 1, 0, "abcd")), wire.ErrRecord},
		{"pointer to its own label", answerTo(0, 1, 0, 0, record("\x01x\xc0\x18", dns.TypeA, 1, 0, "abcd")), wire.ErrRecord},
		{"pointer into the header", answerTo(0, 1, 0, 0, record("\xc0\x0b", dns.TypeA, 1, 0, "abcd")), wire.ErrRecord},
		{"pointer to a label of the question", answerTo(0, 1, 0, 0, record("\xc0\x0e", dns.TypeA, 1, 0, "abcd")), nil},
		{"label type 01", answerTo(0, 1, 0, 0, record("\x41x\x00", dns.TypeA, 1, 0, "abcd")), wire.ErrRecord},
		{"pointer into a TTL", into(qEnd + 6), wire.ErrRecord},
		{"pointer to a label that runs into its own fixed fields", answerTo(0, 1, 0, 0,
			record("\x01\x0a\xc0\x19", dns.TypeA, 1, 0, "\x00\x00\x00\x00")), wire.ErrRecord},
		{"pointer back to a label that runs over it", join(header(qr, 1, 1, 0, 0), []byte("\x01\x0d\x00"+inA),
			record("\xc0\x0d", 65280, 1, 0, "\x00\x00")), wire.ErrRecord},
		{"pointer into a class", into(qEnd + 4), wire.ErrRecord},
		{"pointer into an address", into(qEnd + 12), wire.ErrRecord},
		{"pointer to its own TTL", one(dns.TypeCNAME, 1, "\xc0\x1e"), wire.ErrRecord},
		{"pointer into the RDATA of an unknown type", answerTo(0, 2, 0, 0,
			record(ask, dns.TypeSVCB, 1, 0, "\x00\x00\x01b\x00"), record("\xc0\x26", dns.TypeA, 1, 0, "abcd")), nil},
		{"name of 255 through a pointer", answerTo(0, 1, 0, 0, record(string(longName(248)[:247])+ask, dns.TypeA, 1, 0, "abcd")), nil},
		{"name of 256 through a pointer", answerTo(0, 1, 0, 0, record(string(longName(249)[:248])+ask, dns.TypeA, 1, 0, "abcd")), wire.ErrRecord},

		{"OPT", answerTo(0, 1, 0, 1, a(300), opt(1232, 0, "")), nil},
		{"OPT before another", answerTo(0, 0, 0, 2, opt(1232, 0, ""), a(0)), nil},
		{"two OPT", answerTo(0, 0, 0, 2, opt(1232, 0, ""), opt(1232, 0, "")), wire.ErrOPT},
		{"OPT in the answer", answerTo(0, 1, 0, 0, opt(1232, 0, "")), wire.ErrOPT},
		{"OPT in the authority", answerTo(0, 0, 1, 0, opt(1232, 0, "")), wire.ErrOPT},
		{"OPT of another owner", answerTo(0, 0, 0, 1, record(ask, dns.TypeOPT, 1232, 0, "")), wire.ErrOPT},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := wire.ParseReply(tt.msg); err != tt.want { //nolint:errorlint // constants, never wrapped
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

func TestReplyHops(t *testing.T) {
	// An owner at the root, then owners that each point at the one before.
	chain := func(n int) []byte {
		msg := answerTo(0, uint16(n)+1, 0, 0, record("\x01r\x00", 65280, 1, 0, ""))
		last := qEnd
		for range n {
			at := len(msg)
			msg = append(msg, record("\xc0"+string([]byte{byte(last)}), 65280, 1, 0, "")...)
			msg[at] |= byte(last >> 8)
			last = at
		}
		return msg
	}
	if _, err := wire.ParseReply(chain(126)); err != nil {
		t.Errorf("126 hops: %v", err)
	}
	if _, err := wire.ParseReply(chain(127)); err != wire.ErrRecord { //nolint:errorlint // constants, never wrapped
		t.Errorf("127 hops: %v, want %v", err, wire.ErrRecord)
	}
}

func TestTruncatedReply(t *testing.T) {
	whole := answerTo(tc, 2, 0, 1, a(300), a(300), opt(1232, 1<<24, ""))
	r, err := wire.ParseReply(whole)
	if err != nil || !r.TC || r.Count(wire.Answer) != 2 || r.RCode != wire.BadVers {
		t.Errorf("whole: %v, TC %t, %d answers, rcode %d", err, r.TC, r.Count(wire.Answer), r.RCode)
	}
	broken := map[string][]byte{
		"OPT before a cut record": answerTo(tc, 0, 0, 2, opt(1232, 1<<24, ""), a(300)[:7]),
		"TSIG before a cut one":   answerTo(tc, 0, 0, 2, tsig(), a(300)[:7]),
		"two OPT":                 answerTo(tc, 0, 0, 2, opt(1232, 1<<24, ""), opt(1232, 0, "")),
	}
	for n := qEnd; n < len(whole); n++ {
		broken["cut at "+string(rune('0'+n/10))+string(rune('0'+n%10))] = whole[:n]
	}
	for what, msg := range broken {
		r, err := wire.ParseReply(msg)
		if err != nil || !r.TC || r.RCode != wire.NoError || r.HasOPT() || !r.Simple() {
			t.Errorf("%s: %v, TC %t, rcode %d, OPT %t, simple %t", what, err, r.TC, r.RCode, r.HasOPT(), r.Simple())
			continue
		}
		var rr wire.Record
		if c := r.Records(); c.Next(&rr) {
			t.Errorf("%s: has a record", what)
		}
		if m := parsed(t, r.AppendBare(nil)); len(m.Answer)+len(m.Ns)+len(m.Extra) != 0 {
			t.Errorf("%s: bare holds records", what)
		}
	}
}

func TestReplyFields(t *testing.T) {
	r, err := wire.ParseReply(answerTo(ad|3, 1, 2, 2, a(1), a(2), a(3), a(4), opt(1232, 0xAB<<24, "")))
	if err != nil {
		t.Fatal(err)
	}
	if r.RCode != 0xAB3 || r.Type != wire.TypeA || r.Class != wire.ClassIN || !r.HasOPT() || !r.AuthenticData() || r.TC {
		t.Errorf("rcode %x, type %d, class %d, OPT %t, AD %t, TC %t", r.RCode, r.Type, r.Class, r.HasOPT(), r.AuthenticData(), r.TC)
	}
	var sections []wire.Section
	var ttls []uint32
	var rr wire.Record
	for c := r.Records(); c.Next(&rr); {
		sections, ttls = append(sections, rr.Section), append(ttls, rr.TTL)
	}
	if string(sections2bytes(sections)) != "\x00\x01\x01\x02\x02" || ttls[0] != 1 || ttls[3] != 4 {
		t.Errorf("sections %v, TTLs %v", sections, ttls)
	}
}

func sections2bytes(s []wire.Section) (b []byte) {
	for _, v := range s {
		b = append(b, byte(v))
	}
	return b
}

func TestSimple(t *testing.T) {
	tests := []struct {
		name string
		msg  []byte
		want bool
	}{
		{"no OPT", answerTo(0, 1, 0, 1, a(1), a(1)), true},
		{"OPT alone", answerTo(0, 1, 0, 1, a(1), opt(1232, 0, "")), true},
		{"OPT last", answerTo(0, 0, 0, 2, a(1), opt(1232, 0, "")), true},
		{"OPT first", answerTo(0, 0, 0, 2, opt(1232, 0, ""), a(1)), false},
		{"TSIG", answerTo(0, 0, 0, 1, tsig()), false},
		{"OPT and TSIG", answerTo(0, 0, 0, 2, opt(1232, 0, ""), tsig()), false},
		{"TSIG and OPT", answerTo(0, 0, 0, 2, tsig(), opt(1232, 0, "")), false},
		{"SIG(0)", answerTo(0, 0, 0, 1, record("\x00", dns.TypeSIG, 255, 0, "")), false},
		{"SIG as an answer", answerTo(0, 1, 0, 0, record(ask, dns.TypeSIG, 1, 0, "")), true},
		{"SIG as an answer, then SIG(0)", answerTo(0, 1, 0, 1, record(ask, dns.TypeSIG, 1, 0, ""), record("\x00", dns.TypeSIG, 255, 0, "")), false},
	}
	for _, tt := range tests {
		r, err := wire.ParseReply(tt.msg)
		if err != nil || r.Simple() != tt.want {
			t.Errorf("%s: %v, simple %t, want %t", tt.name, err, r.Simple(), tt.want)
		}
	}
}

func TestMatches(t *testing.T) {
	asked := query("a.test", dns.TypeA)
	answer := func(change func([]byte)) []byte {
		msg := answerTo(ra, 1, 0, 0, a(1))
		change(msg)
		return msg
	}
	tests := []struct {
		name  string
		reply []byte
		want  bool
	}{
		{"ours", answer(func([]byte) {}), true},
		{"other letter case", answer(func(b []byte) { b[13] = 'A' }), true},
		{"truncated behind the question", answerTo(tc, 1, 0, 0), true},
		{"other ID", answer(func(b []byte) { b[1]++ }), false},
		{"a query", answer(func(b []byte) { b[2] &^= 0x80 }), false},
		{"other opcode", answer(func(b []byte) { b[2] |= 4 << 3 }), false},
		{"no question", header(qr, 0, 0, 0, 0), false},
		{"two questions", answer(func(b []byte) { b[5] = 2 }), false},
		{"other name", answer(func(b []byte) { b[13] = 'b' }), false},
		{"other labels", answer(func(b []byte) { b[12] = 2 }), false},
		{"other type", answer(func(b []byte) { b[20] = 1 }), false},
		{"other class", answer(func(b []byte) { b[23] = 3 }), false},
		{"cut in the question", answer(func([]byte) {})[:qEnd-1], false},
		{"eleven bytes", answer(func([]byte) {})[:11], false},
		{"empty", nil, false},
	}
	for _, tt := range tests {
		if got := wire.Matches(tt.reply, asked); got != tt.want {
			t.Errorf("%s: got %t", tt.name, got)
		}
	}
	for n := range asked {
		if wire.Matches(answerTo(0, 0, 0, 0), asked[:n]) {
			t.Errorf("matches a query cut at %d", n)
		}
	}
}

func TestBare(t *testing.T) {
	msg := answerTo(aa|tc|rd|z|ad|cd|3, 1, 1, 2, a(1), a(2), a(3), opt(1232, 0, "\x00\x03\x00\x00"), []byte("junk"))
	r, err := wire.ParseReply(msg)
	if err != nil {
		t.Fatal(err)
	}
	got := r.AppendBare([]byte("xy"))
	want := answerTo(tc|ra|ad|3, 1, 1, 1, a(1), a(2), a(3))
	want[0], want[1] = 0, 0
	if string(got) != "xy"+string(want) {
		t.Errorf("got  % x\nwant % x", got[2:], want)
	}
}
