package forwarder_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder"
	"github.com/nodens-dns/nodens/forwarder/dnstest"
	"github.com/nodens-dns/nodens/forwarder/rules"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// away is a group whose answers take their time.
type away struct {
	*dnstest.Group
	delay time.Duration
}

func (a *away) Exchange(ctx context.Context, dst []byte, q *wire.Query) (wire.Reply, error) {
	time.Sleep(a.delay)
	return a.Group.Exchange(ctx, dst, q)
}

// trip is the time to the servers and back.
const trip = time.Millisecond

// town is a forwarder in a cluster: a server for the cluster's names, and one for
// all others. It needs a synctest bubble.
type town struct {
	*rig
	cluster, outside *away
}

// clusterNames exist, with IPv4 addresses.
var clusterNames = []string{
	"web.prod.svc.cluster.local.", "web.shop.svc.cluster.local.", "web.shop.svc.other.example.", "p-0.db.shop.svc.cluster.local.", "db.shop.svc.cluster.local.",
}

func answerAs(zone string, names ...string) dnstest.Answer {
	return func(q *dns.Msg) *dns.Msg {
		name := dns.CanonicalName(q.Question[0].Name)
		m := new(dns.Msg).SetReply(q)
		is := slices.Contains(names, name)
		below := slices.ContainsFunc(names, func(n string) bool { return dns.IsSubDomain(name, n) })
		if is && q.Question[0].Qtype == dns.TypeA {
			rr, _ := dns.NewRR(q.Question[0].Name + " 30 IN A 192.0.2.1")
			m.Answer = []dns.RR{rr}
			return m
		}
		if !below {
			m.Rcode = dns.RcodeNameError
		}
		soa, _ := dns.NewRR(zone + " 30 IN SOA ns.dns." + zone + " h." + zone + " 7 2 3 4 30")
		m.Ns = []dns.RR{soa}
		return m
	}
}

func newTown(t *testing.T, search forwarder.Search, share bool, change ...func(*forwarder.Config)) *town {
	t.Helper()
	start := time.Now()
	now := func() time.Duration { return time.Since(start) }
	outsideNames := []string{"www.example.com.", "api.example.com.", "example.com.", "a.b.c.example.net.", "www.example.io.", "web.prod.example."}
	w := &town{
		cluster: &away{dnstest.NewGroup(answerAs("cluster.local.", clusterNames...)), trip},
		outside: &away{dnstest.NewGroup(answerAs("example.", outsideNames...)), trip},
	}
	w.rig = newRig(t, nil, append([]func(*forwarder.Config){func(c *forwarder.Config) {
		in, out := c.Routes[0], c.Routes[0]
		search.Domain = "cluster.local"
		in.Zones, in.Group, in.Search = []string{"cluster.local"}, w.cluster, search
		in.Policy.ShareNXDomain, in.Policy.MaxNegativeTTL = share, 5*time.Second
		out.Group = w.outside
		c.Routes, c.Now, c.MaxFollowers = []forwarder.Route{in, out}, now, 100
	}}, change...)...)
	w.received = now
	return w
}

var searchList = []string{"shop.svc.cluster.local.", "svc.cluster.local.", "cluster.local.", ""}

// order is how a client puts the two questions for a name.
type order struct {
	name   string
	types  []uint16
	atOnce bool // from two threads; else one a moment before the other
}

var (
	aFirst    = order{"A first", []uint16{dns.TypeA, dns.TypeAAAA}, false} // glibc and musl
	aaaaFirst = order{"AAAA first", []uint16{dns.TypeAAAA, dns.TypeA}, false}
	both      = order{"at once", aFirst.types, true} // Go
)

// lookup looks a name up as a pod does: both types of each name at once, name after
// name until one exists.
func (w *town) lookup(name string, by order) (found string, took time.Duration) {
	start := time.Now()
	for _, end := range searchList {
		full := name + "." + end
		var asking sync.WaitGroup
		var rcodes [2]int
		for i, qtype := range by.types {
			asking.Go(func() {
				m, _ := w.exchange(dnstest.Question(full, qtype), forwarder.UDP)
				rcodes[i] = m.Rcode
			})
			if !by.atOnce {
				synctest.Wait()
			}
		}
		asking.Wait()
		if rcodes[0] != rcodes[1] {
			w.t.Errorf("%s: %v", full, rcodes)
		}
		if rcodes[0] == dns.RcodeSuccess {
			return full, time.Since(start)
		}
	}
	return "", time.Since(start)
}

