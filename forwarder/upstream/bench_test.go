package upstream_test

import (
	"context"
	"net"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/nodens-dns/nodens/forwarder/upstream"
)

// echo answers every query with itself made a reply, without allocating.
func echo(t testing.TB) *server {
	s := &server{t: t}
	udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	s.udp, s.addr = udp, udp.LocalAddr().(*net.UDPAddr).AddrPort()
	s.work.Go(func() {
		buf := make([]byte, 2048)
		for {
			n, from, err := udp.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			buf[2] |= 0x80
			_, _ = udp.WriteToUDPAddrPort(buf[:n], from)
		}
	})
	t.Cleanup(func() {
		_ = udp.Close()
		s.work.Wait()
	})
	return s
}

func TestExchangeAllocations(t *testing.T) {
	const most = 0.1 // per exchange; a pool may lose some to a collection
	g := group(t, upstream.Config{}, plain(echo(t), echo(t)))
	q, dst := query(t, "a.test"), make([]byte, 0, 4096)
	run := func(n int) {
		for range n {
			if _, err := g.Exchange(context.Background(), dst, q); err != nil {
				t.Fatal(err)
			}
		}
	}
	run(200) // sockets open
	const exchanges = 4000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	run(exchanges)
	runtime.ReadMemStats(&after)
	// Counts the readers, too, and the servers, which allocate nothing.
	if per := float64(after.Mallocs-before.Mallocs) / exchanges; per > most && !upstream.RaceEnabled {
		t.Errorf("%.3f allocations per exchange, want at most %v", per, most)
	} else {
		t.Logf("%.4f allocations per exchange", per)
	}
}

func BenchmarkExchange(b *testing.B) {
	g := group(b, upstream.Config{}, plain(echo(b)))
	q, dst := query(b, "kubernetes.default.svc.cluster.local"), make([]byte, 0, 4096)
	b.ReportAllocs()
	start := cpuTime()
	for b.Loop() {
		if _, err := g.Exchange(context.Background(), dst, q); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(cpuTime()-start)/float64(b.N), "cpu-ns/op")
}

// BenchmarkExchangeMany has many exchanges at once, as a forwarder has misses.
func BenchmarkExchangeMany(b *testing.B) {
	g := group(b, upstream.Config{}, plain(echo(b)))
	b.ReportAllocs()
	b.SetParallelism(32)
	var failed atomic.Int64
	start := cpuTime()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		q, dst := query(b, "kubernetes.default.svc.cluster.local"), make([]byte, 0, 4096)
		for pb.Next() {
			if _, err := g.Exchange(context.Background(), dst, q); err != nil {
				failed.Add(1)
			}
		}
	})
	b.ReportMetric(float64(cpuTime()-start)/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "exchanges/s")
	if n := failed.Load(); n > 0 {
		b.Errorf("%d exchanges failed", n)
	}
	st := g.Status()
	b.ReportMetric(float64(st.Retries)/float64(st.Exchanges), "retries/op")
}

// cpuTime is what the process has used, the echo server included.
func cpuTime() int64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u.Utime.Nano() + u.Stime.Nano()
}
