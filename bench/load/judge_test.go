package load_test

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/bench/load"
	"github.com/nodens-dns/nodens/bench/names"
)

// fixed asks one question for ever.
type fixed struct{ query names.Query }

func (f fixed) Next() names.Query { return f.query }

const (
	asked = "cart-api-0.cart-team-0.svc.cluster.local."
	other = "cart-api-1.cart-team-0.svc.cluster.local."
)

// truth is the right reply, made by another's code.
func truth(t *testing.T, query []byte) *dns.Msg {
	t.Helper()
	var q dns.Msg
	if err := q.Unpack(query); err != nil {
		t.Errorf("the generator's query %x: %v", query, err)
	}
	reply := new(dns.Msg).SetReply(&q)
	if reply.Question[0].Qtype == dns.TypeA {
		reply.Answer = []dns.RR{address(asked, "10.96.0.1")}
	}
	return reply
}

func address(name, addr string) dns.RR {
	rr, err := dns.NewRR(name + " 30 A " + addr)
	if err != nil {
		panic(err)
	}
	return rr
}

func TestJudgement(t *testing.T) {
	right := load.Counts{Sent: 1, Right: 1}
	wrong := func(by load.Wrongs) load.Counts { return load.Counts{Sent: 1, Wrong: 1, WrongBy: by} }
	records, format, rcode := load.Wrongs{Records: 1}, load.Wrongs{Format: 1}, load.Wrongs{RCode: 1}
	for name, c := range map[string]struct {
		qtype uint16 // A unless set
		spoil func(*dns.Msg)
		want  load.Counts
		stray uint64
	}{
		"right":        {spoil: func(*dns.Msg) {}, want: right},
		"right NODATA": {qtype: dns.TypeAAAA, spoil: func(*dns.Msg) {}, want: right},
		"by an alias": {spoil: func(m *dns.Msg) {
			cname, _ := dns.NewRR(asked + " 30 CNAME " + other)
			m.Answer = []dns.RR{cname, address(other, "10.96.0.1")}
		}, want: right},
		"by aliases in any order": {spoil: func(m *dns.Msg) {
			first, _ := dns.NewRR(asked + " 30 CNAME alias.example.")
			second, _ := dns.NewRR("ALIAS.example. 30 CNAME " + other)
			m.Compress, m.Answer = true, []dns.RR{address(other, "10.96.0.1"), second, first}
		}, want: right},
		"an alias of another": {spoil: func(m *dns.Msg) {
			cname, _ := dns.NewRR("alias.example. 30 CNAME " + other)
			m.Answer = []dns.RR{cname, address(other, "10.96.0.1")}
		}, want: wrong(records)},
		"an alias of itself": {spoil: func(m *dns.Msg) {
			cname, _ := dns.NewRR(asked + " 30 CNAME " + asked)
			m.Answer = []dns.RR{cname}
		}, want: wrong(format)},
		"another's address": {spoil: func(m *dns.Msg) { m.Answer[0] = address(other, "10.96.0.1") }, want: wrong(records)},
		"owner's case":      {spoil: func(m *dns.Msg) { m.Answer[0] = address("C"+asked[1:], "10.96.0.1") }, want: right},
		"compressed":        {spoil: func(m *dns.Msg) { m.Compress = true }, want: right},
		"with an OPT":       {spoil: func(m *dns.Msg) { m.SetEdns0(1232, false) }, want: right},
		"SERVFAIL":          {spoil: func(m *dns.Msg) { m.Rcode, m.Answer = dns.RcodeServerFailure, nil }, want: load.Counts{Sent: 1, ServFail: 1}},
		"truncated":         {spoil: func(m *dns.Msg) { m.Truncated, m.Answer = true, nil }, want: load.Counts{Sent: 1, Truncated: 1}},
		"NXDOMAIN":          {spoil: func(m *dns.Msg) { m.Rcode, m.Answer = dns.RcodeNameError, nil }, want: wrong(rcode)},
		"bare FORMERR":      {spoil: func(m *dns.Msg) { m.Rcode, m.Answer, m.Question = dns.RcodeFormatError, nil, nil }, want: wrong(rcode)},
		"bare SERVFAIL":     {spoil: func(m *dns.Msg) { m.Rcode, m.Answer, m.Question = dns.RcodeServerFailure, nil, nil }, want: load.Counts{Sent: 1, ServFail: 1}},
		"bare success":      {spoil: func(m *dns.Msg) { m.Question = nil }, want: wrong(format)},
		"two questions":     {spoil: func(m *dns.Msg) { m.Question = append(m.Question, m.Question[0]) }, want: wrong(format)},
		"a query":           {spoil: func(m *dns.Msg) { m.Response = false }, want: wrong(format)},
		"another opcode":    {spoil: func(m *dns.Msg) { m.Opcode = dns.OpcodeNotify }, want: wrong(format)},
		"another name":      {spoil: func(m *dns.Msg) { m.Question[0].Name = other }, want: wrong(load.Wrongs{Question: 1})},
		"another type":      {spoil: func(m *dns.Msg) { m.Question[0].Qtype = dns.TypeAAAA }, want: wrong(load.Wrongs{Question: 1})},
		"another class":     {spoil: func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassCHAOS }, want: wrong(load.Wrongs{Question: 1})},
		"letter case":       {spoil: func(m *dns.Msg) { m.Question[0].Name = "C" + asked[1:] }, want: wrong(load.Wrongs{Case: 1})},
		"another address":   {spoil: func(m *dns.Msg) { m.Answer[0] = address(asked, "10.96.0.2") }, want: wrong(records)},
		"one too many":      {spoil: func(m *dns.Msg) { m.Answer = append(m.Answer, address(asked, "10.96.0.2")) }, want: wrong(records)},
		"no address":        {spoil: func(m *dns.Msg) { m.Answer = nil }, want: wrong(records)},
		"A for AAAA":        {qtype: dns.TypeAAAA, spoil: func(m *dns.Msg) { m.Answer = []dns.RR{address(asked, "10.96.0.1")} }, want: right},
		"address for none":  {qtype: dns.TypeAAAA, spoil: func(m *dns.Msg) { aaaa, _ := dns.NewRR(asked + " 30 AAAA 2001:db8::1"); m.Answer = []dns.RR{aaaa} }, want: wrong(records)},
		"another ID":        {spoil: func(m *dns.Msg) { m.Id ^= 0x100 }, want: load.Counts{Sent: 1, Lost: 1}, stray: 1},
	} {
		t.Run(name, func(t *testing.T) {
			qtype := max(c.qtype, dns.TypeA)
			addr := startScript(t, func(query []byte, _ netip.AddrPort) [][]byte {
				reply := truth(t, query)
				c.spoil(reply)
				packed, err := reply.Pack()
				if err != nil {
					t.Error(err)
				}
				return [][]byte{packed}
			})
			checkOne(t, addr, qtype, c.want, c.stray)
		})
	}
}

