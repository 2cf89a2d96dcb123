package wire_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

// client is how the fuzz target asks: a few bits of one number.
type client struct {
	rd, ad, cd, edns, do, upper, ede bool
	limit                            int
}

func clientOf(bits uint16) client {
	bit := func(n int) bool { return bits>>n&1 != 0 }
	c := client{rd: bit(0), ad: bit(1), cd: bit(2), edns: bit(3), upper: bit(5), ede: bit(6), limit: 512}
	c.do = c.edns && bit(4)
	if bit(7) {
		c.limit = 1232
	}
	if bit(8) {
		c.limit = 65535
	}
	return c
}

// query asks the question of a reply.
func (c client) query(m *dns.Msg) []byte {
	var flags uint16
	for bit, on := range map[uint16]bool{rd: c.rd, ad: c.ad, cd: c.cd} {
		if on {
			flags |= bit
		}
	}
	q := make([]byte, 300)
	end, _ := dns.PackDomainName(m.Question[0].Name, q, 0, nil, false)
	q = q[:end]
	if c.upper {
		for i, b := range q {
			if 'a' <= b && b <= 'z' { // no other byte, and no length, is a letter
				q[i] -= 'a' - 'A'
			}
		}
	}
	q = append(q, byte(m.Question[0].Qtype>>8), byte(m.Question[0].Qtype), byte(m.Question[0].Qclass>>8), byte(m.Question[0].Qclass))
	if !c.edns {
		return join(header(flags, 1, 0, 0, 0), q)
	}
	var ttl uint32
	if c.do {
		ttl = 1 << 15
	}
	return join(header(flags, 1, 0, 0, 1), q, opt(uint16(c.limit), ttl, ""))
}

// FuzzServe holds the way of a cached reply, bytes patched in place, against
// the same reply taken apart and put together by miekg/dns.
func FuzzServe(f *testing.F) {
	for i, seed := range seedReplies(f) {
		f.Add(seed, uint16(i*37), uint32(i))
		f.Add(seed, uint16(1<<8|1<<3), uint32(0))
	}
	f.Fuzz(func(t *testing.T, msg []byte, bits uint16, age uint32) {
		r, err := wire.ParseReply(msg)
		if err != nil || !r.Simple() {
			return
		}
		want := new(dns.Msg)
		// A reply cut inside a record is taken without any; some RDATA that is opaque to us is not to miekg/dns.
		if r.TC && !whole(msg) || want.Unpack(msg) != nil || patchedRDATA(want) {
			return
		}
		c := clientOf(bits)
		asked := c.query(want)
		q, fault := wire.ParseQuery(asked)
		if fault != wire.Sound {
			t.Fatalf("fault %d for our own query % x", fault, asked)
		}
		got := serve(t, &r, &q, c, age)
		if len(got) > c.limit {
			t.Fatalf("%d bytes, limit %d", len(got), c.limit)
		}
		slow(want, parsed(t, asked), c, age)
		compareServed(t, parsed(t, got), want, bareLen(&r), c)
	})
}

// patchedRDATA is whether a record may hold a name that we do not know of, and
// that could lead into what is patched.
func patchedRDATA(m *dns.Msg) bool {
	for _, rr := range join3(m) {
		switch rr.(type) {
		case *dns.A, *dns.AAAA, *dns.NS, *dns.CNAME, *dns.PTR, *dns.DNAME, *dns.MX, *dns.SRV, *dns.SOA,
			*dns.TXT, *dns.OPT, *dns.RFC3597, *dns.DS, *dns.CAA:
		default:
			return true
		}
		if rr.Header().Rdlength == 0 && rr.Header().Rrtype != dns.TypeOPT {
			return true
		}
	}
	return false
}

func join3(m *dns.Msg) []dns.RR {
	return append(append(append([]dns.RR{}, m.Answer...), m.Ns...), m.Extra...)
}

func bareLen(r *wire.Reply) int { return len(r.AppendBare(nil)) }

// serve answers q from memory.
func serve(t *testing.T, r *wire.Reply, q *wire.Query, c client, age uint32) []byte {
	t.Helper()
	msg := r.AppendBare(nil)
	var offsets []uint16
	var rr wire.Record
	for cur := r.Records(); cur.Next(&rr); {
		if rr.Type != wire.TypeOPT {
			offsets = append(offsets, uint16(rr.TTLAt))
		}
	}
	wire.AgeTTLs(msg, offsets, age)
	wire.Echo(msg, q)
	ede, room := wire.NoEDE, 0
	if q.EDNS {
		room = wire.OPTLen
		if c.ede {
			ede, room = wire.EDEStale, room+wire.EDELen
		}
	}
	return wire.AppendOPT(wire.Fit(msg, c.limit-room, q.DO), 0, q, 1232, ede)
}

// slow makes m, as the server sent it, the reply to the client's query.
func slow(m, asked *dns.Msg, c client, age uint32) {
	var extra []dns.RR
	for _, rr := range m.Extra {
		if rr.Header().Rrtype != dns.TypeOPT {
			extra = append(extra, rr)
		}
	}
	m.Extra = extra
	for _, rr := range join3(m) {
		h := rr.Header()
		h.Ttl -= min(h.Ttl, age)
	}
	ad := m.AuthenticatedData && (c.ad || c.do)
	m.MsgHdr = dns.MsgHdr{
		Id: asked.Id, Response: true, Truncated: m.Truncated, RecursionDesired: c.rd, RecursionAvailable: true,
		AuthenticatedData: ad, CheckingDisabled: c.cd, Rcode: m.Rcode & 15,
	}
	m.Question = asked.Question
	if c.edns {
		o := &dns.OPT{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeOPT, Class: 1232, Rdlength: 0}}
		o.SetDo(c.do)
		if c.ede {
			o.Hdr.Rdlength = 6
			o.Option = []dns.EDNS0{&dns.EDNS0_EDE{InfoCode: dns.ExtendedErrorCodeStaleAnswer}}
		}
		m.Extra = append(m.Extra, o)
	}
}

