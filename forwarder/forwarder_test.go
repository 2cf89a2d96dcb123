package forwarder_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder"
	"github.com/nodens-dns/nodens/forwarder/cache"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// server is a scripted Group: each question gets the reply its function makes.
type server struct {
	reply func(q *dns.Msg) *dns.Msg
	asked int
}

func (s *server) Exchange(_ context.Context, dst []byte, q *wire.Query) (wire.Reply, error) {
	s.asked++
	var m dns.Msg
	if err := m.Unpack(wire.AppendQuery(nil, q, 7, 1232)); err != nil {
		return wire.Reply{}, err
	}
	r := s.reply(&m)
	if r == nil {
		return wire.Reply{}, context.DeadlineExceeded
	}
	b, err := r.PackBuffer(dst[:cap(dst)])
	if err != nil {
		return wire.Reply{}, err
	}
	return wire.ParseReply(b)
}

func addresses(n int) func(q *dns.Msg) *dns.Msg {
	return func(q *dns.Msg) *dns.Msg {
		r := new(dns.Msg).SetReply(q)
		for i := range n {
			r.Answer = append(r.Answer, &dns.A{
				Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 30},
				A:   []byte{10, 0, byte(i >> 8), byte(i)},
			})
		}
		return r
	}
}

type clock struct{ now time.Duration }

func newForwarder(t testing.TB, s *server, c *clock) *forwarder.Forwarder {
	t.Helper()
	store, err := cache.New(cache.Config{Bytes: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	f, err := forwarder.New(forwarder.Config{
		Routes: []forwarder.Route{{
			Zones: []string{"."}, Group: s, MaxInFlight: 100,
			Policy: cache.Policy{MaxTTL: time.Hour, MaxNegativeTTL: 30 * time.Second, FailureTTL: time.Second, ServFailTTL: 5 * time.Second, StaleTTL: 30 * time.Second},
		}},
		Cache: store, Listeners: 1, Stripes: 1, UDPSize: 1232, MaxFollowers: 10,
		Now: func() time.Duration { return c.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func peer(now time.Duration) forwarder.Peer {
	return forwarder.Peer{Client: netip.MustParseAddrPort("127.0.0.1:4000"), Received: now}
}

func query(t testing.TB, name string, qtype uint16) []byte {
	t.Helper()
	m := new(dns.Msg).SetQuestion(name, qtype)
	m.Id = 99
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestHitAllocatesNothing(t *testing.T) {
	c := &clock{}
	f := newForwarder(t, &server{reply: addresses(2)}, c)
	q, dst := query(t, "web.default.svc.cluster.local.", dns.TypeA), make([]byte, 4096)
	if _, v := f.Lookup(dst, q, peer(0)); v != forwarder.Miss {
		t.Fatalf("first look-up: verdict %d, want a miss", v)
	}
	if _, v := f.Resolve(context.Background(), dst, q, peer(0)); v != forwarder.Answered {
		t.Fatalf("resolve: verdict %d", v)
	}
	allocs := testing.AllocsPerRun(100, func() {
		reply, v := f.Lookup(dst, q, peer(c.now))
		if v != forwarder.Answered || len(reply) < 40 {
			t.Fatalf("verdict %d, %d bytes", v, len(reply))
		}
		f.Done(peer(c.now), time.Microsecond)
	})
	if allocs != 0 {
		t.Errorf("a hit allocates %v times", allocs)
	}
}

func BenchmarkHit(b *testing.B) {
	c := &clock{}
	f := newForwarder(b, &server{reply: addresses(2)}, c)
	q, dst := query(b, "web.default.svc.cluster.local.", dns.TypeA), make([]byte, 4096)
	f.Resolve(context.Background(), dst, q, peer(0))
	p := peer(0)
	b.ReportAllocs()
	for b.Loop() {
		if _, v := f.Lookup(dst, q, p); v != forwarder.Answered {
			b.Fatal("miss")
		}
	}
}
