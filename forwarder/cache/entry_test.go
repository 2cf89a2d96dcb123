package cache_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

func ttls(m *dns.Msg) []uint32 {
	var out []uint32
	for _, section := range [][]dns.RR{m.Answer, m.Ns, m.Extra} {
		for _, rr := range section {
			out = append(out, rr.Header().Ttl)
		}
	}
	return out
}

func TestTTLsCountDown(t *testing.T) {
	m := message(t, "a.test.", dns.TypeA, 0, "a.test. 10 IN CNAME b.test.", "b.test. 20 IN A 10.0.0.1")
	born := 5*time.Second + 900*time.Millisecond
	e, _ := entry(t, m, policy(), born)
	q := ask(t, "a.test.", dns.TypeA, 1)
	for _, tt := range []struct {
		after time.Duration
		want  []uint32
	}{
		{0, []uint32{10, 20}},
		{999 * time.Millisecond, []uint32{10, 20}},
		{time.Second, []uint32{9, 19}},
		{9999 * time.Millisecond, []uint32{1, 11}},
	} {
		if !e.Live(born + tt.after) {
			t.Errorf("not live after %v", tt.after)
		}
		got := ttls(unpack(t, e.Append(nil, &q, born+tt.after, false)))
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("TTLs after %v (-want +got):\n%s", tt.after, diff)
		}
	}
	if e.Live(born + 10*time.Second) {
		t.Error("live after its least TTL")
	}
}