// asked is what the servers were asked since the last call.
func (w *town) asked(since *int) []string {
	var list []string
	for _, q := range append(w.cluster.Seen(), w.outside.Seen()...) {
		list = append(list, strings.TrimSuffix(q.Question[0].Name, ".")+" "+dns.TypeToString[q.Question[0].Qtype])
	}
	slices.Sort(list)
	*since = len(list)
	return list
}

// TestSearchPath is what a cold name outside costs, with every switch and whichever
// type comes first.
func TestSearchPath(t *testing.T) {
	all := forwarder.Search{Prefetch: true, Cut: true, Strict: true}
	tests := []struct {
		name    string
		search  forwarder.Search
		share   bool
		queries int
		took    time.Duration
	}{
		{"without", forwarder.Search{}, false, 8, 4 * trip},
		{"shared", forwarder.Search{}, true, 8, 4 * trip},
		{"prefetched", forwarder.Search{Prefetch: true}, false, 8, trip},
		{"prefetched and shared", forwarder.Search{Prefetch: true}, true, 5, trip},
		{"prefetched, shared and cut", forwarder.Search{Prefetch: true, Cut: true}, true, 5, trip},
		{"strict", forwarder.Search{Strict: true}, true, 5, 3 * trip},
		{"all but shared", all, false, 6, trip},
		{"all", all, true, 4, trip},
	}
	for _, tt := range tests {
		for _, by := range []order{aFirst, aaaaFirst, both} {
			for _, name := range []string{"www.example.com", "example.com", "a.b.c.example.net"} {
				t.Run(tt.name+"/"+by.name+"/"+name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						w := newTown(t, tt.search, tt.share)
						found, took := w.lookup(name, by)
						synctest.Wait()
						n := 0
						list := w.asked(&n)
						if found != name+"." || took != tt.took || n > tt.queries {
							t.Errorf("%q after %v and %d questions, want %v and at most %d:\n%s", found, took, n, tt.took, tt.queries, strings.Join(list, "\n"))
						}
						if tt.name == "all" && (n > 4 || took > 3*trip/2) {
							t.Errorf("%d questions and %v are more than 4 and one and a half trips", n, took)
						}
						_ = w.Close()
					})
				})
			}
		}
	}
}

// TestSearchPathAgain: what one name taught serves others.
func TestSearchPathAgain(t *testing.T) {
	for _, by := range []order{aFirst, aaaaFirst, both} {
		t.Run(by.name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { searchAgain(t, by) }) })
	}
}

func searchAgain(t *testing.T, by order) {
	w := newTown(t, forwarder.Search{Prefetch: true, Cut: true, Strict: true}, true)
	before, after := 0, 0
	for _, step := range []struct {
		name, found string
		took        time.Duration
		queries     int
	}{
		{"www.example.com", "www.example.com.", trip, 4},
		{"api.example.com", "api.example.com.", trip, 3},                       // com.svc is denied
		{"web.prod", "web.prod.svc.cluster.local.", 2 * trip, 4},               // nobody outside is told
		{"web.prod.svc", "web.prod.svc.cluster.local.", trip, 2},               // denied in the list, then known
		{"web.prod.svc.cluster.local", "web.prod.svc.cluster.local.", trip, 2}, // likewise
		{"p-0.db", "p-0.db.shop.svc.cluster.local.", 2 * trip, 3},              // one asked for ahead in vain
	} {
		w.asked(&before)
		found, took := w.lookup(step.name, by)
		synctest.Wait()
		list := w.asked(&after)
		if found != step.found || took > step.took || after-before > step.queries {
			t.Errorf("%s: %q after %v and %d questions, want %v and %d; of all\n%s", step.name, found, took, after-before, step.took, step.queries, strings.Join(list, "\n"))
		}
	}
	for _, q := range w.outside.Seen() {
		if !dns.IsSubDomain("example.com.", q.Question[0].Name) {
			t.Errorf("%s was told outside", q.Question[0].Name)
		}
	}
	_ = w.Close()
}

