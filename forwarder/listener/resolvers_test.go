package listener_test

import (
	"context"
	"strings"
	"testing"

	"github.com/nodens-dns/nodens/forwarder/listener"
)

// After a crowd of misses a few resolvers wait for more, and resolve them; the
// others, and in the end all of them, are gone.
func TestFewResolversWait(t *testing.T) {
	const crowd, kept = 200, 64
	open := make(chan struct{})
	u, r := startUDP(t, listener.UDPConfig{Addr: loopback("127.0.0.1"), Handler: &handler{
		lookup: alwaysMiss,
		resolve: func(_ context.Context, dst, query []byte, _ listener.Peer) ([]byte, listener.Verdict) {
			<-open
			return append(dst, query...), listener.Answered
		},
	}})
	c := dial(t, "udp", u.Addr())
	for i := range crowd {
		mustWrite(t, c, query(i))
	}
	eventually(t, "all are being resolved", func() bool { return u.Stats().InFlight == crowd })
	close(open)
	eventually(t, "all are answered, and as many resolvers wait as may", func() bool {
		return u.Stats().Answered == crowd && resolvers() == kept
	})
	ask := exchange(dial(t, "udp", u.Addr()), query(crowd))
	for range 2 * kept {
		if err := ask(); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "as many wait as before", func() bool { return resolvers() == kept })
	r.end(t)
	eventually(t, "none is left", func() bool { return resolvers() == 0 })
}

// resolvers is the number of goroutines that resolve misses or wait for one.
func resolvers() int { return strings.Count(stacks(), "(*resolvers).work(") }