func TestShownTTLs(t *testing.T) {
	tests := []struct {
		name    string
		rcode   int
		records []string
		want    []uint32
	}{
		{"an RRset takes its least", 0, []string{"a.test. 300 IN A 10.0.0.1", "a.test. 5 IN A 10.0.0.2", "a.test. 60 IN A 10.0.0.3"}, []uint32{5, 5, 5}},
		{"other sets keep theirs", 0, []string{"a.test. 300 IN CNAME b.test.", "b.test. 60 IN A 10.0.0.2"}, []uint32{300, 60}},
		{"signatures of different sets keep theirs", 0, []string{
			"a.test. 300 IN A 10.0.0.1",
			"a.test. 300 IN RRSIG A 8 2 300 20300101000000 20200101000000 1 test. AAAA",
			"a.test. 60 IN RRSIG NSEC 8 2 60 20300101000000 20200101000000 1 test. AAAA",
		}, []uint32{300, 300, 60}},
		{"the SOA shows what counts", dns.RcodeNameError, []string{"---", soaLong}, []uint32{5}},
		{"capped", 0, []string{"a.test. 86400 IN A 10.0.0.1"}, []uint32{3600}},
		{"0 stays 0", 0, []string{"a.test. 0 IN A 10.0.0.1"}, []uint32{0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, _ := entry(t, message(t, "a.test.", dns.TypeA, tt.rcode, tt.records...), policy(), 0)
			q := ask(t, "a.test.", dns.TypeA, 1)
			if diff := cmp.Diff(tt.want, ttls(unpack(t, e.Append(nil, &q, 0, false)))); diff != "" {
				t.Errorf("TTLs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStale(t *testing.T) {
	p := policy()
	m := message(t, "a.test.", dns.TypeA, 0, "a.test. 300 IN CNAME b.test.", "b.test. 7 IN A 10.0.0.1")
	m.AuthenticatedData = true
	e, _ := entry(t, m, p, 0)
	q := ask(t, "a.test.", dns.TypeA, 1)
	q.DO = true // a client that is shown AD where it is set
	if live := unpack(t, e.Append(nil, &q, 0, false)); !live.AuthenticatedData {
		t.Error("live data is not called authentic")
	}
	got := unpack(t, e.AppendStale(nil, &q, p, false))
	if diff := cmp.Diff([]uint32{30, 7}, ttls(got)); diff != "" {
		t.Errorf("stale TTLs (-want +got):\n%s", diff)
	}
	if got.AuthenticatedData {
		t.Error("stale data is called authentic")
	}
	if !e.Standby(p, 7*time.Second+time.Hour-1) || e.Standby(p, 7*time.Second+time.Hour) {
		t.Error("stands in for longer or shorter than MaxStale after its end")
	}
	if _, resting := e.Resting(0); resting {
		t.Error("a new entry rests")
	}
	e.Postpone(20*time.Second, wire.EDENetworkError)
	if why, resting := e.Resting(20*time.Second - 1); !resting || why != wire.EDENetworkError {
		t.Error("the recheck time or the reason is not kept")
	}
	if _, resting := e.Resting(20 * time.Second); resting {
		t.Error("the recheck time does not end")
	}
}

// addressList is a reply with n addresses, behind a CNAME.
func addressList(t testing.TB, n int) *dns.Msg {
	records := []string{"a.test. 60 IN CNAME b.test."}
	for i := range n {
		records = append(records, fmt.Sprintf("b.test. 60 IN A 10.0.0.%d", i))
	}
	return message(t, "a.test.", dns.TypeA, 0, records...)
}

func TestRotation(t *testing.T) {
	for n := 1; n < 5; n++ {
		e, _ := entry(t, addressList(t, n), policy(), 0)
		seen := map[string]int{}
		for id := range uint16(4 * n) {
			q := ask(t, "a.test.", dns.TypeA, id)
			m := unpack(t, e.Append(nil, &q, time.Second, true))
			if _, first := m.Answer[0].(*dns.CNAME); !first || len(m.Answer) != n+1 {
				t.Fatalf("%d addresses: the CNAME is not first of %d records", n, len(m.Answer))
			}
			all := map[string]bool{}
			for _, rr := range m.Answer[1:] {
				all[rr.(*dns.A).A.String()] = true
				if rr.Header().Ttl != 59 {
					t.Errorf("TTL %d after 1 s of 60", rr.Header().Ttl)
				}
			}
			if len(all) != n {
				t.Fatalf("%d addresses: only %v in a reply", n, all)
			}
			seen[m.Answer[1].(*dns.A).A.String()]++
		}
		for i := range n {
			if got := seen[fmt.Sprintf("10.0.0.%d", i)]; got != 4 {
				t.Errorf("%d addresses: number %d came first %d times of %d", n, i, got, 4*n)
			}
		}
	}
}

// TestRotationKeepsOtherRecords has a signature between and behind addresses.
func TestRotationKeepsOtherRecords(t *testing.T) {
	sig := "a.test. 60 IN RRSIG A 8 2 60 20300101000000 20200101000000 1 test. AAAA"
	m := message(t, "a.test.", dns.TypeA, 0, "a.test. 60 IN A 10.0.0.1", "a.test. 60 IN A 10.0.0.2", sig, "---", "---", "x.test. 60 IN A 10.0.0.9")
	e, _ := entry(t, m, policy(), 0)
	q := ask(t, "a.test.", dns.TypeA, 1)
	got := unpack(t, e.Append(nil, &q, 0, true))
	var order []string
	for _, rr := range append(got.Answer, got.Extra...) {
		order = append(order, dns.TypeToString[rr.Header().Rrtype]+" "+dns.Field(rr, 1))
	}
	want := []string{"A 10.0.0.2", "A 10.0.0.1", "RRSIG 1", "A 10.0.0.9"}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestAppendIsTheClientsOwn(t *testing.T) {
	e, _ := entry(t, message(t, "a.test.", dns.TypeA, 0, "a.test. 60 IN A 10.0.0.1"), policy(), 0)
	q := ask(t, "A.TesT.", dns.TypeA, 4711)
	got := unpack(t, e.Append([]byte("in front"), &q, 0, true)[len("in front"):])
	if got.Id != 4711 || got.Question[0].Name != "A.TesT." || got.Answer[0].Header().Name != "A.TesT." {
		t.Errorf("the reply is not the client's own:\n%v", got)
	}
	if !got.RecursionDesired || !got.RecursionAvailable || got.Authoritative || !got.Response {
		t.Errorf("flags:\n%v", got)
	}
	if e.RCode() != wire.NoError {
		t.Errorf("rcode %d", e.RCode())
	}
}
