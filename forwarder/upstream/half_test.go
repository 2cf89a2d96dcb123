package upstream_test

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/upstream"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// records makes the sections of a reply.
func records(t *testing.T, answer, authority string) func(*dns.Msg) {
	t.Helper()
	parse := func(text string) (all []dns.RR) {
		for token := dns.NewZoneParser(strings.NewReader(text), ".", ""); ; {
			rr, ok := token.Next()
			if !ok {
				break
			}
			all = append(all, rr)
		}
		return all
	}
	return func(m *dns.Msg) { m.Answer, m.Ns = parse(answer), parse(authority) }
}

// TestHalfAnswers has servers say where the answer would be.
func TestHalfAnswers(t *testing.T) {
	const (
		alias    = "a.test. 30 IN CNAME b.test.\n"
		address  = "b.test. 30 IN A 192.0.2.1\n"
		soa      = "test. 30 IN SOA ns.test. root.test. 1 2 3 4 5\n"
		referral = "test. 30 IN NS ns.test.\n"
	)
	tests := map[string]struct {
		answer, authority string
		next              bool // the next server is asked
	}{
		"an alias that leads nowhere":        {alias, "", true},
		"two of them":                        {alias + "b.test. 30 IN CNAME c.test.\n", "", true},
		"an alias and the name servers":      {alias, referral, true},
		"a referral":                         {"", referral, true},
		"an alias and its target":            {alias + address, "", false},
		"an alias to a name without address": {alias, soa, false},
		"a name without address":             {"", soa, false},
		"nothing at all":                     {"", "", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			half := func(r *request) { r.reply(t, dns.RcodeSuccess, records(t, tc.answer, tc.authority)) }
			a, b, c := serve(t, half), serve(t, good(t)), serve(t, good(t))
			g := group(t, inOrder, plain(a, b, c))
			r, took := mustAnswer(t, g, "a.test", wire.NoError)
			if took > soon {
				t.Errorf("took %v", took)
			}
			if asked := b.count() == 1; asked != tc.next || a.count() != 1 || c.count() != 0 {
				t.Errorf("asked %d, %d and %d times", a.count(), b.count(), c.count())
			}
			if complete := r.Count(wire.Answer) == 1 && r.Count(wire.Authority) == 0; tc.next && !complete {
				t.Error("the half answer was returned")
			}
			if ts := g.Status().Targets[0]; ts.Out || ts.Misses != 0 {
				t.Errorf("a reply made its server suspect: %+v", ts)
			}
		})
	}
	half := func(t *testing.T) func(*request) {
		return func(r *request) { r.reply(t, dns.RcodeSuccess, records(t, alias, "")) }
	}
	t.Run("the only server", func(t *testing.T) {
		a := serve(t, half(t))
		if r, _ := mustAnswer(t, group(t, inOrder, plain(a)), "a.test", wire.NoError); r.Count(wire.Answer) != 1 || a.count() != 1 {
			t.Errorf("%d records after %d questions", r.Count(wire.Answer), a.count())
		}
	})
	t.Run("two servers are believed", func(t *testing.T) {
		c := serve(t, good(t))
		mustAnswer(t, group(t, inOrder, plain(serve(t, half(t)), serve(t, half(t)), c)), "a.test", wire.NoError)
		if c.count() != 0 {
			t.Error("a third server was asked")
		}
	})
	t.Run("better than a failure after it", func(t *testing.T) {
		mustAnswer(t, group(t, inOrder, plain(serve(t, half(t)), serve(t, coded(t, 2)))), "a.test", wire.NoError)
	})
	t.Run("better than failures around it", func(t *testing.T) {
		failing, again := serve(t, coded(t, 2)), serve(t, coded(t, 2))
		mustAnswer(t, group(t, inOrder, plain(failing, serve(t, half(t)), again)), "a.test", wire.NoError)
	})
	t.Run("a slower whole one wins", func(t *testing.T) {
		slow := serve(t, func(r *request) {
			time.Sleep(100 * time.Millisecond)
			r.reply(t, dns.RcodeSuccess)
		})
		r, _ := mustAnswer(t, group(t, inOrder, plain(serve(t, half(t)), slow)), "a.test", wire.NoError)
		var rr wire.Record
		if records := r.Records(); !records.Next(&rr) || rr.Type != wire.TypeA {
			t.Errorf("the answer is of type %d", rr.Type)
		}
	})
}

// anyQuery asks for whatever there is.
func anyQuery(t *testing.T, name string) *wire.Query {
	t.Helper()
	msg, err := new(dns.Msg).SetQuestion(name, dns.TypeANY).Pack()
	if err != nil {
		t.Fatal(err)
	}
	q, _ := wire.ParseQuery(msg)
	return &q
}

// TestANYGoesOverTCP asks for everything, of servers with and without TCP.
func TestANYGoesOverTCP(t *testing.T) {
	everything := func(t *testing.T, g *upstream.Group) {
		t.Helper()
		if _, err := g.Exchange(context.Background(), nil, anyQuery(t, "a.test.")); err != nil {
			t.Error(err)
		}
	}
	asked := func(t *testing.T, s *server, udp, tcp int) {
		t.Helper()
		if u, c := len(s.requests(false)), len(s.requests(true)); u != udp || c != tcp {
			t.Errorf("%d questions over UDP and %d over TCP, want %d and %d", u, c, udp, tcp)
		}
	}
	t.Run("with", func(t *testing.T) {
		s := serve(t, good(t))
		everything(t, group(t, inOrder, plain(s)))
		asked(t, s, 0, 1)
	})
	t.Run("no address for it", func(t *testing.T) {
		s := serve(t, good(t))
		table := plain(s)
		table.Tiers[upstream.ClusterTier][0].TCP = netip.AddrPort{}
		everything(t, group(t, inOrder, table))
		asked(t, s, 1, 0)
	})
	t.Run("one that refuses it", func(t *testing.T) {
		deaf, s := serve(t, good(t)), serve(t, good(t))
		_ = deaf.tcp.Close()
		g := group(t, inOrder, plain(deaf, s))
		everything(t, g)
		asked(t, s, 0, 1)
		if ts := g.Status().Targets[0]; ts.Out || ts.HardErrors != 0 {
			t.Errorf("a server is out because somebody asked for everything: %+v", ts)
		}
	})
}
