package forwarder_test

import (
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder"
	"github.com/nodens-dns/nodens/forwarder/dnstest"
)

// TestAbsurdTTLs has a server with TTLs that last for years, or are negative.
func TestAbsurdTTLs(t *testing.T) {
	for ttl, want := range map[uint32]uint32{1<<31 - 1: 3600, 1 << 31: 0, 1<<32 - 1: 0} {
		r := newRig(t, func(q *dns.Msg) *dns.Msg {
			m := dnstest.Addresses(1)(q)
			m.Answer[0].Header().Ttl = ttl
			return m
		})
		got, _ := r.exchange(dnstest.Question("a.test.", dns.TypeA), forwarder.UDP)
		if shown := got.Answer[0].Header().Ttl; shown != want {
			t.Errorf("%d is shown as %d, want %d", ttl, shown, want)
		}
		r.turn(time.Second)
		if _, hit := r.exchange(dnstest.Question("a.test.", dns.TypeA), forwarder.UDP); hit != (want > 0) {
			t.Errorf("%d: kept %v", ttl, hit)
		}
		r.turn(time.Hour)
		if _, hit := r.exchange(dnstest.Question("a.test.", dns.TypeA), forwarder.UDP); hit {
			t.Errorf("%d: kept for over an hour", ttl)
		}
	}
}

// TestTTLsOnlyFall compares each answer with the one before it, in a reply whose
// records end at different times.
func TestTTLsOnlyFall(t *testing.T) {
	r := newRig(t, dnstest.Records(t, 0, "a.test. 100 IN CNAME b.test.", "b.test. 60 IN A 10.0.0.1", "---", "test. 10 IN NS ns.test."))
	var before []uint32
	for range 10 {
		got, _ := r.exchange(dnstest.Question("a.test.", dns.TypeA), forwarder.UDP)
		var ttls []uint32
		for _, rr := range append(got.Answer, got.Ns...) {
			ttls = append(ttls, rr.Header().Ttl)
		}
		for i := range before {
			if ttls[i] != before[i]-1 {
				t.Errorf("a second after %v the TTLs are %v", before, ttls)
			}
		}
		before = ttls
		r.turn(time.Second)
	}
	if _, hit := r.exchange(dnstest.Question("a.test.", dns.TypeA), forwarder.UDP); hit {
		t.Error("kept after the least TTL")
	}
}

// TestMinTTL raises what is kept and shown alike, but no failure.
func TestMinTTL(t *testing.T) {
	minute := func(c *forwarder.Config) { c.Routes[0].Policy.MinTTL = time.Minute }
	r := newRig(t, dnstest.Records(t, 0, "a.test. 5 IN CNAME b.test.", "b.test. 300 IN A 10.0.0.1"), minute)
	for _, want := range []uint32{60, 50} {
		got, _ := r.exchange(dnstest.Question("a.test.", dns.TypeA), forwarder.UDP)
		if ttl := got.Answer[0].Header().Ttl; ttl != want {
			t.Errorf("TTL %d, want %d", ttl, want)
		}
		r.turn(10 * time.Second)
	}

	r = newRig(t, dnstest.RCode(dns.RcodeServerFailure), minute)
	r.exchange(dnstest.Question("a.test.", dns.TypeA), forwarder.UDP)
	r.server.Script(dnstest.Addresses(1))
	r.turn(6 * time.Second)
	if got, _ := r.exchange(dnstest.Question("a.test.", dns.TypeA), forwarder.UDP); got.Rcode != 0 {
		t.Errorf("the failure is kept for MinTTL: %v", got)
	}
}

// TestDenialOfTheCluster has a name appear a second after it was denied, with
// the cap that suits a cluster.
func TestDenialOfTheCluster(t *testing.T) {
	r := newRig(t, dnstest.Records(t, dns.RcodeNameError, "---", "cluster.local. 30 IN SOA ns.cluster.local. root.cluster.local. 1 3600 600 86400 30"),
		func(c *forwarder.Config) { c.Routes[0].Policy.MaxNegativeTTL = 5 * time.Second })
	m := dnstest.Question("web.ns.svc.cluster.local.", dns.TypeA)
	r.exchange(m, forwarder.UDP)
	r.server.Script(dnstest.Addresses(1))
	r.turn(5 * time.Second)
	if got, _ := r.exchange(m, forwarder.UDP); got.Rcode != 0 {
		t.Errorf("got %v", got)
	}
}

// TestErrorForEveryNameEndsAlone has a failing name beside a good one.
func TestErrorForEveryNameEndsAlone(t *testing.T) {
	r := newRig(t, func(q *dns.Msg) *dns.Msg {
		if q.Question[0].Name == "bad.test." {
			return dnstest.RCode(dns.RcodeRefused)(q)
		}
		return dnstest.Addresses(1)(q)
	})
	for range 3 {
		bad, _ := r.exchange(dnstest.Question("bad.test.", dns.TypeA), forwarder.UDP)
		good, _ := r.exchange(dnstest.Question("good.test.", dns.TypeA), forwarder.UDP)
		if bad.Rcode != dns.RcodeServerFailure || good.Rcode != 0 {
			t.Errorf("bad %v\ngood %v", bad, good)
		}
		r.turn(time.Second)
	}
	if r.server.Asked() != 2 {
		t.Errorf("asked %d times", r.server.Asked())
	}
}
