package guard

import (
	"context"
	"net/netip"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// late is a socket that does not answer, on a machine on which a round is over too late
// for the next one.
type late struct{ by time.Duration }

func (a late) Witness(ctx context.Context, _ string, _ netip.Addr, _ netip.AddrPort) (Witness, error) {
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

// halves is a process that answers over UDP, and over TCP while it is told to.
type halves struct{ tcp *atomic.Bool }

func (a halves) Witness(ctx context.Context, over string, _ netip.Addr, _ netip.AddrPort) (Witness, error) {
	switch {
	case over == overUDP:
		return Witness{Instance: "one", Number: 0}, nil
	case a.tcp.Load():
		return Witness{Instance: "one", Number: 1}, nil
	}
	<-ctx.Done()
	return Witness{}, ctx.Err()
}

func (halves) Answers(context.Context, netip.AddrPort, string) bool { return true }

// At a Service's address silence over TCP counts once a probe was answered there, and at
// an own address always.
func TestSilenceOverTCP(t *testing.T) {
	own, service := netip.MustParseAddr("169.254.20.10"), netip.MustParseAddr("10.96.0.10")
	for name, c := range map[string]struct {
		at    netip.Addr
		mark  uint32
		stuck [3]bool // while nothing comes, while answers do, and when they end
	}{
		"own address":                 {own, DefaultMark, [3]bool{true, false, true}},
		"of a Service":                {service, DefaultMark, [3]bool{false, false, true}},
		"of a Service, no probe goes": {service, 0, [3]bool{false, false, false}},
	} {
		folder := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			var answers atomic.Bool
			g, err := New(Config{
				State: hostnet.State{Mode: hostnet.Service, Own: []netip.Addr{own}, Service: []netip.Addr{service}, ProbeMark: c.mark},
				Host:  &hostnet.Fake{}, Asker: halves{&answers}, Endpoints: filepath.Join(folder, "endpoints.json"),
			})
			if err != nil {
				t.Fatal(err)
			}
			l, at := newLoop(g), netip.AddrPortFrom(c.at, 53)
			l.owner = true
			l.sessions = []*session{{hello: hello{Instance: "one"}, sockets: []Socket{{Address: at}}, tcp: []Socket{{Address: at, Number: 1}}}}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- l.run(ctx) }()
			for i, want := range c.stuck {
				answers.Store(i == 1)
				time.Sleep(3 * time.Second)
				l.ask(ctx, func() {
					for _, p := range l.places {
						if p.addr == c.at && p.stuck != want {
							t.Errorf("%s, after %d: stuck %v", name, i, p.stuck)
						}
					}
				})
			}
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}
