package dnstest

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// Situation is what the servers of a name are like.
type Situation struct {
	Name   string
	Script Script
	// Asked is how many queries reach the server for a name, whoever asks.
	Asked int
}

// Wide is how many addresses of each type a name has whose replies are cut: too
// many for any datagram.
const Wide = 100

// Situations are those that a stub resolver must come through, each for the
// names below a label of its own.
func Situations(t testing.TB) []Situation {
	byType := func(a, aaaa Answer) Script {
		return Say(func(q *dns.Msg) *dns.Msg {
			if q.Question[0].Qtype == dns.TypeA {
				return a(q)
			}
			return aaaa(q)
		})
	}
	v4 := func(q *dns.Msg) *dns.Msg { return Records(t, 0, q.Question[0].Name+" 60 IN A 192.0.2.1")(q) }
	v6 := func(q *dns.Msg) *dns.Msg { return Records(t, 0, q.Question[0].Name+" 60 IN AAAA 2001:db8::1")(q) }
	const soa = "test. 60 IN SOA ns.test. host.test. 1 60 60 60 60"
	cut := func(q *dns.Msg) *dns.Msg {
		m := Records(t, 0)(q)
		m.Truncated = true
		return m
	}
	return []Situation{
		{"normal", byType(v4, v6), 2},
		{"a-only", byType(v4, Records(t, 0, "---", soa)), 2},
		{"aaaa-nxdomain", byType(v4, Records(t, dns.RcodeNameError, "---", soa)), 2},
		{"tc", ByTransport(Say(cut), byType(wide(t, "A 192.0.2."), wide(t, "AAAA 2001:db8::"))), 4},
		{"servfail", Say(RCode(dns.RcodeServerFailure)), 2},
		{"refused", Say(RCode(dns.RcodeRefused)), 2},
		{"drop", Drop, 6}, // each question is put three times within its budget
	}
}

func wide(t testing.TB, prefix string) Answer {
	return func(q *dns.Msg) *dns.Msg {
		m := Records(t, 0)(q)
		for i := range Wide {
			m.Answer = append(m.Answer, Record(t, q.Question[0].Name+" 60 IN "+prefix+strconv.Itoa(i)))
		}
		return m
	}
}

// ByLabel is the script of the situation that a name's first label tells.
func ByLabel(situations []Situation) Script {
	return func(r *Request) {
		label, _, _ := strings.Cut(strings.ToLower(r.Query().Question[0].Name), ".")
		for _, s := range situations {
			if s.Name == label {
				s.Script(r)
			}
		}
	}
}

// Habits are the stub resolvers that there are scripts for. Java, and Go with
// cgo, ask the C library.
func Habits() []Stub {
	const interval = 5 * time.Second
	musl := Stub{Name: "musl 1.2.3", Every: interval / 2, Tries: 2, AtOnce: 4, Cut: TakeCut, Plain: true, Most: 48}
	later := musl
	later.Name, later.Cut = "musl 1.2.4", EachOverTCP
	return []Stub{
		{Name: "glibc", Every: interval, Tries: 2, Failures: 2, Cut: BothOverTCP, Anew: 4},
		musl, later,
		{Name: "go", EDNS: 1232, Every: interval, Tries: 2, Failures: 2, Cut: EachOverTCP},
		{Name: "c-ares 1.18", Every: interval, Tries: 4, Failures: 4, Cut: EachOverTCP},
		{Name: "c-ares 1.34", EDNS: 1232, Every: 2800 * time.Millisecond, Tries: 3, Failures: 1, Cut: EachOverTCP},
		{Name: "busybox", Every: interval / 2, Tries: 2, AtOnce: 4, Failures: 1, Cut: TakeCut},
	}
}

// Budget is how long the servers are waited for before a client is told of their
// silence: far from the times at which any of Habits asks again or gives up, and
// with them within the second for which silence is remembered.
const Budget = 2100 * time.Millisecond

// Outcomes are what each of Habits makes of each of Situations, by their names.
// Real programs are held against it as well as the scripts of them.
func Outcomes() map[string]map[string]Found {
	all := Tally(Wide, Wide)
	cut := Tally(30, 17) // what 512 bytes hold
	found := func(answer string, udp, tcp int) Found { return Found{answer, udp, tcp} }
	rows := map[string][]Found{ // AAAA NXDOMAIN, TC, SERVFAIL
		"glibc":       {found("1 A", 2, 0), found(all, 8, 8), found("again", 4, 0)},
		"musl 1.2.3":  {found("none", 2, 0), found(cut, 2, 0), found("again", 12, 0)},
		"musl 1.2.4":  {found("none", 2, 0), found("48 A", 2, 2), found("again", 12, 0)},
		"go":          {found("1 A", 2, 0), found(all, 2, 2), found("again", 4, 0)},
		"c-ares 1.18": {found("1 A", 2, 0), found(all, 2, 2), found("again", 8, 0)},
		"c-ares 1.34": {found("1 A", 2, 0), found(all, 2, 2), found("again", 2, 0)},
		"busybox":     {found("1 A", 2, 0), found(cut, 2, 0), found("again", 6, 0)},
	}
	out := map[string]map[string]Found{}
	for name, row := range rows {
		out[name] = map[string]Found{
			"normal": found("1 A, 1 AAAA", 2, 0), "a-only": found("1 A", 2, 0), "aaaa-nxdomain": row[0],
			// REFUSED reaches clients as SERVFAIL, and so does silence.
			"tc": row[1], "servfail": row[2], "refused": row[2], "drop": row[2],
		}
	}
	return out
}
