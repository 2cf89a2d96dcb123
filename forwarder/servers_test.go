package forwarder_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder"
	"github.com/nodens-dns/nodens/forwarder/dnstest"
	"github.com/nodens-dns/nodens/forwarder/upstream"
)

// behind is a forwarder in front of real sockets: scripted servers, in order.
func behind(t *testing.T, cfg upstream.Config, scripts ...dnstest.Script) (*rig, []*dnstest.Server) {
	t.Helper()
	var servers []*dnstest.Server
	var table upstream.Table
	for _, s := range scripts {
		server := dnstest.Serve(t, s)
		servers = append(servers, server)
		table.Tiers[upstream.ClusterTier] = append(table.Tiers[upstream.ClusterTier], upstream.Member{UDP: server.Addr(), TCP: server.Addr()})
	}
	cfg.Policy = upstream.Sequential
	g := upstream.New(cfg)
	g.Update(table)
	t.Cleanup(func() { _ = g.Close() })
	return newRig(t, nil, func(c *forwarder.Config) { c.Routes[0].Group = g }), servers
}

// patient asks a second time only after longer than a slow machine takes.
func patient(tcp bool) upstream.Config {
	return upstream.Config{ForceTCP: tcp, RetryMin: 10 * time.Second, RetryMax: 10 * time.Second, Budget: 30 * time.Second}
}

// wider answers with addresses and TC over UDP, and all of them over TCP.
func wider(n int) dnstest.Script {
	cut := func(q *dns.Msg) *dns.Msg {
		m := dnstest.Addresses(1)(q)
		m.Truncated = true
		return m
	}
	return dnstest.ByTransport(dnstest.Say(cut), dnstest.Say(dnstest.Addresses(n)))
}

// TestCutRepliesAreFetchedWhole has clients of both transports, in both orders.
func TestCutRepliesAreFetchedWhole(t *testing.T) {
	for _, order := range [][]forwarder.Proto{
		{forwarder.UDP, forwarder.TCP, forwarder.UDP, forwarder.TCP},
		{forwarder.TCP, forwarder.UDP, forwarder.UDP},
	} {
		r, servers := behind(t, upstream.Config{}, wider(60))
		for i, proto := range order {
			got, hit := r.exchange(dnstest.Question("a.test.", dns.TypeA), proto)
			if hit != (i > 0) || got.Truncated != (proto == forwarder.UDP) || proto == forwarder.TCP && len(got.Answer) != 60 || len(got.Answer) < 25 {
				t.Errorf("%v, query %d: hit %v, TC %v, %d records", order, i, hit, got.Truncated, len(got.Answer))
			}
		}
		if n := len(servers[0].Seen()); n != 2 {
			t.Errorf("%v: %d queries to the server, want one for each transport", order, n)
		}
	}
}

// TestCutReplyWithoutTCP relays what there is, keeps nothing, and does better
// once TCP works.
func TestCutReplyWithoutTCP(t *testing.T) {
	cut := func(q *dns.Msg) *dns.Msg {
		m := dnstest.Addresses(1)(q)
		m.Truncated = true
		return m
	}
	tcp := dnstest.InTurn(dnstest.Reset, dnstest.Reset, dnstest.Reset, dnstest.Say(dnstest.Addresses(3)))
	r, servers := behind(t, upstream.Config{Budget: 30 * time.Second}, dnstest.ByTransport(dnstest.Say(cut), tcp))
	got, _ := r.exchange(edns(dnstest.Question("a.test.", dns.TypeA), 4096, false), forwarder.UDP)
	if !got.Truncated || got.Rcode != 0 {
		t.Errorf("without TCP: %v", got)
	}
	for range 5 {
		if got, _ = r.exchange(edns(dnstest.Question("a.test.", dns.TypeA), 4096, false), forwarder.UDP); !got.Truncated {
			break
		}
	}
	if len(got.Answer) != 3 {
		t.Errorf("with TCP: %v", got)
	}
	if len(servers[0].Seen()) == 0 {
		t.Error("nobody was asked")
	}
}

// TestLargeDatagrams has a server that sends more than anybody asked for.
func TestLargeDatagrams(t *testing.T) {
	for _, n := range []int{40, 90, 240} { // about 700, 1500, 4000 bytes
		r, _ := behind(t, upstream.Config{}, dnstest.Say(dnstest.Addresses(n)))
		got, _ := r.exchange(dnstest.Question("a.test.", dns.TypeA), forwarder.UDP)
		if got.Rcode != 0 || len(got.Answer) < 25 || !got.Truncated {
			t.Errorf("%d addresses: %v", n, got)
		}
		if got, hit := r.exchange(dnstest.Question("a.test.", dns.TypeA), forwarder.TCP); !hit || len(got.Answer) != n {
			t.Errorf("%d addresses over TCP: hit %v, %d records", n, hit, len(got.Answer))
		}
	}
}

