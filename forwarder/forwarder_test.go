package forwarder_test

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder"
	"github.com/nodens-dns/nodens/forwarder/cache"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// server is a scripted group: each question gets the reply its function makes;
// nil is silence.
type server struct {
	reply func(q *dns.Msg) *dns.Msg
	wait  chan struct{} // when set, every exchange waits for it to close

	mu   sync.Mutex
	seen []*dns.Msg
}

var errSilence = errors.New("no server answered")

func (s *server) Exchange(ctx context.Context, dst []byte, q *wire.Query) (wire.Reply, error) {
	m := new(dns.Msg)
	if err := m.Unpack(wire.AppendQuery(nil, q, 7, 1232)); err != nil {
		return wire.Reply{}, err
	}
	s.mu.Lock()
	s.seen = append(s.seen, m)
	s.mu.Unlock()
	if s.wait != nil {
		<-s.wait
	}
	r := s.reply(m)
	if r == nil {
		return wire.Reply{}, errSilence
	}
	b, err := r.PackBuffer(dst[:cap(dst)])
	if err != nil {
		return wire.Reply{}, err
	}
	return wire.ParseReply(b)
}

func (s *server) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen)
}

// addresses answers every question with n addresses of TTL 30.
func addresses(n int) func(q *dns.Msg) *dns.Msg {
	return func(q *dns.Msg) *dns.Msg {
		r := new(dns.Msg).SetReply(q)
		r.Compress = true
		for i := range n {
			r.Answer = append(r.Answer, &dns.A{
				Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 30},
				A:   []byte{10, 0, byte(i >> 8), byte(i)},
			})
		}
		return r
	}
}

func rcode(code int) func(q *dns.Msg) *dns.Msg {
	return func(q *dns.Msg) *dns.Msg { return new(dns.Msg).SetRcode(q, code) }
}

// rig is a forwarder with a scripted server for "." and a clock to turn.
type rig struct {
	*forwarder.Forwarder
	t      testing.TB
	server *server
	now    atomic.Int64
}

func newRig(t testing.TB, reply func(*dns.Msg) *dns.Msg, change ...func(*forwarder.Config)) *rig {
	t.Helper()
	store := newCache(t, cache.Config{Bytes: 8 << 20})
	r := &rig{t: t, server: &server{reply: reply}}
	cfg := forwarder.Config{
		Routes: []forwarder.Route{{Zones: []string{"."}, Group: r.server, MaxInFlight: 100, Policy: cache.Policy{
			MaxTTL: time.Hour, MaxNegativeTTL: 30 * time.Second,
			FailureTTL: time.Second, ServFailTTL: 5 * time.Second,
			MaxStale: time.Hour, StaleOnError: true, StaleTTL: 30 * time.Second, Recheck: 5 * time.Second,
		}}},
		Cache: store, Listeners: 1, Stripes: 2, UDPSize: 1232, MaxFollowers: 10,
		Now: func() time.Duration { return time.Duration(r.now.Load()) },
	}
	for _, f := range change {
		f(&cfg)
	}
	var err error
	if r.Forwarder, err = forwarder.New(cfg); err != nil {
		t.Fatal(err)
	}
	return r
}

func newCache(t testing.TB, cfg cache.Config) *cache.Cache {
	t.Helper()
	c, err := cache.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (r *rig) turn(d time.Duration) { r.now.Add(int64(d)) }

func (r *rig) peer(proto forwarder.Proto) forwarder.Peer {
	return forwarder.Peer{
		Client:   netip.MustParseAddrPort("127.0.0.1:4000"),
		Received: time.Duration(r.now.Load()),
		Proto:    proto,
	}
}

// ask sends raw bytes through Lookup and, on a miss, Resolve, as a listener
// does. reply is nil when there is none.
func (r *rig) ask(query []byte, proto forwarder.Proto) (reply []byte, hit bool) {
	dst, from := make([]byte, 0, 4096), r.peer(proto)
	reply, v := r.Lookup(dst, query, from)
	hit = v != forwarder.Miss
	if !hit {
		reply, v = r.Resolve(context.Background(), dst, query, from)
	}
	if v != forwarder.Answered {
		return nil, hit
	}
	return reply, hit
}

// exchange asks a message and unpacks the reply.
func (r *rig) exchange(m *dns.Msg, proto forwarder.Proto) (reply *dns.Msg, hit bool) {
	r.t.Helper()
	b, hit := r.ask(pack(r.t, m), proto)
	if b == nil {
		r.t.Fatalf("no reply to %v", m.Question)
	}
	reply = new(dns.Msg)
	if err := reply.Unpack(b); err != nil {
		r.t.Fatalf("the reply does not parse: %v", err)
	}
	return reply, hit
}

func pack(t testing.TB, m *dns.Msg) []byte {
	t.Helper()
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func question(name string, qtype uint16) *dns.Msg {
	m := new(dns.Msg).SetQuestion(name, qtype)
	m.Id = 99
	return m
}

func edns(m *dns.Msg, size uint16, do bool) *dns.Msg { return m.SetEdns0(size, do) }

func TestHitAllocatesNothing(t *testing.T) {
	r := newRig(t, addresses(2), func(c *forwarder.Config) { c.Rotate = true })
	for name, m := range map[string]*dns.Msg{
		"plain": question("web.default.svc.cluster.local.", dns.TypeA),
		"EDNS":  edns(question("web.default.svc.cluster.local.", dns.TypeA), 1232, true),
	} {
		t.Run(name, func(t *testing.T) {
			q, dst := pack(t, m), make([]byte, 0, 4096)
			r.exchange(m, forwarder.UDP)
			if n := testing.AllocsPerRun(100, func() {
				if _, v := r.Lookup(dst, q, r.peer(0)); v != forwarder.Answered {
					t.Fatalf("verdict %d", v)
				}
				r.Done(r.peer(0), time.Microsecond)
			}); n != 0 {
				t.Errorf("a hit allocates %v times", n)
			}
		})
	}
}

func TestWhatNeedsNoServerAllocatesNothing(t *testing.T) {
	r := newRig(t, addresses(1))
	bad := pack(t, question("a.test.", dns.TypeA))
	bad[5] = 2 // two questions
	for name, q := range map[string][]byte{
		"malformed": bad,
		"response":  pack(t, new(dns.Msg).SetReply(question("a.test.", dns.TypeA))),
		"local":     pack(t, question("localhost.", dns.TypeAAAA)),
		"refused":   pack(t, question("a.test.", dns.TypeAXFR)),
	} {
		t.Run(name, func(t *testing.T) {
			dst := make([]byte, 0, 4096)
			if n := testing.AllocsPerRun(100, func() { r.Lookup(dst, q, r.peer(0)) }); n != 0 {
				t.Errorf("%v allocations", n)
			}
		})
	}
}

func BenchmarkHit(b *testing.B) {
	r := newRig(b, addresses(2))
	m := question("web.default.svc.cluster.local.", dns.TypeA)
	r.exchange(m, forwarder.UDP)
	q, dst, p := pack(b, m), make([]byte, 0, 4096), r.peer(0)
	b.ReportAllocs()
	for b.Loop() {
		if _, v := r.Lookup(dst, q, p); v != forwarder.Answered {
			b.Fatal("miss")
		}
	}
}
