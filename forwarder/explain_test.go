package forwarder_test

import (
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder"
	"github.com/nodens-dns/nodens/forwarder/cache"
	"github.com/nodens-dns/nodens/forwarder/dnstest"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

func name(t *testing.T, text string) []byte {
	t.Helper()
	b, ok := wire.AppendName(nil, text)
	if !ok {
		t.Fatalf("%q is no name", text)
	}
	return b
}

func TestExplain(t *testing.T) {
	r := newRig(t, dnstest.Addresses(2), func(c *forwarder.Config) { c.Routes[0].Zones = []string{"test."} })
	for what, test := range map[string]struct {
		name  string
		qtype wire.Type
		zone  string
		route int
		rcode wire.RCode
		local string
	}{
		"a route":       {"a.test.", wire.TypeA, "test.", 0, wire.NoError, ""},
		"no route":      {"a.example.", wire.TypeA, "", -1, wire.NoError, ""},
		"a local name":  {"a.localhost.", wire.TypeA, "localhost.", -1, wire.NoError, "loopback addresses"},
		"a denied name": {"x.invalid.", wire.TypeA, "invalid.", -1, wire.NoError, "there is no such name"},
		"a transfer":    {"a.test.", wire.TypeAXFR, "test.", 0, wire.Refused, ""},
	} {
		e := r.Explain(name(t, test.name), test.qtype)
		if e.Zone != test.zone || e.Route != test.route || e.RCode != test.rcode || e.Local != test.local || e.Kept != nil || e.Asking {
			t.Errorf("%s: %+v", what, e)
		}
	}
}

func TestExplainWhatIsKept(t *testing.T) {
	r := newRig(t, dnstest.Addresses(2))
	asked := name(t, "a.test.")
	release := r.server.Hold()
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.exchange(dnstest.Question("a.test.", dns.TypeA), forwarder.UDP)
	}()
	until(t, func() bool { return r.Explain(asked, wire.TypeA).Asking })
	release()
	<-done
	r.exchange(dnstest.Question("A.test.", dns.TypeA), forwarder.UDP)
	r.exchange(edns(dnstest.Question("a.test.", dns.TypeA), 1232, true), forwarder.UDP)
	r.turn(10 * time.Second)
	for range 3 { // looking leaves no trace
		e := r.Explain(asked, wire.TypeA)
		if len(e.Kept) != 2 || e.Asking {
			t.Fatalf("%+v", e)
		}
		k := e.Kept[0]
		if k.DO || k.CD || k.Kind != cache.Positive || k.Age != 10*time.Second || k.Left <= 0 || k.Hits != 1 {
			t.Errorf("%+v", k)
		}
		m := dnstest.Unpack(t, k.Reply)
		if len(m.Answer) != 2 || time.Duration(m.Answer[0].Header().Ttl)*time.Second != k.Left {
			t.Errorf("the reply is %v", m)
		}
		if !e.Kept[1].DO {
			t.Errorf("the other is %+v", e.Kept[1])
		}
	}
	r.turn(time.Hour - 11*time.Second)
	r.server.Script(dnstest.Silent)
	r.exchange(dnstest.Question("a.test.", dns.TypeA), forwarder.UDP)
	if k := r.Explain(asked, wire.TypeA).Kept[0]; k.Left > 0 || k.StandBy <= 0 || !k.Resting || k.Why != wire.EDENoReachable {
		t.Errorf("after a failure: %+v", k)
	}
	r.exchange(dnstest.Question("dead.test.", dns.TypeA), forwarder.UDP)
	if k := r.Explain(name(t, "dead.test."), wire.TypeA).Kept[0]; k.Kind != cache.Failure || k.RCode != wire.ServFail || k.Reply != nil {
		t.Errorf("a failure: %+v", k)
	}
}

func TestFlush(t *testing.T) {
	r := newRig(t, dnstest.Addresses(1))
	fill := func() {
		for _, n := range []string{"a.test.", "b.a.test.", "ba.test.", "test.", "a.other."} {
			r.exchange(dnstest.Question(n, dns.TypeA), forwarder.UDP)
			r.exchange(edns(dnstest.Question(n, dns.TypeA), 1232, true), forwarder.UDP)
		}
	}
	for what, test := range map[string]struct {
		name  string
		below bool
		want  int
		still []string // in memory
	}{
		"a name":         {"a.test.", false, 2, []string{"b.a.test.", "ba.test.", "test.", "a.other."}},
		"and all below":  {"a.test.", true, 4, []string{"ba.test.", "test.", "a.other."}},
		"a top domain":   {"test.", true, 8, []string{"a.other."}},
		"everything":     {".", true, 10, nil},
		"the root alone": {".", false, 0, []string{"a.test."}},
		"nobody's name":  {"x.test.", true, 0, []string{"a.test."}},
	} {
		fill()
		if n := r.Flush(name(t, test.name), test.below); n != test.want {
			t.Errorf("%s: %d dropped, want %d", what, n, test.want)
		}
		for _, n := range test.still {
			if _, hit := r.exchange(dnstest.Question(n, dns.TypeA), forwarder.UDP); !hit {
				t.Errorf("%s: %s is gone", what, n)
			}
		}
	}
}
