package cache_test

import (
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/cache"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// policy is the one most tests use.
func policy() *cache.Policy {
	return &cache.Policy{
		MaxTTL:         time.Hour,
		MaxNegativeTTL: 30 * time.Second,
		FailureTTL:     time.Second,
		ServFailTTL:    5 * time.Second,
		Recheck:        5 * time.Second,
		MaxStale:       time.Hour,
		StaleTTL:       30 * time.Second,
	}
}

func record(t testing.TB, text string) dns.RR {
	t.Helper()
	rr, err := dns.NewRR(text)
	if err != nil {
		t.Fatal(err)
	}
	return rr
}

// message is a reply to name and qtype with the records given as text, where
// "---" moves on to the next section.
func message(t testing.TB, name string, qtype uint16, rcode int, records ...string) *dns.Msg {
	t.Helper()
	m := new(dns.Msg)
	m.SetQuestion(name, qtype)
	m.Response, m.Rcode, m.Compress = true, rcode, true
	sections := []*[]dns.RR{&m.Answer, &m.Ns, &m.Extra}
	for _, text := range records {
		if text == "---" {
			sections = sections[1:]
			continue
		}
		*sections[0] = append(*sections[0], record(t, text))
	}
	return m
}

func parse(t testing.TB, m *dns.Msg) wire.Reply {
	t.Helper()
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	r, err := wire.ParseReply(b)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// ask is a client's query for a name, with the given ID.
func ask(t testing.TB, name string, qtype, id uint16) wire.Query {
	t.Helper()
	m := new(dns.Msg).SetQuestion(name, qtype)
	m.Id = id
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	q, fault := wire.ParseQuery(b)
	if fault != wire.Sound {
		t.Fatalf("query for %s: fault %d", name, fault)
	}
	return q
}

func key(q wire.Query) []byte { return q.AppendKey(nil) }

// entry makes an entry from a reply, which must be an answer.
func entry(t testing.TB, m *dns.Msg, p *cache.Policy, now time.Duration) (*cache.Entry, bool) {
	t.Helper()
	r := parse(t, m)
	e, kind, keep := cache.NewEntry(key(ask(t, m.Question[0].Name, m.Question[0].Qtype, 0)), &r, p, 0, now)
	if e == nil {
		t.Fatalf("the reply is no answer but of kind %d", kind)
	}
	return e, keep
}

func unpack(t testing.TB, b []byte) *dns.Msg {
	t.Helper()
	m := new(dns.Msg)
	if err := m.Unpack(b); err != nil {
		t.Fatal(err)
	}
	return m
}
