package forwarder_test

import (
	"fmt"
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
			// Both sides ask again by time: what a busy machine spoiled is tried again,
			// with a name that nobody has asked for.
			meet := func(name string) string {
				got, err := stub.Lookup(at, name)
				if want := outcomes[stub.Name][s.Name]; err != nil || got != want {
					return fmt.Sprintf("%v, error %v; want %v", got, err, want)
				}
				if asked := servers[0].SeenFor(name); asked != s.Asked {
					return fmt.Sprintf("the server was asked %d times, want %d", asked, s.Asked)
				}
				return ""
			}
			waiting.Go(func() {
				failure := "not met"
				for try := 0; failure != "" && try < 5; try++ {
					if failure = meet(fmt.Sprintf("%s.try%d.test.", s.Name, try)); failure != "" {
						t.Logf("%s, %s: %s", stub.Name, s.Name, failure)
					}
				}
				if failure != "" {
					t.Errorf("%s, %s: %s", stub.Name, s.Name, failure)
				}
			})
		}
	}
	waiting.Wait()
}
