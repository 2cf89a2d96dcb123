package wire_test

import (
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

// longName is a name of n bytes in wire form.
func longName(n int) []byte {
	var b []byte
	for left := n - 1; left > 0; {
		size := min(left, 64)
		if left-size == 1 {
			size--
		}
		b = append(append(b, byte(size-1)), strings.Repeat("x", size-1)...)
		left -= size
	}
	return append(b, 0)
}

const inA = "\x00\x01\x00\x01"

func TestParseQuery(t *testing.T) {
	q := question("a.test", dns.TypeA)
	soa := record(ask, dns.TypeSOA, 1, 0, "\x00\x00"+strings.Repeat("\x00", 20))
	tests := []struct {
		name     string
		msg      []byte
		want     wire.Fault
		question bool // can be repeated
		edns     bool
	}{
		{"empty", nil, wire.Ignore, false, false},
		{"eleven bytes", header(0, 0, 0, 0, 0)[:11], wire.Ignore, false, false},
		{"plain", query("a.test", dns.TypeA), wire.Sound, true, false},
		{"root", query(".", dns.TypeNS), wire.Sound, true, false},
		{"unknown type", query("a.test", 65280), wire.Sound, true, false},
		{"Z bit", join(header(rd|z, 1, 0, 0, 0), q), wire.Sound, true, false},
		{"AA, TC, RA and an rcode set", join(header(aa|tc|ra|3, 1, 0, 0, 0), q), wire.Sound, true, false},
		{"OPT", queryOPT("a.test", dns.TypeA, 1232, true), wire.Sound, true, true},

		{"response", join(header(qr, 1, 0, 0, 0), q), wire.Ignore, false, false},
		{"response without question", header(qr, 0, 0, 0, 0), wire.Ignore, false, false},
		{"response of unknown opcode", join(header(qr|4<<11, 1, 0, 0, 0), q), wire.Ignore, false, false},
		{"response cut in the question", join(header(qr, 1, 0, 0, 0), q[:3]), wire.Ignore, false, false},

		{"status", join(header(2<<11, 1, 0, 0, 0), q), wire.UnknownOpcode, true, false},
		{"notify with an answer", join(header(4<<11, 1, 1, 0, 0), q, soa), wire.UnknownOpcode, true, false},
		{"update with records and an OPT", join(header(5<<11, 1, 1, 1, 1), q, a(0), a(0), opt(512, 0, "")), wire.UnknownOpcode, true, true},
		{"dso without question", header(6<<11, 0, 0, 0, 0), wire.UnknownOpcode, false, false},
		{"unknown opcode and a broken question", join(header(7<<11, 1, 0, 0, 0), q[:4]), wire.UnknownOpcode, false, false},
		{"unknown opcode and EDNS version 1", join(header(5<<11, 1, 0, 0, 1), q, opt(512, 1<<16, "")), wire.UnknownOpcode, true, true},

		{"no question", header(rd, 0, 0, 0, 0), wire.Malformed, false, false},
		{"no question but an OPT", join(header(rd, 0, 0, 0, 1), opt(512, 0, "")), wire.Malformed, false, false},
		{"two questions", join(header(rd, 2, 0, 0, 0), q, q), wire.Malformed, false, false},
		{"65535 questions", join(header(rd, 65535, 0, 0, 0), q), wire.Malformed, false, false},
		{"header alone", header(rd, 1, 0, 0, 0), wire.Malformed, false, false},
		{"name without end", join(header(rd, 1, 0, 0, 0), []byte("\x01a\x04test")), wire.Malformed, false, false},
		{"name to the last byte", join(header(rd, 1, 0, 0, 0), name("a.test")), wire.Malformed, false, false},
		{"class cut", join(header(rd, 1, 0, 0, 0), q[:len(q)-1]), wire.Malformed, false, false},
		{"label past the end", join(header(rd, 1, 0, 0, 0), []byte("\x3fa")), wire.Malformed, false, false},
		{"last byte a pointer", join(header(rd, 1, 0, 0, 0), []byte("\xc0")), wire.Malformed, false, false},
		{"pointer to itself", join(header(rd, 1, 0, 0, 0), []byte("\xc0\x0c"+inA)), wire.Malformed, false, false},
		{"pointer into the header", join(header(rd, 1, 0, 0, 0), []byte("\x01a\xc0\x04"+inA)), wire.Malformed, false, false},
		{"label type 01", join(header(rd, 1, 0, 0, 0), []byte("\x41a\x00"+inA)), wire.Malformed, false, false},
		{"label type 10", join(header(rd, 1, 0, 0, 0), []byte("\x81a\x00"+inA)), wire.Malformed, false, false},
		{"label of 63", join(header(rd, 1, 0, 0, 0), name(strings.Repeat("a", 63)), []byte(inA)), wire.Sound, true, false},
		{"label of 64", join(header(rd, 1, 0, 0, 0), name(strings.Repeat("a", 64)), []byte(inA)), wire.Malformed, false, false},
		{"name of 255", join(header(rd, 1, 0, 0, 0), longName(255), []byte(inA)), wire.Sound, true, false},
		{"name of 256", join(header(rd, 1, 0, 0, 0), longName(256), []byte(inA)), wire.Malformed, false, false},
		{"name of 127 labels", join(header(rd, 1, 0, 0, 0), []byte(strings.Repeat("\x01a", 127)), []byte("\x00"+inA)), wire.Sound, true, false},
		{"name of 128 labels", join(header(rd, 1, 0, 0, 0), []byte(strings.Repeat("\x01a", 128)), []byte("\x00"+inA)), wire.Malformed, false, false},

		{"answer", join(header(rd, 1, 1, 0, 0), q, a(0)), wire.Malformed, true, false},
		{"answer and OPT", join(header(rd, 1, 1, 0, 1), q, a(0), opt(512, 0, "")), wire.Malformed, true, true},
		{"authority", join(header(rd, 1, 0, 1, 0), q, soa), wire.Malformed, true, false},
		{"IXFR", join(header(rd, 1, 0, 1, 0), question("a.test", dns.TypeIXFR), soa), wire.Sound, true, false},
		{"IXFR with OPT", join(header(rd, 1, 0, 1, 1), question("a.test", dns.TypeIXFR), soa, opt(512, 0, "")), wire.Sound, true, true},
		{"IXFR with two authorities", join(header(rd, 1, 0, 2, 0), question("a.test", dns.TypeIXFR), soa, soa), wire.Malformed, true, false},
		{"additional A", join(header(rd, 1, 0, 0, 1), q, a(0)), wire.Malformed, true, false},
		{"three additional", join(header(rd, 1, 0, 0, 3), q, opt(512, 0, ""), tsig(), tsig()), wire.Malformed, true, true},
		{"counts that promise more", join(header(rd, 1, 0, 0, 1), q), wire.Malformed, true, false},
		{"65535 of each", join(header(rd, 1, 65535, 65535, 65535), q), wire.Malformed, true, false},
		{"additional cut", join(header(rd, 1, 0, 0, 1), q, opt(512, 0, "")[:10]), wire.Malformed, true, false},
		{"additional with a pointer ahead", join(header(rd, 1, 0, 0, 1), q, record("\xc0\xff", dns.TypeTSIG, 255, 0, "")), wire.Malformed, true, false},

		{"two OPT", join(header(rd, 1, 0, 0, 2), q, opt(512, 0, ""), opt(512, 0, "")), wire.Malformed, true, true},
		{"OPT of another owner", join(header(rd, 1, 0, 0, 1), q, record("\x01a\x00", dns.TypeOPT, 512, 0, "")), wire.Malformed, true, false},
		{"OPT owner by pointer", join(header(rd, 1, 0, 0, 1), q, record("\xc0\x13", dns.TypeOPT, 512, 0, "")), wire.Malformed, true, false},
		{"OPT then TSIG", join(header(rd, 1, 0, 0, 2), q, opt(512, 0, ""), tsig()), wire.Sound, true, true},
		{"TSIG then OPT", join(header(rd, 1, 0, 0, 2), q, tsig(), opt(512, 0, "")), wire.Malformed, true, true},
		{"TSIG alone", join(header(rd, 1, 0, 0, 1), q, tsig()), wire.Sound, true, false},
		{"SIG(0)", join(header(rd, 1, 0, 0, 1), q, record("\x00", dns.TypeSIG, 255, 0, "")), wire.Sound, true, false},
		{"version 1", join(header(rd, 1, 0, 0, 1), q, opt(512, 1<<16, "")), wire.UnknownVersion, true, true},
		{"version 255", join(header(rd, 1, 0, 0, 1), q, opt(512, 255<<16, "")), wire.UnknownVersion, true, true},
		{"version 1 and a bad option", join(header(rd, 1, 0, 0, 1), q, opt(512, 1<<16, "\x00")), wire.Malformed, true, true},
		{"extended rcode in a query", join(header(rd, 1, 0, 0, 1), q, opt(512, 7<<24, "")), wire.Sound, true, true},
		{"all Z bits", join(header(rd, 1, 0, 0, 1), q, opt(512, 0x7FFF, "")), wire.Sound, true, true},

		{"unknown option", join(header(rd, 1, 0, 0, 1), q, opt(512, 0, "\xfd\xe9\x00\x02hi")), wire.Sound, true, true},
		{"empty option", join(header(rd, 1, 0, 0, 1), q, opt(512, 0, "\x00\x03\x00\x00")), wire.Sound, true, true},
		{"option head cut", join(header(rd, 1, 0, 0, 1), q, opt(512, 0, "\x00\x03\x00")), wire.Malformed, true, true},
		{"option past RDATA", join(header(rd, 1, 0, 0, 1), q, opt(512, 0, "\x00\x03\x00\x01")), wire.Malformed, true, true},
		{"option past RDATA, bytes behind", join(header(rd, 1, 0, 0, 1), q, opt(512, 0, "\x00\x03\x00\x01"), []byte("xxxx")), wire.Malformed, true, true},
		{"option of 65535", join(header(rd, 1, 0, 0, 1), q, opt(512, 0, "\x00\x03\xff\xff")), wire.Malformed, true, true},
		{"32 options", join(header(rd, 1, 0, 0, 1), q, opt(512, 0, strings.Repeat("\x00\x03\x00\x00", 32))), wire.Sound, true, true},
		{"33 options", join(header(rd, 1, 0, 0, 1), q, opt(512, 0, strings.Repeat("\x00\x03\x00\x00", 33))), wire.Malformed, true, true},

		{"trailing bytes", join(query("a.test", dns.TypeA), []byte("junk")), wire.Sound, true, false},
		{"trailing OPT that is not counted", join(query("a.test", dns.TypeA), opt(4096, 1<<15, "")), wire.Sound, true, false},
		{"trailing second OPT", join(queryOPT("a.test", dns.TypeA, 512, false), opt(4096, 1<<15, "")), wire.Sound, true, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, fault := wire.ParseQuery(tt.msg)
			if fault != tt.want || got.HasQuestion() != tt.question || got.EDNS != tt.edns {
				t.Errorf("got fault %d, question %t, EDNS %t; want %d, %t, %t",
					fault, got.HasQuestion(), got.EDNS, tt.want, tt.question, tt.edns)
			}
			if !tt.question && got.Question() != nil {
				t.Errorf("question % x of a query without", got.Question())
			}
		})
	}
}

