package forwarder_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder"
	"github.com/nodens-dns/nodens/forwarder/access"
	"github.com/nodens-dns/nodens/forwarder/dnstest"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

func open(t *testing.T, taps *forwarder.Taps, f forwarder.Filter) *forwarder.Tap {
	t.Helper()
	tap, err := taps.Open(f)
	if err != nil {
		t.Fatal(err)
	}
	return tap
}

// seen are the events that wait, as text.
func seen(tap *forwarder.Tap) (lines []string) {
	for range len(tap.Events()) {
		e := <-tap.Events()
		source := [forwarder.Sources]string{"hit", "stale", "miss", "local", "failure"}[e.Source]
		if e.Ruling != access.Allowed {
			source = "turned away"
		}
		rcode := "nothing"
		if e.RCode != forwarder.NoReply {
			rcode = dns.RcodeToString[int(e.RCode)]
		}
		kind := dns.Type(e.Type).String()
		if e.Class != wire.ClassIN {
			kind = dns.Class(e.Class).String() + " " + kind
		}
		lines = append(lines, string(wire.AppendText(nil, e.Name()))+" "+kind+" "+source+" "+rcode)
	}
	return lines
}

func TestTap(t *testing.T) {
	taps := new(forwarder.Taps)
	r := newRig(t, dnstest.Addresses(1), gated(t, access.Config{Deny: []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16")}}),
		func(c *forwarder.Config) { c.Taps = taps })
	a, aaaa := dnstest.Question("A.test.", dns.TypeA), dnstest.Question("b.test.", dns.TypeAAAA)
	local, chaos := dnstest.Question("x.invalid.", dns.TypeA), dnstest.Question("x.test.", dns.TypeA)
	chaos.Question[0].Qclass = dns.ClassCHAOS
	r.exchange(a, forwarder.UDP) // nobody watches yet
	all := open(t, taps, forwarder.Filter{})
	below := open(t, taps, forwarder.Filter{Below: []byte("\x01a\x04test\x00")})
	failed := open(t, taps, forwarder.Filter{Sources: []forwarder.Source{forwarder.FromFailure}, RCodes: []wire.RCode{wire.ServFail}})
	other := open(t, taps, forwarder.Filter{Clients: netip.MustParsePrefix("10.0.0.0/8"), Type: wire.TypeA})
	if _, err := taps.Open(forwarder.Filter{}); err == nil {
		t.Error("any number may watch")
	}
	r.exchange(a, forwarder.UDP)
	r.exchange(aaaa, forwarder.TCP)
	r.exchange(local, forwarder.UDP)
	r.exchange(chaos, forwarder.UDP)
	r.Lookup(make([]byte, 0, 4096), dnstest.Pack(t, a), client("10.9.0.1", forwarder.UDP))
	r.server.Script(dnstest.Silent)
	r.exchange(dnstest.Question("c.test.", dns.TypeA), forwarder.UDP)
	for what, check := range map[string]struct {
		tap  *forwarder.Tap
		want []string
	}{
		"all": {all, []string{
			"A.test. A hit NOERROR", "b.test. AAAA miss NOERROR", "x.invalid. A local NXDOMAIN", "x.test. CH A local REFUSED",
			"A.test. A turned away REFUSED", "c.test. A failure SERVFAIL",
		}},
		"a name":    {below, []string{"A.test. A hit NOERROR", "A.test. A turned away REFUSED"}},
		"failures":  {failed, []string{"c.test. A failure SERVFAIL"}},
		"a network": {other, []string{"A.test. A turned away REFUSED"}},
	} {
		if diff := cmp.Diff(check.want, seen(check.tap)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	below.Close()
	r.exchange(a, forwarder.UDP)
	if n, m := len(below.Events()), len(all.Events()); n != 0 || m != 1 {
		t.Errorf("after one was closed it has %d events, the other %d", n, m)
	}
	for range 1000 {
		r.exchange(a, forwarder.UDP)
	}
	if n := len(all.Events()) + int(all.Dropped()); n != 1001 || all.Dropped() == 0 {
		t.Errorf("%d events kept and dropped, want 1001, and some dropped", n)
	}
}

// A query is watched with its time, and without an allocation.
func TestWatchedHit(t *testing.T) {
	taps := new(forwarder.Taps)
	r := newRig(t, dnstest.Addresses(2), func(c *forwarder.Config) { c.Taps = taps })
	m := dnstest.Question("a.test.", dns.TypeA)
	r.exchange(m, forwarder.UDP)
	tap := open(t, taps, forwarder.Filter{Slower: 3 * time.Millisecond})
	q, dst, from := dnstest.Pack(t, m), make([]byte, 0, 4096), r.peer(0)
	for range 5 { // 0 to 4 ms
		r.Lookup(dst, q, from)
		r.turn(time.Millisecond)
	}
	if n := len(tap.Events()); n != 2 {
		t.Errorf("%d of 5 queries took 3 ms or more, want 2", n)
	}
	if n := testing.AllocsPerRun(100, func() { r.Lookup(dst, q, from) }); n != 0 {
		t.Errorf("a hit that is watched allocates %v times", n)
	}
}
