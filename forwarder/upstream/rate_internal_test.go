package upstream

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

func TestLine(t *testing.T) {
	var l line
	for i, tc := range []struct {
		now, packet, last, want time.Duration
		full                    bool
	}{
		{now: 0, packet: 30 * ms, last: time.Second, want: 30 * ms},
		{now: 0, packet: 30 * ms, last: time.Second, want: 40 * ms},
		{now: 5 * ms, packet: 30 * ms, last: 49 * ms, full: true},
		{now: 5 * ms, packet: 30 * ms, last: 50 * ms, want: 50 * ms},
		{now: 60 * ms, packet: 200 * ms, last: time.Second, want: 200 * ms}, // packets were spent
	} {
		if empty := tc.now == 0 && i == 0 || tc.now == 60*ms; l.empty(tc.now) != empty {
			t.Errorf("%d: empty is not %v", i, empty)
		}
		if got, ok := l.join(tc.packet, 10*ms, tc.last); got != tc.want || ok == tc.full {
			t.Errorf("%d: %v, %v, want %v", i, got, ok, tc.want)
		}
	}
}

// TestNextPacket has a packet go out at the time that is told, and none before.
func TestNextPacket(t *testing.T) {
	var l limit
	for at := time.Duration(0); at < time.Second; at += 70 * ms {
		for l.take(at, 10*ms, 4) {
		}
		next := l.next(10*ms, 4)
		if next <= at || l.take(next-1, 10*ms, 4) || !l.take(next, 10*ms, 4) {
			t.Errorf("at %v the next is not due at %v", at, next)
		}
	}
}

// TestSimulatedTurns asks forty questions in a row where a burst of five and then one
// every 10 ms may go out: each goes when it is due, in their order. One is given up, and
// one more comes when the packet of that is left over: it does not overtake.
func TestSimulatedTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := simWorld{cfg: Config{External: true, PacketRate: 100}}
		g := w.node(0, []*simServer{{}})
		q := probeQuery("a.test", wire.TypeA)
		start := time.Now()
		const givenUp, last = 10, 40
		var took [last + 1]time.Duration
		var asking sync.WaitGroup
		for i := range took {
			ctx, giveUp := context.WithCancel(context.Background())
			defer giveUp()
			if i == givenUp {
				time.AfterFunc(20*ms, giveUp)
			}
			if i == last {
				time.Sleep(65 * ms)
			}
			asking.Go(func() {
				if _, err := g.Exchange(ctx, nil, &q); (err != nil) != (i == givenUp) {
					t.Errorf("%d: %v", i, err)
				}
				took[i] = time.Since(start)
			})
			time.Sleep(time.Microsecond)
		}
		asking.Wait()
		const answer = simService + 2*simNear
		for i, d := range took {
			due := time.Duration(max(i-4, 0)) * 10 * ms
			if i == givenUp {
				continue
			}
			if i > 4 && (d < due+answer || d > due+answer+ms) || i <= 4 && d > 10*ms {
				t.Errorf("%d: answered after %v, and due at %v", i, d, due)
			}
		}
		if n := g.held.Load(); n != 0 {
			t.Errorf("%d are held at the end", n)
		}
		_ = g.Close()
		time.Sleep(time.Minute)
	})
}

// TestSimulatedRate asks twice as much as may be sent: all of that is used, nobody waits
// for longer than half of the budget, and those for whom there is no turn are told at once.
func TestSimulatedRate(t *testing.T) {
	const rate, length = 100, 20 * time.Second
	w := simWorld{cfg: Config{External: true, PacketRate: rate}, rates: []float64{2 * rate}, length: length}
	r := w.run(t)
	answered := len(r.took)
	t.Logf("%d asked, %d answered, %d put, p50 %v", r.asked, answered, r.first.Attempts, r.percentile(0.5))
	// After the last was asked the line is two seconds long.
	most := rate*22 + rate/packetBurst + 1
	if sent := int(r.first.Attempts); sent > most {
		t.Errorf("%d questions put, want at most %d", sent, most)
	}
	if answered < most*95/100 {
		t.Errorf("%d answered, want %d", answered, most)
	}
	if longest := r.percentile(1); longest > slowBudget/2+50*ms {
		t.Errorf("one waited for %v", longest)
	}
}
