package forwarder_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder"
	"github.com/nodens-dns/nodens/forwarder/cache"
	"github.com/nodens-dns/nodens/forwarder/dnstest"
)

// rig is a forwarder with a scripted server for "." and a clock to turn.
type rig struct {
	*forwarder.Forwarder
	t      testing.TB
	server *dnstest.Group
	store  *cache.Cache
	clock  dnstest.Clock
	// received is when a query came; by the clock if nil.
	received func() time.Duration
}

// rigCache is the size of a rig's cache in bytes.
const rigCache = 8 << 20

func newRig(t testing.TB, reply dnstest.Answer, change ...func(*forwarder.Config)) *rig {
	t.Helper()
	r := &rig{t: t, server: dnstest.NewGroup(reply), store: newCache(t, cache.Config{Bytes: rigCache})}
	cfg := forwarder.Config{
		Routes: []forwarder.Route{{Zones: []string{"."}, Group: r.server, MaxInFlight: 100, Policy: cache.Policy{
			MaxTTL: time.Hour, MaxNegativeTTL: 30 * time.Second,
			FailureTTL: time.Second, ServFailTTL: 5 * time.Second,
			MaxStale: time.Hour, StaleOnError: true, StaleTTL: 30 * time.Second, Recheck: 5 * time.Second,
		}}},
		Cache: r.store, Listeners: 1, Stripes: 2, UDPSize: 1232, MaxFollowers: 10,
		Now: r.clock.Now,
	}
	for _, f := range change {
		f(&cfg)
	}
	var err error
	if r.Forwarder, err = forwarder.New(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
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

func (r *rig) turn(d time.Duration) { r.clock.Turn(d) }

func (r *rig) peer(proto forwarder.Proto) forwarder.Peer {
	now := r.clock.Now
	if r.received != nil {
		now = r.received
	}
	return forwarder.Peer{Client: netip.MustParseAddrPort("127.0.0.1:4000"), Received: now(), Proto: proto}
}

// ask sends raw bytes through Lookup and, on a miss, Resolve, as a listener
// does. reply is nil when there is none.
func (r *rig) ask(query []byte, proto forwarder.Proto) (reply []byte, hit bool) {
	return r.askFrom(r.peer(proto), query)
}

func (r *rig) askFrom(from forwarder.Peer, query []byte) (reply []byte, hit bool) {
	dst := make([]byte, 0, 4096)
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
	b, hit := r.ask(dnstest.Pack(r.t, m), proto)
	if b == nil {
		r.t.Fatalf("no reply to %v", m.Question)
	}
	return dnstest.Unpack(r.t, b), hit
}

func edns(m *dns.Msg, size uint16, do bool) *dns.Msg { return m.SetEdns0(size, do) }

func TestHitAllocatesNothing(t *testing.T) {
	r := newRig(t, dnstest.Addresses(2), func(c *forwarder.Config) { c.Rotate = true })
	for name, m := range map[string]*dns.Msg{
		"plain": dnstest.Question("web.default.svc.cluster.local.", dns.TypeA),
		"EDNS":  edns(dnstest.Question("web.default.svc.cluster.local.", dns.TypeA), 1232, true),
	} {
		t.Run(name, func(t *testing.T) {
			q, dst := dnstest.Pack(t, m), make([]byte, 0, 4096)
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
	r := newRig(t, dnstest.Addresses(1))
	bad := dnstest.Pack(t, dnstest.Question("a.test.", dns.TypeA))
	bad[5] = 2 // two questions
	for name, q := range map[string][]byte{
		"malformed": bad,
		"response":  dnstest.Pack(t, new(dns.Msg).SetReply(dnstest.Question("a.test.", dns.TypeA))),
		"local":     dnstest.Pack(t, dnstest.Question("localhost.", dns.TypeAAAA)),
		"refused":   dnstest.Pack(t, dnstest.Question("a.test.", dns.TypeAXFR)),
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
	r := newRig(b, dnstest.Addresses(2))
	m := dnstest.Question("web.default.svc.cluster.local.", dns.TypeA)
	r.exchange(m, forwarder.UDP)
	q, dst, p := dnstest.Pack(b, m), make([]byte, 0, 4096), r.peer(0)
	b.ReportAllocs()
	for b.Loop() {
		if _, v := r.Lookup(dst, q, p); v != forwarder.Answered {
			b.Fatal("miss")
		}
	}
}
