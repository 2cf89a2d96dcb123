package wire_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

// sound parses a query that must be sound.
func sound(t testing.TB, msg []byte) *wire.Query {
	t.Helper()
	q, fault := wire.ParseQuery(msg)
	if fault != wire.Sound {
		t.Fatalf("fault %d for % x", fault, msg)
	}
	return &q
}

func TestAppendQuery(t *testing.T) {
	qn := question("A.test", dns.TypeA)
	id := func(msg []byte) []byte { msg[0], msg[1] = 0x12, 0x34; return msg }
	tests := []struct {
		name   string
		client []byte
		size   uint16
		want   []byte
	}{
		{"plain", join(header(rd, 1, 0, 0, 0), qn), 1232, join(header(rd|ad, 1, 0, 0, 1), qn, opt(1232, 0, ""))},
		{"no OPT wanted", join(header(rd, 1, 0, 0, 0), qn), 0, join(header(rd|ad, 1, 0, 0, 0), qn)},
		{"RD off", join(header(0, 1, 0, 0, 0), qn), 1232, join(header(ad, 1, 0, 0, 1), qn, opt(1232, 0, ""))},
		{"all flags", join(header(aa|tc|rd|ra|z|ad|cd|5, 1, 0, 0, 0), qn), 1232, join(header(rd|ad|cd, 1, 0, 0, 1), qn, opt(1232, 0, ""))},
		{
			"DO, other Z bits and options", join(header(rd, 1, 0, 0, 1), qn, opt(4096, 0xFFFF, "\x00\x03\x00\x00")), 1232,
			join(header(rd|ad, 1, 0, 0, 1), qn, opt(1232, 1<<15, "")),
		},
		{"trailing bytes", join(header(rd, 1, 0, 0, 0), qn, opt(4096, 0, "")), 1232, join(header(rd|ad, 1, 0, 0, 1), qn, opt(1232, 0, ""))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := wire.AppendQuery([]byte("xy"), sound(t, tt.client), 0x1234, tt.size)
			if diff := cmp.Diff(append([]byte("xy"), id(tt.want)...), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAppendError(t *testing.T) {
	qn := question("A.test", dns.TypeA)
	badOption := join(header(rd, 1, 0, 0, 1), qn, opt(4096, 1<<15, "\x00"))
	tests := []struct {
		name   string
		client []byte
		rcode  wire.RCode
		ede    wire.EDE
		want   []byte
	}{
		{"no OPT, EDE not said", join(header(rd, 1, 0, 0, 0), qn), wire.ServFail, wire.EDENetworkError, join(header(qr|ra|rd|2, 1, 0, 0, 0), qn)},
		{"CD kept, AD and Z not", join(header(rd|ad|cd|z|aa|tc, 1, 0, 0, 0), qn), wire.Refused, wire.NoEDE, join(header(qr|ra|rd|cd|5, 1, 0, 0, 0), qn)},
		{
			"OPT", join(header(0, 1, 0, 0, 1), qn, opt(4096, 0xFFFF, "\x00\x03\x00\x00")), wire.ServFail, wire.NoEDE,
			join(header(qr|ra|2, 1, 0, 0, 1), qn, opt(1232, 1<<15, "")),
		},
		{
			"EDE", queryOPT("A.test", dns.TypeA, 512, false), wire.ServFail, wire.EDENoReachable,
			join(header(qr|ra|rd|2, 1, 0, 0, 1), qn, opt(1232, 0, "\x00\x0f\x00\x02\x00\x16")),
		},
		{
			"BADVERS", join(header(rd, 1, 0, 0, 1), qn, opt(512, 9<<16, "")), wire.BadVers, wire.NoEDE,
			join(header(qr|ra|rd, 1, 0, 0, 1), qn, opt(1232, 1<<24, "")),
		},
		{"opcode kept", join(header(5<<11|rd, 1, 0, 0, 0), qn), wire.NotImp, wire.NoEDE, join(header(qr|ra|rd|5<<11|4, 1, 0, 0, 0), qn)},
		{"question not readable", join(header(rd, 1, 0, 0, 0), qn[:4]), wire.FormErr, wire.NoEDE, header(qr|ra|rd|1, 0, 0, 0, 0)},
		{"malformed option", badOption, wire.FormErr, wire.NoEDE, join(header(qr|ra|rd|1, 1, 0, 0, 1), qn, opt(1232, 1<<15, ""))},
		{"answer counted in a query", join(header(rd, 1, 9, 0, 0), qn), wire.FormErr, wire.NoEDE, join(header(qr|ra|rd|1, 1, 0, 0, 0), qn)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q, _ := wire.ParseQuery(tt.client)
			got := wire.AppendError([]byte("xy"), &q, tt.rcode, 1232, tt.ede)
			if diff := cmp.Diff(append([]byte("xy"), tt.want...), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestErrorAsOthersReadIt(t *testing.T) {
	q := sound(t, queryOPT("a.test", dns.TypeA, 512, true))
	codes := map[wire.EDE]uint16{
		wire.EDEStale: dns.ExtendedErrorCodeStaleAnswer, wire.EDECachedError: dns.ExtendedErrorCodeCachedError,
		wire.EDEProhibited: dns.ExtendedErrorCodeProhibited, wire.EDEStaleNXDomain: dns.ExtendedErrorCodeStaleNXDOMAINAnswer,
		wire.EDENotSupported: dns.ExtendedErrorCodeNotSupported, wire.EDENoReachable: dns.ExtendedErrorCodeNoReachableAuthority,
		wire.EDENetworkError: dns.ExtendedErrorCodeNetworkError,
	}
	for ede, code := range codes {
		m := parsed(t, wire.AppendError(nil, q, wire.BadVers, 1232, ede))
		o := m.IsEdns0()
		if o == nil || len(o.Option) != 1 {
			t.Fatalf("EDE %d: OPT %v", ede, o)
		}
		got, ok := o.Option[0].(*dns.EDNS0_EDE)
		if !ok || got.InfoCode != code || m.Rcode != dns.RcodeBadVers || o.UDPSize() != 1232 || !o.Do() || o.Version() != 0 {
			t.Errorf("EDE %d: got %v, rcode %d, OPT %v", ede, got, m.Rcode, o)
		}
	}
}

// bare is the bare form of a reply.
func bare(t testing.TB, msg []byte) []byte {
	t.Helper()
	r, err := wire.ParseReply(msg)
	if err != nil || !r.Simple() {
		t.Fatalf("error %v, simple %t", err, r.Simple())
	}
	return r.AppendBare(nil)
}

func TestEcho(t *testing.T) {
	ours := "a.test"
	tests := []struct {
		name           string
		client         []byte
		upstreamAD     bool
		wantFlags      uint16
		wantName, opts string
	}{
		{"plain", query("a.test", dns.TypeA), false, rd, "a.test.", ""},
		{"RD off", join(header(0, 1, 0, 0, 0), question(ours, dns.TypeA)), false, 0, "a.test.", ""},
		{"CD", join(header(rd|cd, 1, 0, 0, 0), question(ours, dns.TypeA)), false, rd | cd, "a.test.", ""},
		{"letter case", query("A.tEsT", dns.TypeA), false, rd, "A.tEsT.", ""},
		{"AD not asked for", query("a.test", dns.TypeA), true, rd, "a.test.", ""},
		{"AD asked for by AD", join(header(rd|ad, 1, 0, 0, 0), question(ours, dns.TypeA)), true, rd | ad, "a.test.", ""},
		{"AD asked for by DO", queryOPT("a.test", dns.TypeA, 512, true), true, rd | ad, "a.test.", ""},
		{"OPT without DO is no wish for AD", queryOPT("a.test", dns.TypeA, 512, false), true, rd, "a.test.", ""},
		{"AD asked for, not authentic", join(header(rd|ad, 1, 0, 0, 0), question(ours, dns.TypeA)), false, rd, "a.test.", ""},
		{"Z, AA, TC and rcode are not echoed", join(header(rd|z|aa|tc|9, 1, 0, 0, 0), question(ours, dns.TypeA)), false, rd, "a.test.", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			flags := uint16(aa | cd | rd)
			if tt.upstreamAD {
				flags |= ad
			}
			msg := bare(t, answerTo(flags, 1, 0, 0, a(300)))
			wire.Echo(msg, sound(t, tt.client))
			if got := uint16(msg[2])<<8 | uint16(msg[3]); got != tt.wantFlags|qr|ra {
				t.Errorf("flags %04x, want %04x", got, tt.wantFlags|qr|ra)
			}
			m := parsed(t, msg)
			if m.Id != 0xABCD || m.Question[0].Name != tt.wantName || m.Answer[0].Header().Name != tt.wantName {
				t.Errorf("ID %x, question %s, owner %s", m.Id, m.Question[0].Name, m.Answer[0].Header().Name)
			}
		})
	}
}

func TestClearClaims(t *testing.T) {
	msg := answerTo(aa|ad|rd|ra, 0, 0, 0)
	wire.ClearClaims(msg)
	if diff := cmp.Diff(answerTo(rd|ra, 0, 0, 0), msg); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTTLs(t *testing.T) {
	const most = 1<<32 - 1
	records := [][]byte{a(0), a(1), a(300), a(most)}
	offsets := func(msg []byte) (at []uint16) {
		r, err := wire.ParseReply(msg)
		if err != nil {
			t.Fatal(err)
		}
		var rr wire.Record
		for c := r.Records(); c.Next(&rr); {
			at = append(at, uint16(rr.TTLAt))
		}
		return at
	}
	tests := []struct {
		name   string
		change func([]byte, []uint16)
		want   [4]uint32
	}{
		{"age 0", func(m []byte, at []uint16) { wire.AgeTTLs(m, at, 0) }, [4]uint32{0, 1, 300, most}},
		{"age 1", func(m []byte, at []uint16) { wire.AgeTTLs(m, at, 1) }, [4]uint32{0, 0, 299, most - 1}},
		{"age 300", func(m []byte, at []uint16) { wire.AgeTTLs(m, at, 300) }, [4]uint32{0, 0, 0, most - 300}},
		{"age 301", func(m []byte, at []uint16) { wire.AgeTTLs(m, at, 301) }, [4]uint32{0, 0, 0, most - 301}},
		{"age of all", func(m []byte, at []uint16) { wire.AgeTTLs(m, at, most) }, [4]uint32{}},
		{"age of some", func(m []byte, at []uint16) { wire.AgeTTLs(m, at[3:], 1) }, [4]uint32{0, 1, 300, most - 1}},
		{"cap 30", func(m []byte, at []uint16) { wire.CapTTLs(m, at, 30) }, [4]uint32{0, 1, 30, 30}},
		{"cap 0", func(m []byte, at []uint16) { wire.CapTTLs(m, at, 0) }, [4]uint32{}},
		{"set", func(m []byte, at []uint16) { wire.SetTTL(m, int(at[0]), 7) }, [4]uint32{7, 1, 300, most}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			msg := answerTo(0, 4, 0, 0, records...)
			tt.change(msg, offsets(msg))
			want := answerTo(0, 4, 0, 0, a(tt.want[0]), a(tt.want[1]), a(tt.want[2]), a(tt.want[3]))
			if diff := cmp.Diff(want, msg); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAppendOPT(t *testing.T) {
	base := answerTo(ra, 1, 0, 0, a(300))
	got := wire.AppendOPT(append([]byte("xy"), base...), 2, sound(t, query("a.test", dns.TypeA)), 1232, wire.EDEStale)
	if diff := cmp.Diff(append([]byte("xy"), base...), got); diff != "" {
		t.Errorf("a client without OPT: -want +got:\n%s", diff)
	}
	got = wire.AppendOPT(append([]byte("xy"), base...), 2, sound(t, queryOPT("a.test", dns.TypeA, 512, true)), 1232, wire.EDEStale)
	want := append([]byte("xy"), answerTo(ra, 1, 0, 1, a(300), opt(1232, 1<<15, "\x00\x0f\x00\x02\x00\x03"))...)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a client with OPT: -want +got:\n%s", diff)
	}
	if n := len(want) - 2 - len(base); n != wire.OPTLen+wire.EDELen {
		t.Errorf("OPT and EDE took %d bytes", n)
	}
}