func TestQueryFields(t *testing.T) {
	msg := join(header(rd|ad|cd, 1, 0, 0, 1), question("WwW.a.test", dns.TypeAAAA), opt(4096, 0xFFFF, ""))
	q, fault := wire.ParseQuery(msg)
	if fault != wire.Sound {
		t.Fatalf("fault %d", fault)
	}
	if q.ID != 0xABCD || q.Type != wire.TypeAAAA || q.Class != wire.ClassIN || q.UDPSize != 4096 {
		t.Errorf("ID %x, type %d, class %d, size %d", q.ID, q.Type, q.Class, q.UDPSize)
	}
	if !q.RD() || !q.AD() || !q.CD() || !q.DO || !q.EDNS {
		t.Errorf("RD %t, AD %t, CD %t, DO %t, EDNS %t; want all", q.RD(), q.AD(), q.CD(), q.DO, q.EDNS)
	}
	if got, want := string(q.Name()), string(name("WwW.a.test")); got != want {
		t.Errorf("name %q, want %q", got, want)
	}
	if got, want := string(q.Question()), string(question("WwW.a.test", dns.TypeAAAA)); got != want {
		t.Errorf("question %q, want %q", got, want)
	}
}

func TestQuerySize(t *testing.T) {
	for size, want := range map[uint16]uint16{0: 512, 100: 512, 511: 512, 512: 512, 513: 513, 1232: 1232, 65535: 65535} {
		q, _ := wire.ParseQuery(queryOPT("a.test", dns.TypeA, size, false))
		if q.UDPSize != want {
			t.Errorf("client says %d: got %d, want %d", size, q.UDPSize, want)
		}
	}
	if q, _ := wire.ParseQuery(query("a.test", dns.TypeA)); q.UDPSize != 512 {
		t.Errorf("without OPT: got %d, want 512", q.UDPSize)
	}
}

