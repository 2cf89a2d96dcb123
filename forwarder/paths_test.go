package forwarder_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder"
	"github.com/nodens-dns/nodens/forwarder/dnstest"
)

// path is a way by which an answer reaches a client. Every way must give the
// same reply to the same query.
type path struct {
	name  string
	proto forwarder.Proto
	// before prepares the rig so that the next query for the name takes the
	// path. sign is a client that asks with DO and AD.
	before func(r *rig, m *dns.Msg)
	hit    bool
	stale  bool
}

var paths = []path{
	{name: "miss", before: func(*rig, *dns.Msg) {}},
	{name: "hit", hit: true, before: func(r *rig, m *dns.Msg) { r.exchange(m, forwarder.UDP) }},
	{name: "hit filled by TCP", hit: true, before: func(r *rig, m *dns.Msg) { r.exchange(m, forwarder.TCP) }},
	{name: "hit over TCP", proto: forwarder.TCP, hit: true, before: func(r *rig, m *dns.Msg) { r.exchange(m, forwarder.UDP) }},
	{name: "miss over TCP", proto: forwarder.TCP, before: func(*rig, *dns.Msg) {}},
	{name: "shared", before: joinFlight},
	{name: "shared over TCP", proto: forwarder.TCP, before: joinFlight},
	{name: "stale", stale: true, before: outlive},
	{name: "stale over TCP", proto: forwarder.TCP, stale: true, before: outlive},
}

// outlive has the answer end and the servers fail.
func outlive(r *rig, m *dns.Msg) {
	r.exchange(m, forwarder.UDP)
	r.turn(time.Minute)
	r.server.Script(dnstest.RCode(dns.RcodeServerFailure))
}

// joinFlight has another client ask first, who gets his answer when there are
// two to share it.
func joinFlight(r *rig, m *dns.Msg) {
	release := r.server.Hold()
	var leader sync.WaitGroup
	leader.Go(func() { r.exchange(m, forwarder.UDP) })
	r.t.Cleanup(leader.Wait)
	waitFor(r.t, func() bool { return r.server.Asked() == 1 })
	leader.Go(func() {
		defer release()
		waitFor(r.t, func() bool { return r.Stats().Shared == 1 })
	})
}

// want is what every path must show of a reply.
type want struct {
	AD, DO, OPT, TC bool
	Rcode           int
	Name            string
}

func shown(m *dns.Msg) want {
	w := want{AD: m.AuthenticatedData, TC: m.Truncated, Rcode: m.Rcode, Name: m.Question[0].Name}
	if opt := m.IsEdns0(); opt != nil {
		w.OPT, w.DO = true, opt.Do()
	}
	return w
}

func TestEveryPath(t *testing.T) {
	upstream := func(q *dns.Msg) *dns.Msg {
		r := dnstest.Addresses(3)(q)
		r.AuthenticatedData = q.AuthenticatedData
		r.Authoritative = true
		r.SetEdns0(4096, q.IsEdns0() != nil && q.IsEdns0().Do())
		r.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "24a5ac0123456789"}}
		return r
	}
	tests := []struct {
		name string
		make func() *dns.Msg
		want want
	}{
		{"plain", func() *dns.Msg { return dnstest.Question("a.test.", dns.TypeA) }, want{Name: "a.test."}},
		{"mixed case", func() *dns.Msg { return dnstest.Question("A.TesT.", dns.TypeA) }, want{Name: "A.TesT."}},
		{"EDNS", func() *dns.Msg { return edns(dnstest.Question("a.test.", dns.TypeA), 1232, false) }, want{Name: "a.test.", OPT: true}},
		{"DO", func() *dns.Msg { return edns(dnstest.Question("a.test.", dns.TypeA), 1232, true) }, want{Name: "a.test.", OPT: true, DO: true, AD: true}},
		{"AD", func() *dns.Msg {
			m := dnstest.Question("a.test.", dns.TypeA)
			m.AuthenticatedData = true
			return m
		}, want{Name: "a.test.", AD: true}},
		{"options", func() *dns.Msg {
			m := edns(dnstest.Question("a.test.", dns.TypeA), 1232, false)
			m.IsEdns0().Option = []dns.EDNS0{
				&dns.EDNS0_NSID{Code: dns.EDNS0NSID},
				&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0011223344556677"},
				&dns.EDNS0_PADDING{Padding: make([]byte, 9)},
			}
			return m
		}, want{Name: "a.test.", OPT: true}},
	}
	for _, p := range paths {
		for _, tt := range tests {
			t.Run(p.name+"/"+tt.name, func(t *testing.T) {
				r := newRig(t, upstream)
				p.before(r, tt.make())
				m := tt.make()
				m.Id = 4711
				got, hit := r.exchange(m, p.proto)
				expect := tt.want
				expect.AD = expect.AD && !p.stale
				if diff := cmp.Diff(expect, shown(got)); diff != "" {
					t.Errorf("reply (-want +got):\n%s", diff)
				}
				if hit != p.hit {
					t.Errorf("hit: %v", hit)
				}
				if got.Id != 4711 || !got.Response || !got.RecursionAvailable || !got.RecursionDesired || got.Authoritative || got.CheckingDisabled || got.Zero {
					t.Errorf("header:\n%v", got)
				}
				if len(got.Answer) != 3 {
					t.Errorf("%d answers", len(got.Answer))
				}
				checkOPT(t, got, p.stale)
			})
		}
	}
}