// compareServed compares what was served with the whole reply, of which size
// bytes are not the OPT.
func compareServed(t *testing.T, got, want *dns.Msg, size int, c client) {
	t.Helper()
	room := 0
	if c.edns {
		room = 11
		if c.ede {
			room += 6
		}
	}
	if size+room > c.limit {
		cut(want, got, c)
	}
	if c.upper {
		lower(got)
		lower(want)
	}
	if got.MsgHdr != want.MsgHdr || !reflect.DeepEqual(got.Question, want.Question) {
		t.Fatalf("got\n%s%v\nwant\n%s%v", got.MsgHdr.String(), got.Question, want.MsgHdr.String(), want.Question)
	}
	for i, pair := range [][2][]dns.RR{{got.Answer, want.Answer}, {got.Ns, want.Ns}, {got.Extra, want.Extra}} {
		if len(pair[0]) != len(pair[1]) {
			t.Fatalf("section %d: %d records, want %d", i, len(pair[0]), len(pair[1]))
		}
		for j := range pair[0] {
			if !reflect.DeepEqual(pair[0][j], pair[1][j]) {
				t.Fatalf("section %d:\ngot  %v\nwant %v", i, pair[0][j], pair[1][j])
			}
		}
	}
}

// cut takes from the whole reply what may be missing in got, and sets TC when it
// is missed. How much fits is the matter of TestFit and FuzzFit.
func cut(want, got *dns.Msg, c client) {
	an, ns := len(want.Answer), len(want.Ns)
	want.Answer = want.Answer[:min(an, len(got.Answer))]
	if len(got.Ns) == 0 {
		want.Ns = nil
	}
	opts := 0
	if c.edns {
		opts = 1
	}
	if len(got.Extra) == opts {
		want.Extra = want.Extra[len(want.Extra)-opts:]
	}
	want.Truncated = want.Truncated || len(want.Answer) < an || len(want.Ns) < ns && (an == 0 || c.do)
}

// lower takes the letter case from all names, for clients that spell the
// question in their own way: which names follow is up to the compression.
func lower(m *dns.Msg) {
	for i := range m.Question {
		m.Question[i].Name = strings.ToLower(m.Question[i].Name)
	}
	for _, rr := range join3(m) {
		h := rr.Header()
		h.Name = strings.ToLower(h.Name)
		switch rr := rr.(type) {
		case *dns.NS:
			rr.Ns = strings.ToLower(rr.Ns)
		case *dns.CNAME:
			rr.Target = strings.ToLower(rr.Target)
		case *dns.PTR:
			rr.Ptr = strings.ToLower(rr.Ptr)
		case *dns.DNAME:
			rr.Target = strings.ToLower(rr.Target)
		case *dns.MX:
			rr.Mx = strings.ToLower(rr.Mx)
		case *dns.SRV:
			rr.Target = strings.ToLower(rr.Target)
		case *dns.SOA:
			rr.Ns, rr.Mbox = strings.ToLower(rr.Ns), strings.ToLower(rr.Mbox)
		}
	}
}

// FuzzFit holds Fit against a slow reading of its rule: for any limit that
// leaves the question, as many whole records stay as fit.
func FuzzFit(f *testing.F) {
	for i, seed := range seedReplies(f) {
		f.Add(seed, uint16(64+i*64), i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, msg []byte, limit uint16, do bool) {
		r, err := wire.ParseReply(msg)
		if err != nil || !r.Simple() {
			return
		}
		full := r.AppendBare(nil)
		spots, _ := walk(full)
		end := len(full)
		if len(spots) > 0 {
			end = spots[0].at
		}
		limit = max(limit, uint16(end))
		want, ends := [3]int{}, end
		for s := range 3 {
			for _, sp := range spots {
				if sp.section == s {
					if sp.end <= int(limit) && (s == 0 || last(spots, s) <= int(limit)) {
						want[s]++
						ends = sp.end
					}
				}
			}
		}
		an, ns := sectionLen(spots, 0), sectionLen(spots, 1)
		truncated := r.TC || want[0] < an || want[1] < ns && (an == 0 || do)
		got := wire.Fit(bytes.Clone(full), int(limit), do)
		m := shapeOfAny(got)
		if len(got) != ends || m != (shape{want[0], want[1], want[2], truncated}) {
			t.Fatalf("limit %d of %d: %d bytes, %+v; want %d, %v, TC %t", limit, len(full), len(got), m, ends, want, truncated)
		}
	})
}

func sectionLen(spots []spot, s int) (n int) {
	for _, sp := range spots {
		if sp.section == s {
			n++
		}
	}
	return n
}

// last is where section s ends.
func last(spots []spot, s int) (end int) {
	for _, sp := range spots {
		if sp.section <= s {
			end = sp.end
		}
	}
	return end
}

func shapeOfAny(msg []byte) shape {
	count := func(at int) int { return int(msg[at])<<8 | int(msg[at+1]) }
	return shape{count(6), count(8), count(10), msg[2]&2 != 0}
}
