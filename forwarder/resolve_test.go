package forwarder_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder"
	"github.com/nodens-dns/nodens/forwarder/cache"
	"github.com/nodens-dns/nodens/forwarder/dnstest"
)

func TestFailureIsServFail(t *testing.T) {
	tests := []struct {
		name  string
		reply func(*dns.Msg) *dns.Msg
		ede   uint16
	}{
		{"silence", dnstest.Silent, dns.ExtendedErrorCodeNoReachableAuthority},
		{"SERVFAIL", dnstest.RCode(dns.RcodeServerFailure), dns.ExtendedErrorCodeNetworkError},
		{"REFUSED", dnstest.RCode(dns.RcodeRefused), dns.ExtendedErrorCodeNetworkError},
		{"FORMERR", dnstest.RCode(dns.RcodeFormatError), dns.ExtendedErrorCodeNetworkError},
		{"referral", func(q *dns.Msg) *dns.Msg {
			m := new(dns.Msg).SetReply(q)
			m.Ns = []dns.RR{&dns.NS{Hdr: dns.RR_Header{Name: "test.", Rrtype: dns.TypeNS, Class: dns.ClassINET, Ttl: 60}, Ns: "ns.test."}}
			return m
		}, dns.ExtendedErrorCodeNetworkError},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, tt.reply)
			got, _ := r.exchange(edns(dnstest.Question("a.test.", dns.TypeA), 1232, false), forwarder.UDP)
			if got.Rcode != dns.RcodeServerFailure || extended(got) != tt.ede {
				t.Errorf("first: %v", got)
			}
			got, hit := r.exchange(edns(dnstest.Question("a.test.", dns.TypeA), 1232, false), forwarder.UDP)
			if !hit || got.Rcode != dns.RcodeServerFailure || extended(got) != dns.ExtendedErrorCodeCachedError {
				t.Errorf("the failure is not remembered: hit %v, %v", hit, got)
			}
			r.turn(5 * time.Second)
			r.server.Script(dnstest.Addresses(1))
			if got, _ := r.exchange(dnstest.Question("a.test.", dns.TypeA), forwarder.UDP); got.Rcode != dns.RcodeSuccess {
				t.Errorf("the failure sticks: %v", got)
			}
		})
	}
}

// TestTooLongByDNAME: that a DNAME makes a name too long says something of the name,
// so it is passed on as it is, and asked for each time.
func TestTooLongByDNAME(t *testing.T) {
	r := newRig(t, dnstest.Records(t, dns.RcodeYXDomain, "test. 60 DNAME example."))
	for n := range 2 {
		m, hit := r.exchange(edns(dnstest.Question("a.test.", dns.TypeA), 1232, false), forwarder.UDP)
		want := []string{"test. 60 IN DNAME example."}
		if hit || m.Rcode != dns.RcodeYXDomain || !slices.Equal(section(m.Answer), want) || extended(m) != 65535 {
			t.Errorf("hit %v: %v", hit, m)
		}
		if asked := r.server.Asked(); asked != n+1 {
			t.Errorf("%d questions to the servers, want %d", asked, n+1)
		}
	}
}

// extended is the extended error code of a reply, 65535 without.
func extended(m *dns.Msg) uint16 {
	if code, ok := dnstest.Extended(m); ok {
		return code
	}
	return 65535
}

func TestIdenticalMissesShareOneFlight(t *testing.T) {
	r := newRig(t, dnstest.Addresses(1), func(c *forwarder.Config) {
		c.MaxFollowers, c.Routes[0].MaxInFlight = 1000, 1000
	})
	release := r.server.Hold()
	const clients = 200
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			m := dnstest.Question([]string{"a.test.", "A.test.", "a.TEST."}[i%3], dns.TypeA)
			m.Id = uint16(i)
			if i%2 == 0 {
				m.SetEdns0(uint16(1000+i), false)
				m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_SUBNET{Code: dns.EDNS0SUBNET, Family: 1, SourceNetmask: 24, Address: []byte{198, 51, byte(i), 0}}}
			}
			got, _ := r.exchange(m, forwarder.UDP)
			if got.Id != uint16(i) || got.Question[0].Name != m.Question[0].Name || (got.IsEdns0() != nil) != (i%2 == 0) || len(got.Answer) != 1 {
				t.Errorf("client %d got %v", i, got)
			}
		})
	}
	waitFor(t, func() bool { return r.Stats().Shared == clients-1 })
	release()
	wg.Wait()
	if r.server.Asked() != 1 {
		t.Errorf("%d questions upstream for one name", r.server.Asked())
	}
}

