package load_test

import (
	"context"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/bench/load"
	"github.com/nodens-dns/nodens/bench/names"
)

// BenchmarkClosedLoop is what the generator itself costs per query, against a
// reflector that runs at the address in NODENS_REFLECTOR.
func BenchmarkClosedLoop(b *testing.B) {
	target, err := netip.ParseAddrPort(os.Getenv("NODENS_REFLECTOR"))
	if err != nil {
		b.Skip("NODENS_REFLECTOR does not name a reflector that runs, such as 127.0.0.1:5300")
	}
	mix, err := names.NewMix(names.Config{})
	if err != nil {
		b.Fatal(err)
	}
	r, err := load.New(load.Config{
		Target: target, Source: func(w int) load.Source { return mix.Flat(uint64(w)) }, Unjudged: true, Transport: load.UDP,
		Outstanding: 200, Sockets: 8, Queries: uint64(b.N), Stages: []load.Stage{{For: time.Minute}},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	report, err := r.Run(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(report.Generator.CPU), "cpu-ns/op")
	b.ReportMetric(100*report.Generator.Busy, "%busy")
}