// checkOPT sees that no option comes back but the extended error of a stale
// answer.
func checkOPT(t *testing.T, m *dns.Msg, stale bool) {
	t.Helper()
	opt := m.IsEdns0()
	if opt == nil {
		return
	}
	if opt.UDPSize() != 1232 || opt.Version() != 0 {
		t.Errorf("OPT %v", opt)
	}
	switch {
	case stale && len(opt.Option) == 1:
		if ede, ok := opt.Option[0].(*dns.EDNS0_EDE); !ok || ede.InfoCode != dns.ExtendedErrorCodeStaleAnswer {
			t.Errorf("option %v of a stale answer", opt.Option[0])
		}
	case len(opt.Option) != 0:
		t.Errorf("options %v", opt.Option)
	}
}

func TestEveryPathFitsTheClient(t *testing.T) {
	sizes := []struct {
		name  string
		make  func() *dns.Msg
		limit int
	}{
		{"no EDNS", func() *dns.Msg { return dnstest.Question("a.test.", dns.TypeA) }, 512},
		{"EDNS 100", func() *dns.Msg { return edns(dnstest.Question("a.test.", dns.TypeA), 100, false) }, 512},
		{"EDNS 600", func() *dns.Msg { return edns(dnstest.Question("a.test.", dns.TypeA), 600, false) }, 600},
		{"EDNS 4096", func() *dns.Msg { return edns(dnstest.Question("a.test.", dns.TypeA), 4096, false) }, 1232},
		{"EDNS 65535", func() *dns.Msg { return edns(dnstest.Question("a.test.", dns.TypeA), 65535, false) }, 1232},
	}
	for _, p := range paths {
		for _, tt := range sizes {
			t.Run(p.name+"/"+tt.name, func(t *testing.T) {
				r := newRig(t, dnstest.Addresses(200))
				p.before(r, tt.make())
				b, _ := r.ask(dnstest.Pack(t, tt.make()), p.proto)
				m := new(dns.Msg)
				if err := m.Unpack(b); err != nil {
					t.Fatal(err)
				}
				if p.proto == forwarder.TCP {
					if m.Truncated || len(m.Answer) != 200 {
						t.Errorf("over TCP: TC %v, %d answers", m.Truncated, len(m.Answer))
					}
					return
				}
				if len(b) > tt.limit || len(b) < tt.limit-32 {
					t.Errorf("%d bytes for a limit of %d", len(b), tt.limit)
				}
				if !m.Truncated || len(m.Answer) == 0 {
					t.Errorf("TC %v with %d answers", m.Truncated, len(m.Answer))
				}
			})
		}
	}
}

// TestADDoesNotDependOnWhoCameFirst has three clients in all orders.
func TestADDoesNotDependOnWhoCameFirst(t *testing.T) {
	upstream := func(q *dns.Msg) *dns.Msg {
		r := dnstest.Addresses(1)(q)
		r.AuthenticatedData = true
		return r
	}
	clients := []func() *dns.Msg{
		func() *dns.Msg { return dnstest.Question("a.test.", dns.TypeA) },
		func() *dns.Msg { m := dnstest.Question("a.test.", dns.TypeA); m.AuthenticatedData = true; return m },
		func() *dns.Msg { return edns(dnstest.Question("a.test.", dns.TypeA), 1232, true) },
	}
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		r := newRig(t, upstream)
		for _, i := range order {
			got, _ := r.exchange(clients[i](), forwarder.UDP)
			if got.AuthenticatedData != (i > 0) {
				t.Errorf("order %v: client %d gets AD %v", order, i, got.AuthenticatedData)
			}
		}
	}
}

func TestCDIsAnotherAnswer(t *testing.T) {
	r := newRig(t, func(q *dns.Msg) *dns.Msg {
		if q.CheckingDisabled {
			return dnstest.Addresses(1)(q)
		}
		return dnstest.RCode(dns.RcodeServerFailure)(q)
	})
	for range 2 {
		for _, cd := range []bool{true, false} {
			m := dnstest.Question("a.test.", dns.TypeA)
			m.CheckingDisabled = cd
			got, _ := r.exchange(m, forwarder.UDP)
			if (got.Rcode == dns.RcodeSuccess) != cd || got.CheckingDisabled != cd {
				t.Errorf("CD=%v gets %v", cd, got)
			}
		}
	}
	if r.server.Asked() != 2 {
		t.Errorf("%d questions upstream, want one for each CD", r.server.Asked())
	}
}