func TestDifferentQuestionsDoNotShare(t *testing.T) {
	r := newRig(t, dnstest.Addresses(1))
	release := r.server.Hold()
	var wg sync.WaitGroup
	cd := dnstest.Question("a.test.", dns.TypeA)
	cd.CheckingDisabled = true
	rd := dnstest.Question("a.test.", dns.TypeA)
	rd.RecursionDesired = false
	all := []*dns.Msg{
		dnstest.Question("a.test.", dns.TypeA), dnstest.Question("a.test.", dns.TypeAAAA), dnstest.Question("b.test.", dns.TypeA),
		edns(dnstest.Question("a.test.", dns.TypeA), 1232, true), cd, rd,
	}
	for _, m := range all {
		wg.Go(func() { r.exchange(m, forwarder.UDP) })
	}
	waitFor(t, func() bool { return r.server.Asked() == len(all) })
	release()
	wg.Wait()
}

func TestCollidingQuestionsDoNotShare(t *testing.T) {
	r := newRig(t, dnstest.Addresses(1), func(c *forwarder.Config) {
		c.Cache = newCache(t, cache.Config{Bytes: 1 << 20, HashBits: 1})
	})
	release := r.server.Hold()
	var wg sync.WaitGroup
	for i := range 5 {
		name := fmt.Sprintf("n%d.test.", i)
		wg.Go(func() {
			if got, _ := r.exchange(dnstest.Question(name, dns.TypeA), forwarder.UDP); got.Answer[0].Header().Name != name {
				t.Errorf("%s got %v", name, got.Answer)
			}
		})
	}
	waitFor(t, func() bool { return r.server.Asked() == 5 })
	release()
	wg.Wait()
}

func waitFor(t testing.TB, ok func() bool) {
	t.Helper()
	for range 1000 {
		if ok() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("waited 5 s in vain")
}

func TestFollowersAreBounded(t *testing.T) {
	r := newRig(t, dnstest.Addresses(1), func(c *forwarder.Config) { c.MaxFollowers = 3 })
	release := r.server.Hold()
	q := dnstest.Pack(t, dnstest.Question("a.test.", dns.TypeA))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if b, _ := r.ask(q, forwarder.UDP); b == nil {
				t.Error("a follower within the bound got nothing")
			}
		})
	}
	waitFor(t, func() bool { return r.Stats().Shared == 3 })
	if b, _ := r.ask(q, forwarder.UDP); b != nil {
		t.Error("the fourth follower was answered")
	}
	release()
	wg.Wait()
	if n := r.Stats().Surplus; n != 1 {
		t.Errorf("%d counted as surplus", n)
	}
}

func TestFullRouteAnswersAtOnce(t *testing.T) {
	other := dnstest.NewGroup(dnstest.Addresses(1))
	r := newRig(t, dnstest.Addresses(1), func(c *forwarder.Config) {
		c.Routes[0].MaxInFlight = 2
		c.Routes = append(c.Routes, forwarder.Route{Zones: []string{"other."}, Group: other, MaxInFlight: 2, Policy: c.Routes[0].Policy})
	})
	r.exchange(dnstest.Question("old.test.", dns.TypeA), forwarder.UDP)
	r.turn(time.Minute)
	release := r.server.Hold()
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() { r.exchange(dnstest.Question(fmt.Sprintf("n%d.test.", i), dns.TypeA), forwarder.UDP) })
	}
	waitFor(t, func() bool { return r.server.Asked() == 3 })
	if got, _ := r.exchange(dnstest.Question("n3.test.", dns.TypeA), forwarder.UDP); got.Rcode != dns.RcodeServerFailure {
		t.Errorf("over the bound: %v", got)
	}
	if got, _ := r.exchange(dnstest.Question("old.test.", dns.TypeA), forwarder.UDP); got.Rcode != dns.RcodeSuccess || len(got.Answer) != 1 {
		t.Errorf("over the bound with an old answer: %v", got)
	}
	if got, _ := r.exchange(dnstest.Question("a.other.", dns.TypeA), forwarder.UDP); got.Rcode != dns.RcodeSuccess {
		t.Errorf("another route is starved: %v", got)
	}
	release()
	wg.Wait()
	if s := r.Stats().Routes[0]; s.Shed != 2 || s.InFlight != 0 {
		t.Errorf("route %+v", s)
	}
	if n := r.Stats().Renewed; n != 0 {
		t.Errorf("%d goroutines were started for a route that is full", n)
	}
	if got, _ := r.exchange(dnstest.Question("n3.test.", dns.TypeA), forwarder.UDP); got.Rcode != dns.RcodeSuccess {
		t.Errorf("being over the bound is remembered: %v", got)
	}
}