// TestCutInsideARecord has a server whose datagram breaks off, with TC set.
func TestCutInsideARecord(t *testing.T) {
	broken := dnstest.SayBytes(func(reply []byte) []byte {
		reply[2] |= 2 // TC
		return reply[:len(reply)-7]
	}, dnstest.Addresses(20))
	r, _ := behind(t, upstream.Config{}, dnstest.ByTransport(broken, dnstest.Say(dnstest.Addresses(20))))
	if got, _ := r.exchange(dnstest.Question("a.test.", dns.TypeA), forwarder.UDP); got.Rcode != 0 || len(got.Answer) != 20 || got.Truncated {
		t.Errorf("got %v", got)
	}
}

// TestForgeriesBeforeTheReply has everything come first that is not the reply.
func TestForgeriesBeforeTheReply(t *testing.T) {
	forged := dnstest.Records(t, 0, "a.test. 300 IN A 203.0.113.6")
	other := func(change func(*dns.Msg)) dnstest.Script {
		return dnstest.Say(func(q *dns.Msg) *dns.Msg {
			m := forged(q)
			change(m)
			return m
		})
	}
	r, _ := behind(t, patient(false), dnstest.Both(
		dnstest.SayBytes(func([]byte) []byte { return []byte("eleven byte") }, forged),
		other(func(m *dns.Msg) { m.Id++ }),
		other(func(m *dns.Msg) { m.Response = false }),
		other(func(m *dns.Msg) { m.Question[0].Name = "b.test." }),
		other(func(m *dns.Msg) { m.Question[0].Qtype = dns.TypeMX }),
		dnstest.Half(forged),
		dnstest.FromElsewhere(forged),
		dnstest.After(50*time.Millisecond, dnstest.Say(dnstest.Addresses(2))),
	))
	if got, _ := r.exchange(dnstest.Question("a.test.", dns.TypeA), forwarder.UDP); len(got.Answer) != 2 {
		t.Errorf("got %v", got)
	}
}

// TestTroubleOfEveryKind has a first server that fails in every way a second can
// make up for.
func TestTroubleOfEveryKind(t *testing.T) {
	good := dnstest.Addresses(1)
	for name, s := range map[string]dnstest.Script{
		"silence":       dnstest.Drop,
		"SERVFAIL":      dnstest.Say(dnstest.RCode(dns.RcodeServerFailure)),
		"REFUSED":       dnstest.Say(dnstest.RCode(dns.RcodeRefused)),
		"half a reply":  dnstest.Half(good),
		"too late":      dnstest.After(10*time.Second, dnstest.Say(good)),
		"stranger":      dnstest.FromElsewhere(good),
		"TCP hangs up":  dnstest.ByTransport(dnstest.Drop, dnstest.Hangup),
		"TCP is broken": dnstest.ByTransport(dnstest.Drop, dnstest.Reset),
	} {
		for _, force := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " force TCP ", force), func(t *testing.T) {
				r, _ := behind(t, upstream.Config{ForceTCP: force, Budget: 30 * time.Second}, s, dnstest.Say(good))
				start := time.Now()
				got, _ := r.exchange(dnstest.Question("a.test.", dns.TypeA), forwarder.UDP)
				if got.Rcode != 0 || len(got.Answer) != 1 || time.Since(start) > 9*time.Second {
					t.Errorf("after %v: %v", time.Since(start), got)
				}
			})
		}
	}
}

// TestEveryClientGetsItsOwn has ninety names at once, and a server that
// answers in another order than it was asked in.
func TestEveryClientGetsItsOwn(t *testing.T) {
	for _, force := range []bool{false, true} {
		r, _ := behind(t, patient(force), func(r *dnstest.Request) {
			if r.Wait(time.Duration(200-r.Number%200) * 200 * time.Microsecond) {
				dnstest.Say(dnstest.Addresses(1))(r)
			}
		})
		var wg sync.WaitGroup
		for i := range 90 {
			wg.Go(func() {
				name := fmt.Sprintf("n%d.test.", i)
				got, _ := r.exchange(dnstest.Question(name, dns.TypeA), forwarder.UDP)
				if len(got.Answer) != 1 || got.Answer[0].Header().Name != name {
					t.Errorf("%s got %v", name, got)
				}
			})
		}
		wg.Wait()
	}
}
