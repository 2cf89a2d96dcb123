//go:build !race

package listener_test

import (
	"runtime"
	"testing"

	"github.com/nodens-dns/nodens/forwarder/listener"
)

// A hit allocates nothing between the two sockets, nor does a miss over UDP but
// what its handler does. The client of this test does not allocate either, so that
// every allocation of the process counts.
func TestAllocatesNothing(t *testing.T) {
	const queries = 20_000
	for _, bind := range []string{"127.0.0.1", "0.0.0.0", "::1", "::"} {
		t.Run("udp "+bind, func(t *testing.T) {
			u, _ := startUDP(t, listener.UDPConfig{Addr: loopback(bind), Handler: &handler{}})
			expectNoAllocations(t, queries, exchange(dial(t, "udp", netipPort(reachable(bind), u.Addr().Port())), query(1)))
		})
	}
	t.Run("udp miss", func(t *testing.T) {
		u, _ := startUDP(t, listener.UDPConfig{Addr: loopback("127.0.0.1"), Handler: &handler{lookup: alwaysMiss}})
		expectNoAllocations(t, queries, exchange(dial(t, "udp", u.Addr()), query(1)))
	})
	t.Run("tcp", func(t *testing.T) {
		l, _ := startTCP(t, listener.TCPConfig{Addr: loopback("127.0.0.1"), Handler: &handler{}})
		expectNoAllocations(t, queries, exchange(dial(t, "tcp", l.Addr()), framed(query(1))))
	})
}

func expectNoAllocations(t *testing.T, queries int, ask func() error) {
	t.Helper()
	run := func(n int) {
		for range n {
			if err := ask(); err != nil {
				t.Fatal(err)
			}
		}
	}
	run(100) // whatever is made once
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	run(queries)
	runtime.ReadMemStats(&after)
	if each := float64(after.Mallocs-before.Mallocs) / float64(queries); each >= 0.01 {
		t.Errorf("%.3f allocations for each query, want none", each)
	}
}