// TestCut: a denial covers names below it, in the cluster's domain and the route's
// zone only, and shows what the server said.
func TestCut(t *testing.T) {
	tests := []struct {
		name, denied, asked  string
		cut, strict, implied bool
		change               func(*dns.Msg)
	}{
		{name: "below", denied: "com.svc.cluster.local.", asked: "www.Example.com.svc.cluster.local.", cut: true, implied: true},
		{name: "far below", denied: "com.cluster.local.", asked: "a.b.c.com.cluster.local.", cut: true, implied: true},
		{name: "off", denied: "com.svc.cluster.local.", asked: "www.com.svc.cluster.local."},
		{name: "beside", denied: "com.svc.cluster.local.", asked: "www.acom.svc.cluster.local.", cut: true},
		{name: "above", denied: "www.com.svc.cluster.local.", asked: "com.svc.cluster.local.", cut: true},
		{name: "outside the domain", denied: "com.example.", asked: "www.com.example.", cut: true},
		{name: "other route", denied: "stub.cluster.local.", asked: "www.in.stub.cluster.local.", cut: true},
		{name: "with DO", denied: "com.svc.cluster.local.", asked: "www.com.svc.cluster.local.", cut: true, change: func(m *dns.Msg) { m.SetEdns0(1232, true) }},
		{name: "strict", denied: "x.shop.svc.cluster.local.", asked: "www.com.cluster.local.", strict: true, implied: true},
		{name: "strict, services", denied: "x.shop.svc.cluster.local.", asked: "www.com.svc.cluster.local.", strict: true},
		{name: "strict, with DO", denied: "x.shop.svc.cluster.local.", asked: "www.com.cluster.local.", strict: true, change: func(m *dns.Msg) { m.SetEdns0(1232, true) }},
		{name: "strict, other route", denied: "x.shop.svc.cluster.local.", asked: "in.stub.cluster.local.", strict: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stub := dnstest.NewGroup(answerAs("in.stub.cluster.local.", "www.in.stub.cluster.local.", "in.stub.cluster.local."))
				w := newTown(t, forwarder.Search{Cut: tt.cut, Strict: tt.strict}, false, func(c *forwarder.Config) {
					route := c.Routes[1]
					route.Zones, route.Group = []string{"in.stub.cluster.local"}, stub
					c.Routes = append(c.Routes, route)
				})
				w.exchange(dnstest.Question(tt.denied, dns.TypeA), forwarder.UDP)
				time.Sleep(2 * time.Second)
				ask := func(proto forwarder.Proto) (*dns.Msg, bool) {
					m := dnstest.Question(tt.asked, dns.TypeTXT)
					if tt.change != nil {
						tt.change(m)
					}
					return w.exchange(m, proto)
				}
				m, hit := ask(forwarder.UDP)
				if hit != tt.implied {
					t.Fatalf("at once: %v\n%v", hit, m)
				}
				if !tt.implied {
					return
				}
				over, _ := ask(forwarder.TCP)
				want := "cluster.local. 3 IN SOA ns.dns.cluster.local. h.cluster.local. 7 2 3 4 30"
				if m.Rcode != dns.RcodeNameError || m.Question[0].Name != tt.asked || !cmp.Equal(section(m.Ns), []string{want}) || m.String() != over.String() {
					t.Errorf("%v", m)
				}
				if n := w.Stats().Implied; n != 2 {
					t.Errorf("%d implied denials are counted", n)
				}
				time.Sleep(4 * time.Second) // what it was implied by has ended
				if _, hit := ask(forwarder.UDP); hit {
					t.Error("it outlives the denial")
				}
			})
		})
	}
}

// TestCutStopsAtBorders: a name of the route may lie below one that others answer.
func TestCutStopsAtBorders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, forwarder.Search{Cut: true}, false, func(c *forwarder.Config) {
			between := c.Routes[1]
			between.Zones, between.Policy.ShareNXDomain = []string{"b.cluster.local"}, true
			between.Group = dnstest.NewGroup(answerAs("b.cluster.local."))
			c.Routes[0].Zones = append(c.Routes[0].Zones, "a.b.cluster.local")
			c.Routes = append(c.Routes, between)
		})
		if m, _ := w.exchange(dnstest.Question("b.cluster.local.", dns.TypeA), forwarder.UDP); m.Rcode != dns.RcodeNameError {
			t.Fatalf("%v", m)
		}
		if _, hit := w.exchange(dnstest.Question("x.a.b.cluster.local.", dns.TypeA), forwarder.UDP); hit {
			t.Error("another route's denial covers the name")
		}
	})
}

