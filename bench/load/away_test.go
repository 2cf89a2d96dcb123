package load_test

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nodens-dns/nodens/bench/load"
	"github.com/nodens-dns/nodens/bench/names"
	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/bench/upstream"
)

// newAway is a server of an address that no connection comes from: one to its
// port while it is away is never connected to itself.
func newAway(t *testing.T, mix *names.Mix) *upstream.Server {
	t.Helper()
	s, err := upstream.New(upstream.Config{Zone: mix.Zone(), Addr: netip.MustParseAddrPort("127.0.0.2:0")})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// A query that finds no connection was meant to be sent: it is lost.
func TestQueriesToAServerThatIsAwayAreLost(t *testing.T) {
	mix := newMix(t, names.Config{})
	plain, behind := newAway(t, mix), newAway(t, mix)
	dot, config := startTLS(t, behind.Addr())
	for name, c := range map[string]struct {
		transport load.Transport
		addr      netip.AddrPort
		server    *upstream.Server
	}{
		"tcp": {load.TCP, plain.Addr(), plain},
		"dot": {load.TLS, dot, behind},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := load.New(load.Config{
				Target: c.addr, Source: streams(mix), Transport: c.transport, TLS: config, Timeout: time.Second,
				Stages: []load.Stage{load.Steady("run", 500, 400*time.Millisecond)},
			})
			if err != nil {
				t.Fatal(err)
			}
			c.server.Kill()
			report, err := r.Run(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(load.Counts{Sent: 200, Lost: 200}, report.Total); diff != "" || report.Generator.Unsent != 0 {
				t.Errorf("%d not sent; (-want +got)\n%s", report.Generator.Unsent, diff)
			}
		})
	}
}

// Queries that were due while the server was away leave when it is back, and
// their latency counts from when they were due.
func TestQueriesWaitForAServerThatComesBack(t *testing.T) {
	t.Parallel()
	mix := newMix(t, names.Config{})
	s := newAway(t, mix)
	s.Kill()
	back := func() {
		if err := s.Start(); err != nil {
			t.Error(err)
		}
	}
	report := run(t, load.Config{
		Target: s.Addr(), Transport: load.TCP, Timeout: 29 * time.Second,
		Source: func(worker int) load.Source {
			return &ending{Source: mix.Stream(uint64(worker)), after: 50, end: back}
		},
		Stages: []load.Stage{load.Steady("run", 200, 500*time.Millisecond)},
	})
	if diff := cmp.Diff(load.Counts{Sent: 100, Right: 100}, report.Total); diff != "" || report.Generator.Unsent != 0 {
		t.Errorf("%d not sent; (-want +got)\n%s", report.Generator.Unsent, diff)
	}
	if report.Latency.Max < 200*time.Millisecond {
		t.Errorf("the slowest took %v, and the server was away for 240 ms", report.Latency.Max)
	}
}

// A server may close each connection after a reply: queries find the next one.
func TestConnectionsThatCloseAfterAReply(t *testing.T) {
	t.Parallel()
	mix := newMix(t, names.Config{})
	behind := newUpstream(t, mix, upstream.Faults{}).Addr()
	addr := space.Accept(t, func(conn net.Conn) { answerInPieces(conn, behind) })
	report := run(t, load.Config{
		Target: addr, Source: streams(mix), Transport: load.TCP, Conns: 1,
		Stages: []load.Stage{load.Steady("run", 40, time.Second)}, Timeout: 5 * time.Second,
	})
	// One that left as the connection was closed is lost, and on a slow machine many are.
	if c := report.Total; c.Sent != 40 || c.Right < 2 || report.Generator.Unsent != 0 {
		t.Errorf("%+v, %d not sent; want 40 sent and more than one answered", c, report.Generator.Unsent)
	}
}