// TestCrowdInTheDark has no server answer anything: few may wait for them then, and
// the others are told where their queries were read.
func TestCrowdInTheDark(t *testing.T) {
	r := newRig(t, dnstest.Silent, func(c *forwarder.Config) { c.Routes[0].MaxInFlight = 16 })
	ask := func(name string) (rcode int, atOnce bool) {
		got, hit := r.exchange(dnstest.Question(name, dns.TypeA), forwarder.UDP)
		return got.Rcode, hit
	}
	for i := range 8 {
		if rcode, atOnce := ask(fmt.Sprintf("dark%d.test.", i)); rcode != dns.RcodeServerFailure || atOnce {
			t.Errorf("query %d: %s, at once %v", i, dns.RcodeToString[rcode], atOnce)
		}
	}
	release := r.server.Hold()
	var waiting sync.WaitGroup
	for i := range 2 {
		waiting.Go(func() { ask(fmt.Sprintf("n%d.test.", i)) })
	}
	waitFor(t, func() bool { return r.server.Asked() == 10 })
	if rcode, atOnce := ask("more.test."); rcode != dns.RcodeServerFailure || !atOnce {
		t.Errorf("the third: %s, at once %v", dns.RcodeToString[rcode], atOnce)
	}
	waiting.Go(func() {
		if rcode, atOnce := ask("n0.test."); rcode != dns.RcodeSuccess || atOnce {
			t.Errorf("the same as is being asked: %s, at once %v", dns.RcodeToString[rcode], atOnce)
		}
	})
	waitFor(t, func() bool { return r.Stats().Shared == 1 })
	r.server.Script(dnstest.Addresses(1))
	release()
	waiting.Wait()
	release = r.server.Hold()
	defer release()
	for i := range 15 {
		waiting.Go(func() { ask(fmt.Sprintf("light%d.test.", i)) })
	}
	waitFor(t, func() bool { return r.Stats().Routes[0].InFlight == 15 })
	release()
	waiting.Wait()
	if n := r.Stats().Routes[0].Shed; n != 1 {
		t.Errorf("%d were turned away", n)
	}
}

func TestStaleStandsInAndEnds(t *testing.T) {
	r := newRig(t, dnstest.Addresses(1))
	m := dnstest.Question("a.test.", dns.TypeA)
	r.exchange(m, forwarder.UDP)
	r.turn(31 * time.Second)
	r.server.Script(dnstest.Silent)
	for i := range 10 {
		got, _ := r.exchange(m, forwarder.UDP)
		if got.Rcode != dns.RcodeSuccess || got.Answer[0].Header().Ttl != 30 {
			t.Fatalf("second %d: %v", i, got)
		}
		r.turn(time.Second)
	}
	if n := r.server.Asked(); n != 3 {
		t.Errorf("asked %d times in 10 s of outage, want the first and one per recheck time of 5 s", n)
	}
	r.server.Script(dnstest.Addresses(2))
	r.turn(5 * time.Second)
	if got, _ := r.exchange(m, forwarder.UDP); len(got.Answer) != 2 {
		t.Errorf("the new answer is not seen: %v", got)
	}
	r.server.Script(dnstest.Silent)
	r.turn(time.Hour + 31*time.Second)
	if got, _ := r.exchange(m, forwarder.UDP); got.Rcode != dns.RcodeServerFailure {
		t.Errorf("stale after MaxStale: %v", got)
	}
}

