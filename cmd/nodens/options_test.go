package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/cache"
)

// What is answered here is what the file says.
func TestLocalAnswers(t *testing.T) {
	up := newScripted(t, 7, 0)
	h := serve(t, fmt.Sprintf("listen: [127.0.0.1:0]\nlocal: {deny: [corp.example], chaos: {version.bind: no secret}, refuseSnooping: true}\n"+
		"routes: [{zones: [.], servers: [%q]}]\n", up.address))
	h.expect("udp", h.address(0), "x.corp.example.", 0, "NXDOMAIN")
	h.expect("udp", h.address(0), "a.example.", 0, "NOERROR 192.0.2.7")
	put := func(change func(*dns.Msg)) *dns.Msg {
		t.Helper()
		query := new(dns.Msg).SetQuestion("a.example.", dns.TypeA)
		change(query)
		reply, _, err := (&dns.Client{Timeout: patience}).Exchange(query, h.address(0).String())
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	if reply := put(func(m *dns.Msg) { m.RecursionDesired = false }); reply.Rcode != dns.RcodeRefused {
		t.Errorf("without RD: %s, want REFUSED", answerOf(reply))
	}
	reply := put(func(m *dns.Msg) {
		m.Question[0] = dns.Question{Name: "version.bind.", Qtype: dns.TypeTXT, Qclass: dns.ClassCHAOS}
	})
	if len(reply.Answer) != 1 || !strings.Contains(reply.Answer[0].String(), "no secret") {
		t.Errorf("version.bind: %v", reply)
	}
	if up.sawName("x.corp.example.") || up.sawName("version.bind.") {
		t.Error("the server was asked for what is answered here")
	}
}

// Every setting of a route's cache reaches the policy: one that is added to one
// side only shows here.
func TestPolicyOf(t *testing.T) {
	got := policyOf(&RouteCacheConfig{
		MaxTTL: 1, MinTTL: 2, MaxNegativeTTL: 3, ServFailTTL: 4, MaxServFailTTL: 5, Stale: true, StaleWait: 6,
		PreferPositive: 7, ShareNXDomain: true, Prefetch: 8, KeepAA: true, Minimal: true,
	}, 9)
	want := cache.Policy{
		MaxTTL: 1, MinTTL: 2, MaxNegativeTTL: 3, ServFailTTL: 4, MaxServFailTTL: 5, StaleOnError: true, StaleWait: 6,
		PreferPositive: 7, ShareNXDomain: true, Prefetch: 8, KeepAA: true, Minimal: true, MaxStale: 9,
		FailureTTL: failureTTL, Recheck: recheck, StaleTTL: staleTTL,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("policy (-want +got):\n%s", diff)
	}
	for _, stale := range []bool{true, false} {
		if p := policyOf(&RouteCacheConfig{Stale: stale}, 0); (p.Wait() == 0) != stale {
			t.Errorf("staleWait 0s with stale %v waits %v", stale, p.Wait())
		}
	}
}

// Prefetches are counted where operators look.
func TestPrefetchIsCounted(t *testing.T) {
	s := fullSnapshot()
	s.Forwarder.Renewed, s.Forwarder.Prefetched, s.Forwarder.Unfetched = 5, 3, 2
	s.Forwarder.Ahead, s.Forwarder.HeldBack, s.Forwarder.Implied = 7, 8, 9
	found := map[string][]string{}
	for name, m := range gather(t, s) {
		if strings.HasPrefix(name, "nodens_renewals") || strings.HasPrefix(name, "nodens_prefetches") ||
			strings.HasPrefix(name, "nodens_search") || strings.HasPrefix(name, "nodens_implied") {
			found[name] = m.values
		}
	}
	want := map[string][]string{
		"nodens_renewals_total": {"5"}, "nodens_prefetches_total": {"3"}, "nodens_prefetches_shed_total": {"2"},
		"nodens_search_prefetches_total": {"7"}, "nodens_search_prefetches_shed_total": {"8"}, "nodens_implied_denials_total": {"9"},
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}
