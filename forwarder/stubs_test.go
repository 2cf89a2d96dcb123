package forwarder_test

import (
	"sync"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/forwarder/dnstest"
	"github.com/nodens-dns/nodens/forwarder/upstream"
)

// TestStubResolvers has the habits of each stub resolver meet each situation of
// a server, all at once: some wait for seconds.
func TestStubResolvers(t *testing.T) {
	const patience = 500 * time.Millisecond // with a server, on a busy machine
	outcomes := dnstest.Outcomes()
	var waiting sync.WaitGroup
	for _, stub := range dnstest.Habits() {
		for _, s := range dnstest.Situations(t) {
			r, servers := behind(t, upstream.Config{External: true, Budget: dnstest.Budget, RetryMin: patience, RetryMax: patience}, s.Script)
			at, _ := listen(t, r)
			waiting.Go(func() {
				name := s.Name + ".test."
				got, err := stub.Lookup(at, name)
				if want := outcomes[stub.Name][s.Name]; err != nil || got != want {
					t.Errorf("%s, %s: %v, error %v; want %v", stub.Name, s.Name, got, err, want)
				}
				if asked := servers[0].SeenFor(name); asked != s.Asked {
					t.Errorf("%s, %s: the server was asked %d times, want %d", stub.Name, s.Name, asked, s.Asked)
				}
			})
		}
	}
	waiting.Wait()
}
