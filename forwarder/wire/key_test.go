package wire_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

// TestKeyQuery asks again for what keys stand for: the key of the new query is
// the same.
func TestKeyQuery(t *testing.T) {
	for _, name := range []string{".", "a.test.", "A.TesT.", "\\201\\.x.test."} {
		for _, qtype := range []uint16{dns.TypeA, dns.TypeCAA, 65280} {
			for _, do := range []bool{false, true} {
				for _, cd := range []bool{false, true} {
					m := new(dns.Msg).SetQuestion(name, qtype)
					m.CheckingDisabled, m.AuthenticatedData, m.RecursionDesired = cd, true, false
					if do {
						m.SetEdns0(4096, true)
					}
					checkKeyQuery(t, m)
				}
			}
		}
	}
}

func checkKeyQuery(t *testing.T, m *dns.Msg) {
	t.Helper()
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	q := sound(t, b)
	key := q.AppendKey(nil)
	again := sound(t, wire.AppendKeyQuery([]byte("in front"), key)[len("in front"):])
	if diff := cmp.Diff(key, again.AppendKey(nil)); diff != "" {
		t.Errorf("key of %v (-want +got):\n%s", m, diff)
	}
	if !again.RD() || again.AD() || wire.WantsProof(key) != q.DO {
		t.Errorf("query for %v: RD %v, AD %v, proof %v", m, again.RD(), again.AD(), wire.WantsProof(key))
	}
	other := wire.AppendKeyOfType([]byte{}, key, 0)
	if len(other) != len(key) || wire.AppendKeyOfType(nil, other, wire.Type(m.Question[0].Qtype))[len(key)-1] != key[len(key)-1] {
		t.Errorf("key of another type: % x", other)
	}
	if diff := cmp.Diff(key, wire.AppendKeyOfType(nil, other, wire.Type(m.Question[0].Qtype))); diff != "" || string(other) == string(key) {
		t.Errorf("there and back (-want +got):\n%s", diff)
	}
}

func TestMinimal(t *testing.T) {
	m := new(dns.Msg).SetQuestion("a.test.", dns.TypeA)
	m.Response, m.Compress = true, true
	for _, text := range []string{"a.test. 60 IN CNAME b.test.", "b.test. 60 IN A 10.0.0.1"} {
		m.Answer = append(m.Answer, newRR(t, text))
	}
	want, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	m.Ns = append(m.Ns, newRR(t, "test. 60 IN NS ns.b.test."))
	m.Extra = append(m.Extra, newRR(t, "ns.b.test. 60 IN A 10.0.0.2"))
	m.SetEdns0(1232, false)
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	full, err := wire.ParseReply(b)
	if err != nil {
		t.Fatal(err)
	}
	short := full.Minimal()
	got := parsed(t, short.AppendBare(nil))
	wanted := parsed(t, want)
	if diff := cmp.Diff(wanted.Answer, got.Answer); diff != "" || len(got.Ns)+len(got.Extra) != 0 {
		t.Errorf("answers (-want +got):\n%s\n%v", diff, got)
	}
	if full.Count(wire.Authority) != 1 || full.Count(wire.Additional) != 2 {
		t.Error("the whole reply has changed")
	}
}

func newRR(t *testing.T, text string) dns.RR {
	t.Helper()
	rr, err := dns.NewRR(text)
	if err != nil {
		t.Fatal(err)
	}
	return rr
}
