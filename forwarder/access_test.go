package forwarder_test

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder"
	"github.com/nodens-dns/nodens/forwarder/access"
	"github.com/nodens-dns/nodens/forwarder/dnstest"
)

// gated gives a rig a gate.
func gated(t testing.TB, cfg access.Config) func(*forwarder.Config) {
	t.Helper()
	gate, err := access.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return func(c *forwarder.Config) { c.Gate = gate }
}

func client(text string, proto forwarder.Proto) forwarder.Peer {
	return forwarder.Peer{Client: netip.AddrPortFrom(netip.MustParseAddr(text), 4000), Proto: proto}
}

// verdictOf is what a client gets, in a word.
func verdictOf(t *testing.T, reply []byte, v forwarder.Verdict) string {
	t.Helper()
	switch v {
	case forwarder.Drop:
		return "nothing"
	case forwarder.Close:
		return "the end"
	case forwarder.Miss:
		return "a miss"
	}
	m := dnstest.Unpack(t, reply)
	text := dns.RcodeToString[m.Rcode]
	if code := extended(m); code != 65535 {
		text += fmt.Sprint(" ", code)
	}
	return text
}

func TestTurnedAway(t *testing.T) {
	strict := access.Config{Deny: []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16")}, Rate: 1, Burst: 1}
	sound := dnstest.Pack(t, edns(dnstest.Question("a.test.", dns.TypeA), 1232, false))
	reply := append([]byte(nil), sound...)
	reply[2] |= 0x80
	probe := dnstest.Question("witness.test.", dns.TypeTXT)
	probe.Question[0].Qclass = dns.ClassCHAOS
	witness := dnstest.Pack(t, probe)
	for name, test := range map[string]struct {
		from   string
		proto  forwarder.Proto
		query  []byte
		before int // queries of the same client
		silent bool
		want   string
	}{
		"allowed":                  {"10.0.0.1", forwarder.UDP, sound, 0, false, "a miss"},
		"denied over UDP":          {"10.9.0.1", forwarder.UDP, sound, 0, false, "REFUSED 18"},
		"denied over TCP":          {"10.9.0.1", forwarder.TCP, sound, 0, false, "REFUSED 18"},
		"denied without a word":    {"10.9.0.1", forwarder.UDP, sound, 0, true, "the end"},
		"denied, and a response":   {"10.9.0.1", forwarder.UDP, reply, 0, false, "the end"},
		"too much over UDP":        {"10.0.0.1", forwarder.UDP, sound, 1, false, "nothing"},
		"too much over TCP":        {"10.0.0.1", forwarder.TCP, sound, 1, false, "SERVFAIL 18"},
		"too much, and a response": {"10.0.0.1", forwarder.UDP, reply, 1, false, "the end"},
		"denied, and the witness":  {"10.9.0.1", forwarder.UDP, witness, 0, true, "NOERROR"},
		"too much, the witness":    {"10.0.0.1", forwarder.UDP, witness, 1, false, "NOERROR"},
		"IPv6 is another client":   {"2001:db8::1", forwarder.UDP, sound, 0, false, "a miss"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, dnstest.Addresses(1), gated(t, strict), func(c *forwarder.Config) {
				c.DropDenied = test.silent
				c.Witness, c.WitnessText = "witness.test.", func(int) string { return "here" }
			})
			dst := make([]byte, 0, 4096)
			for range test.before {
				r.Lookup(dst, sound, client(test.from, test.proto))
			}
			got, v := r.Lookup(dst, test.query, client(test.from, test.proto))
			if text := verdictOf(t, got, v); text != test.want {
				t.Errorf("got %s, want %s", text, test.want)
			}
			if s := r.Stats(); (s.Denied+s.Limited > 0) != (test.want != "a miss" && test.want != "NOERROR") {
				t.Errorf("counted %d denied, %d limited", s.Denied, s.Limited)
			}
		})
	}
}

// TestMissesOfOneClientAreBounded holds that a client with a thousand names, or a
// thousand times one name, leaves room for others, and that the burst which an
// answer sets free is as small.
func TestMissesOfOneClientAreBounded(t *testing.T) {
	for name, names := range map[string]int{"many names": 1000, "one name": 1} {
		t.Run(name, func(t *testing.T) {
			const bound = 20
			r := newRig(t, dnstest.Addresses(1), gated(t, access.Config{MaxInFlight: bound, Places: 100}),
				func(c *forwarder.Config) { c.MaxFollowers = 1000 })
			release := r.server.Hold()
			var mu sync.Mutex
			verdicts := map[string]int{}
			var wait sync.WaitGroup
			resolve := func(from, name string) {
				q := dnstest.Pack(t, dnstest.Question(name, dns.TypeA))
				reply, v := r.Resolve(context.Background(), make([]byte, 0, 4096), q, client(from, forwarder.UDP))
				mu.Lock()
				defer mu.Unlock()
				verdicts[from+": "+verdictOf(t, reply, v)]++
			}
			for i := range 1000 {
				wait.Go(func() { resolve("10.0.0.1", fmt.Sprintf("n%d.test.", i%names)) })
			}
			until(t, func() bool { return r.Stats().Limited == 1000-bound })
			if n := r.Stats().Access.InFlight; n != bound {
				t.Errorf("%d in flight, want %d", n, bound)
			}
			wait.Go(func() { resolve("10.0.0.2", "other.test.") })
			until(t, func() bool { return r.Stats().Access.InFlight == bound+1 })
			release()
			wait.Wait()
			if verdicts["10.0.0.1: NOERROR"] != bound || verdicts["10.0.0.1: nothing"] != 1000-bound || verdicts["10.0.0.2: NOERROR"] != 1 {
				t.Errorf("verdicts: %v", verdicts)
			}
			if n := r.Stats().Access.InFlight; n != 0 {
				t.Errorf("%d in flight at the end", n)
			}
		})
	}
}

// until waits for what is about to happen.
func until(t *testing.T, happened func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !happened(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not happen")
		}
	}
}

func TestGatedHitAllocatesNothing(t *testing.T) {
	r := newRig(t, dnstest.Addresses(2), gated(t, access.Config{
		Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Rate: 1e9, Burst: 1e6, MaxInFlight: 10, Places: 100,
	}))
	m := dnstest.Question("web.default.svc.cluster.local.", dns.TypeA)
	r.exchange(m, forwarder.UDP)
	q, dst := dnstest.Pack(t, m), make([]byte, 0, 4096)
	if n := testing.AllocsPerRun(100, func() {
		if _, v := r.Lookup(dst, q, r.peer(0)); v != forwarder.Answered {
			t.Fatalf("verdict %d", v)
		}
	}); n != 0 {
		t.Errorf("a hit allocates %v times", n)
	}
}

func BenchmarkGatedHit(b *testing.B) {
	for name, cfg := range map[string]access.Config{
		"lists": {Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8")}},
		"rate":  {Rate: 1e9, Burst: 1e9},
	} {
		b.Run(name, func(b *testing.B) {
			r := newRig(b, dnstest.Addresses(2), gated(b, cfg))
			m := dnstest.Question("web.default.svc.cluster.local.", dns.TypeA)
			r.exchange(m, forwarder.UDP)
			q, dst, p := dnstest.Pack(b, m), make([]byte, 0, 4096), r.peer(0)
			b.ReportAllocs()
			for b.Loop() {
				p.Received += time.Nanosecond
				if _, v := r.Lookup(dst, q, p); v != forwarder.Answered {
					b.Fatal("no hit")
				}
			}
		})
	}
}