// service asks for the name that truth knows.
func service(t *testing.T, qtype uint16) names.Query {
	t.Helper()
	zone := newMix(t, names.Config{Services: 8, Namespaces: 1}).Zone()
	wire, err := names.Wire(asked)
	if err != nil {
		t.Fatal(err)
	}
	return names.Query{Question: append(bytes.Clone(wire), byte(qtype>>8), byte(qtype), 0, 1), Want: zone.Answer(wire, qtype), EDNS: true}
}

// checkOne sends one query and compares its account.
func checkOne(t *testing.T, addr netip.AddrPort, qtype uint16, want load.Counts, stray uint64) {
	t.Helper()
	timeout := long
	if want.Lost > 0 {
		timeout = 3 * time.Second
	}
	report := run(t, load.Config{
		Target: addr, Transport: load.UDP, Timeout: timeout,
		Source: func(int) load.Source { return fixed{service(t, qtype)} },
		Stages: []load.Stage{load.Steady("run", 50, 20*time.Millisecond)},
	})
	if diff := cmp.Diff(want, report.Total); diff != "" {
		t.Errorf("(-want +got)\n%s%v", diff, report.Examples)
	}
	if report.Generator.Stray != stray {
		t.Errorf("%d stray replies, want %d", report.Generator.Stray, stray)
	}
}

func TestJudgementOfBrokenBytes(t *testing.T) {
	format := load.Counts{Sent: 1, Wrong: 1, WrongBy: load.Wrongs{Format: 1}}
	for name, c := range map[string]struct {
		answer func(query, reply []byte) [][]byte
		want   load.Counts
		stray  uint64
	}{
		"cut in the header":   {func(_, r []byte) [][]byte { return [][]byte{r[:11]} }, format, 0},
		"cut in the question": {func(_, r []byte) [][]byte { return [][]byte{r[:20]} }, format, 0},
		"cut in a record":     {func(_, r []byte) [][]byte { return [][]byte{r[:len(r)-1]} }, format, 0},
		"one octet":           {func(_, r []byte) [][]byte { return [][]byte{r[:1]} }, load.Counts{Sent: 1, Lost: 1}, 1},
		"sent back":           {func(q, _ []byte) [][]byte { return [][]byte{q} }, format, 0},
		"forged, then right": {func(_, r []byte) [][]byte {
			forged := bytes.Clone(r)
			forged[1] ^= 0xff
			return [][]byte{forged, r}
		}, load.Counts{Sent: 1, Right: 1}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			addr := startScript(t, func(query []byte, _ netip.AddrPort) [][]byte {
				packed, err := truth(t, query).Pack()
				if err != nil {
					t.Error(err)
				}
				return c.answer(query, packed)
			})
			checkOne(t, addr, dns.TypeA, c.want, c.stray)
		})
	}
}

// A reply that comes again is no answer to anything. Only that to the last query
// may come when the run is over.
func TestSecondReplyIsStray(t *testing.T) {
	addr := startScript(t, func(query []byte, _ netip.AddrPort) [][]byte {
		packed, err := truth(t, query).Pack()
		if err != nil {
			t.Error(err)
		}
		return [][]byte{packed, packed}
	})
	report := run(t, load.Config{
		Target: addr, Transport: load.UDP, Timeout: long,
		Source: func(int) load.Source { return fixed{service(t, dns.TypeA)} },
		Stages: []load.Stage{load.Steady("run", 100, 200*time.Millisecond)},
	})
	if report.Total.Sent != 20 || report.Total.Right != 20 || report.Generator.Stray < 19 || report.Generator.Stray > 20 {
		t.Errorf("%+v, %d stray replies; want 20 right ones and as many strays, or one less", report.Total, report.Generator.Stray)
	}
}
