package guard

import (
	"context"
	"net/netip"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// late is a socket that does not answer, on a machine on which a round is over too late
// for the next one.
type late struct{ by time.Duration }

func (a late) Witness(ctx context.Context, _ string, _ netip.AddrPort) (Witness, error) {
	<-ctx.Done()
	time.Sleep(a.by)
	return Witness{}, ctx.Err()
}

func (late) Answers(context.Context, netip.AddrPort, string) bool { return true }

// A stuck socket is found in time, also when each round takes longer than it should,
// and not before it was silent for three whole quarters of a second and a probe more.
func TestStuckIsFoundInTime(t *testing.T) {
	for _, by := range []time.Duration{0, 49 * time.Millisecond, 51 * time.Millisecond, 100 * time.Millisecond} {
		folder := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			own := netip.MustParseAddr("169.254.20.10")
			g, err := New(Config{
				State: hostnet.State{Mode: hostnet.LinkLocal, Own: []netip.Addr{own}},
				Host:  &hostnet.Fake{}, Asker: late{by}, Endpoints: filepath.Join(folder, "endpoints.json"),
			})
			if err != nil {
				t.Fatal(err)
			}
			l := newLoop(g)
			l.owner = true
			l.sessions = []*session{{hello: hello{Instance: "one"}, sockets: []Socket{{Address: netip.AddrPortFrom(own, 53)}}}}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- l.run(ctx) }()
			began, stuck := time.Now(), false
			for !stuck && time.Since(began) < 5*time.Second {
				time.Sleep(time.Millisecond)
				l.ask(ctx, func() { stuck = l.places[0].stuck })
			}
			// It stopped right before the first tick at worst.
			if took := time.Since(began); took < roundEvery+3*roundEvery+lateAfter || took > 1500*time.Millisecond {
				t.Errorf("rounds that end %v late: found after %v", by, took)
			}
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}