func TestStaleOnlyInSilence(t *testing.T) {
	r := newRig(t, dnstest.Addresses(1), func(c *forwarder.Config) { c.Routes[0].Policy.StaleOnError = false })
	m := dnstest.Question("a.test.", dns.TypeA)
	r.exchange(m, forwarder.UDP)
	r.turn(31 * time.Second)
	r.server.Script(dnstest.RCode(dns.RcodeServerFailure))
	if got, _ := r.exchange(m, forwarder.UDP); got.Rcode != dns.RcodeServerFailure {
		t.Errorf("a server answered, and the client got %v", got)
	}
	r.turn(10 * time.Second)
	r.server.Script(dnstest.Silent)
	if got, _ := r.exchange(m, forwarder.UDP); got.Rcode != dns.RcodeSuccess {
		t.Errorf("no server answered, and the client got %v", got)
	}
}

func TestNXDomainReplacesStale(t *testing.T) {
	r := newRig(t, dnstest.Addresses(1))
	m := dnstest.Question("a.test.", dns.TypeA)
	r.exchange(m, forwarder.UDP)
	r.turn(31 * time.Second)
	r.server.Script(dnstest.RCode(dns.RcodeNameError))
	if got, _ := r.exchange(m, forwarder.UDP); got.Rcode != dns.RcodeNameError {
		t.Errorf("got %v", got)
	}
}

func TestWithoutRD(t *testing.T) {
	r := newRig(t, dnstest.Addresses(1))
	m := dnstest.Question("a.test.", dns.TypeA)
	m.RecursionDesired = false
	for range 2 {
		if got, hit := r.exchange(m, forwarder.UDP); hit || got.RecursionDesired {
			t.Errorf("hit %v, %v", hit, got)
		}
	}
	if r.server.Seen()[0].RecursionDesired {
		t.Error("asked upstream with RD")
	}
	if _, hit := r.exchange(dnstest.Question("a.test.", dns.TypeA), forwarder.UDP); hit {
		t.Error("an answer without RD serves a client with RD")
	}
	if _, hit := r.exchange(m, forwarder.UDP); !hit {
		t.Error("a full answer does not serve a client without RD")
	}
}

func TestTTLZeroIsAskedEveryTime(t *testing.T) {
	n := 0
	r := newRig(t, func(q *dns.Msg) *dns.Msg {
		n++
		m := dnstest.Addresses(1)(q)
		m.Answer[0].Header().Ttl = 0
		m.Answer[0].(*dns.A).A[3] = byte(n)
		return m
	})
	for i := 1; i <= 3; i++ {
		got, _ := r.exchange(dnstest.Question("a.test.", dns.TypeA), forwarder.UDP)
		if a := got.Answer[0].(*dns.A); int(a.A[3]) != i || a.Hdr.Ttl != 0 {
			t.Errorf("query %d got %v", i, a)
		}
	}
}

func TestTruncatedUpstream(t *testing.T) {
	r := newRig(t, func(q *dns.Msg) *dns.Msg {
		m := dnstest.Addresses(2)(q)
		m.Truncated = true
		return m
	})
	for range 2 {
		got, hit := r.exchange(dnstest.Question("a.test.", dns.TypeA), forwarder.UDP)
		if hit || !got.Truncated || len(got.Answer) != 2 {
			t.Errorf("hit %v, TC %v, %d answers", hit, got.Truncated, len(got.Answer))
		}
	}
}

// TestRecordsBehindTheOPT has a server that puts glue after its OPT.
func TestRecordsBehindTheOPT(t *testing.T) {
	r := newRig(t, func(q *dns.Msg) *dns.Msg {
		m := dnstest.Addresses(1)(q)
		m.SetEdns0(4096, false)
		m.Extra = append(m.Extra, &dns.A{Hdr: dns.RR_Header{Name: "glue.a.test.", Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 9}, A: []byte{10, 9, 9, 9}})
		return m
	})
	for range 2 {
		got, _ := r.exchange(dnstest.Question("a.test.", dns.TypeA), forwarder.UDP)
		if len(got.Answer) != 1 || len(got.Extra) != 1 || got.Extra[0].Header().Name != "glue.a.test." {
			t.Errorf("got %v", got)
		}
	}
	if r.server.Asked() != 1 {
		t.Error("the rebuilt reply was not kept")
	}
}

func TestResolveOfNonsense(t *testing.T) {
	r := newRig(t, dnstest.Addresses(1))
	if _, v := r.Resolve(context.Background(), nil, []byte("short"), r.peer(0)); v != forwarder.Close {
		t.Errorf("verdict %d", v)
	}
}
