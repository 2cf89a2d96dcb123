package load_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/bench/load"
	"github.com/nodens-dns/nodens/bench/names"
	"github.com/nodens-dns/nodens/bench/upstream"
)

func TestIPv6(t *testing.T) {
	mix := newMix(t, names.Config{TCPShare: 0.5, DualStack: true})
	s, err := upstream.New(upstream.Config{Zone: mix.Zone(), Addr: netip.MustParseAddrPort("[::1]:0")})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Skip("no IPv6 loopback:", err)
	}
	defer s.Close()
	report := run(t, load.Config{
		Target: s.Addr(), Source: streams(mix),
		Stages: []load.Stage{load.Steady("run", 1000, 300*time.Millisecond)},
	})
	if report.Total.Right != 300 || s.Counts().TCP == 0 || s.Counts().UDP == 0 {
		t.Errorf("%d of 300 right, %+v", report.Total.Right, s.Counts())
	}
}