func TestKey(t *testing.T) {
	key := func(msg []byte) string {
		q, fault := wire.ParseQuery(msg)
		if fault != wire.Sound {
			t.Fatalf("fault %d for % x", fault, msg)
		}
		return string(q.AppendKey(nil))
	}
	class := func(msg []byte, c byte) []byte { return append(msg[:len(msg)-1:len(msg)-1], c) }
	base := key(query("a.test", dns.TypeA))
	same := map[string][]byte{
		"letter case":   query("A.tEsT", dns.TypeA),
		"ID":            append([]byte{1, 2}, query("a.test", dns.TypeA)[2:]...),
		"RD off":        join(header(0, 1, 0, 0, 0), question("a.test", dns.TypeA)),
		"AD":            join(header(rd|ad, 1, 0, 0, 0), question("a.test", dns.TypeA)),
		"OPT":           queryOPT("a.test", dns.TypeA, 4096, false),
		"trailing":      join(query("a.test", dns.TypeA), []byte("x")),
		"cookie option": join(header(rd, 1, 0, 0, 1), question("a.test", dns.TypeA), opt(512, 0, "\x00\x0a\x00\x0812345678")),
	}
	for what, msg := range same {
		if key(msg) != base {
			t.Errorf("%s changes the key", what)
		}
	}
	differ := map[string][]byte{
		"name":            query("b.test", dns.TypeA),
		"labels":          query("a.t.est", dns.TypeA),
		"type":            query("a.test", dns.TypeAAAA),
		"type's high":     query("a.test", dns.TypeCAA),
		"class":           class(query("a.test", dns.TypeA), 3),
		"DO":              queryOPT("a.test", dns.TypeA, 512, true),
		"CD":              join(header(rd|cd, 1, 0, 0, 0), question("a.test", dns.TypeA)),
		"bytes not ASCII": query("\xe1.test", dns.TypeA),
	}
	seen := map[string]string{base: "base"}
	for what, msg := range differ {
		if old, ok := seen[key(msg)]; ok {
			t.Errorf("%s has the key of %s", what, old)
		}
		seen[key(msg)] = what
	}
	if key(query("\xc1.test", dns.TypeA)) == key(query("\xe1.test", dns.TypeA)) {
		t.Error("letters that are not ASCII were folded")
	}
	longest := key(join(header(rd, 1, 0, 0, 0), longName(255), []byte(inA)))
	if len(longest) != wire.MaxKey {
		t.Errorf("longest key is %d bytes, want %d", len(longest), wire.MaxKey)
	}
}