// TestCutUnderRewrite: where names are renamed, one says nothing of another.
func TestCutUnderRewrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rename := withRules(t, rules.Config{Rewrite: []rules.Rewrite{{From: "old.svc.cluster.local", To: "gone.svc.cluster.local"}}})
		w := newTown(t, forwarder.Search{Cut: true, Strict: true}, false, rename)
		w.exchange(dnstest.Question("old.svc.cluster.local.", dns.TypeA), forwarder.UDP)
		if _, hit := w.exchange(dnstest.Question("a.old.svc.cluster.local.", dns.TypeA), forwarder.UDP); hit {
			t.Error("a renamed name's denial covers those below it")
		}
	})
}

// TestAskingAheadIsHeldBack: not while servers fail, not above half of the route,
// not what a rule answers, and never for what was itself asked ahead.
func TestAskingAheadIsHeldBack(t *testing.T) {
	ahead := forwarder.Search{Prefetch: true}
	ask := func(w *town, name string) { w.exchange(dnstest.Question(name, dns.TypeA), forwarder.UDP) }
	t.Run("failing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newTown(t, ahead, false)
			w.outside.Script(dnstest.Silent)
			ask(w, "x.example.")
			ask(w, "www.example.com.shop.svc.cluster.local.")
			synctest.Wait()
			if n, s := w.outside.Asked(), w.Stats(); n != 1 || s.Ahead != 2 || s.HeldBack != 1 {
				t.Errorf("a silent server was asked %d times; ahead %d, held back %d", n, s.Ahead, s.HeldBack)
			}
			_ = w.Close()
		})
	})
	t.Run("busy", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newTown(t, ahead, false, func(c *forwarder.Config) { c.Routes[0].MaxInFlight, c.Routes[1].MaxInFlight = 4, 4 })
			release := w.cluster.Hold()
			var clients sync.WaitGroup
			for _, name := range []string{"a.shop.svc.cluster.local.", "b.shop.svc.cluster.local."} {
				clients.Go(func() { ask(w, name) })
			}
			time.Sleep(2 * trip)
			clients.Go(func() { ask(w, "www.example.com.shop.svc.cluster.local.") })
			time.Sleep(2 * trip)
			if s := w.Stats(); s.Ahead != 1 || s.HeldBack != 2 {
				t.Errorf("ahead %d, held back %d", s.Ahead, s.HeldBack)
			}
			release()
			clients.Wait()
			_ = w.Close()
		})
	})
	t.Run("ruled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			set, err := rules.New(rules.Config{Answers: []rules.Answer{{Below: []string{"example.com"}, RCode: 3}}})
			if err != nil {
				t.Fatal(err)
			}
			w := newTown(t, ahead, false, func(c *forwarder.Config) { c.Routes[1].Rules = set })
			ask(w, "www.example.com.shop.svc.cluster.local.")
			synctest.Wait()
			if n := w.outside.Asked(); n != 0 {
				t.Errorf("the servers were asked %d times for what a rule answers", n)
			}
			_ = w.Close()
		})
	})
	t.Run("not recursive", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newTown(t, ahead, false)
			ask(w, "a.b.c.d.shop.svc.cluster.local.")
			synctest.Wait()
			n := 0
			if list := w.asked(&n); n != 4 {
				t.Errorf("asked\n%s", strings.Join(list, "\n"))
			}
			_ = w.Close()
		})
	})
	t.Run("other types and shapes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newTown(t, ahead, false)
			w.exchange(dnstest.Question("www.example.com.shop.svc.cluster.local.", dns.TypeSRV), forwarder.UDP)
			for _, name := range []string{"_http._tcp.web.prod.svc.cluster.local.", "web.shop.svc.cluster.local.", "1-2-3-4.shop.pod.cluster.local.", "shop.svc.cluster.local.", "cluster.local.", "a.b.example.com."} {
				ask(w, name)
			}
			synctest.Wait()
			if n := w.Stats().Ahead; n != 0 {
				t.Errorf("%d names were asked for ahead", n)
			}
			_ = w.Close()
		})
	})
}
