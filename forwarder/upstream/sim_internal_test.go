package upstream

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

// The simulation has the real exchanges ask servers that exist in the memory of
// the test only, in the time of synctest: three nodes with a server each, whose
// workers take a fixed time for a query and whose queue drops what is more, as
// a socket's receive buffer does.

const (
	simWorkers = 2
	simService = 2 * time.Millisecond // 1000 queries a second and server
	simQueue   = 256
	simNear    = 50 * time.Microsecond // one way
	simFar     = 500 * time.Microsecond
)

// simServer is a server of one node.
type simServer struct {
	mu      sync.Mutex
	busy    int
	queue   []func()
	slow    time.Duration // more for each query
	paused  time.Time     // nothing is done before
	silent  atomic.Bool
	unheard atomic.Int64 // queries that came while it was silent
}

// slower has each query take so much longer.
func (s *simServer) slower(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slow = by
}

// pause has the server do nothing for a while; what comes waits in its queue.
func (s *simServer) pause(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused = time.Now().Add(d)
}

// arrive has the server work on a query, then call done.
func (s *simServer) arrive(done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.silent.Load():
		s.unheard.Add(1)
	case s.busy < simWorkers:
		s.busy++
		s.work(done)
	case len(s.queue) < simQueue:
		s.queue = append(s.queue, done)
	}
}

// work does one query. The lock is held.
func (s *simServer) work(done func()) {
	time.AfterFunc(simService+s.slow+max(time.Until(s.paused), 0), func() {
		if !s.silent.Load() {
			done()
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.queue) == 0 {
			s.busy--
			return
		}
		next := s.queue[0]
		s.queue = s.queue[1:]
		s.work(next)
	})
}

// simPath is the way from one node to one server.
type simPath struct {
	group   *Group
	score   *score
	server  *simServer
	delay   time.Duration
	loss    float64       // part of the datagrams lost, each way
	jitter  time.Duration // at most so much more delay, each way
	random  *rand.Rand
	mu      sync.Mutex
	pending map[*attempt]uint16
	id      uint16
}

func (p *simPath) send(a *attempt, now time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.id++
	id := p.id
	a.register(p, id)
	p.pending[a] = id
	msg := append([]byte(nil), a.query()...)
	was := asked{at: now, class: a.class, speaks: a.speaks}
	p.travel(func() {
		p.server.arrive(func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.travel(func() { p.reply(a, id, msg, was) })
		})
	})
	return nil
}

// travel takes a datagram one way. The lock is held.
func (p *simPath) travel(arrived func()) {
	if p.random.Float64() >= p.loss {
		time.AfterFunc(p.delay+time.Duration(p.random.Float64()*float64(p.jitter)), arrived)
	}
}

func (p *simPath) reply(a *attempt, id uint16, msg []byte, was asked) {
	msg[2] |= 1 << 7
	reply, _ := wire.ParseReply(msg)
	p.mu.Lock()
	waits := p.pending[a] == id
	if waits {
		delete(p.pending, a)
		a.deliver(reply)
	}
	p.mu.Unlock()
	if !waits {
		p.group.learnLate(p.score, was, reply.RCode)
	}
}

func (p *simPath) abandon(a *attempt) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.pending, a)
}

func (p *simPath) signal(error) {}
func (p *simPath) end(error)    {}
func (p *simPath) close(error)  {}

// simWorld is what happens to whom.
type simWorld struct {
	cfg    Config
	rates  []float64 // queries a second that the clients of each node ask
	length time.Duration
	loss   float64
	jitter time.Duration
	begin  func([]*simServer) // what is so from the beginning,
	half   func([]*simServer) // and what happens halfway
}

// node is a group on one of the nodes.
func (w *simWorld) node(own int, servers []*simServer) *Group {
	g := New(w.cfg)
	next := &snapshot{}
	for i, s := range servers {
		tier, delay := ClusterTier, simFar
		if i == own {
			tier, delay = NodeTier, simNear
		}
		addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 53)
		t := &target{member: Member{UDP: addr}, addr: addr, tier: uint8(tier), score: newScore(g.cfg.Random)}
		t.score.near.Store(tier == NodeTier)
		t.paths[udpPath] = &simPath{
			group: g, score: t.score, server: s, delay: delay, loss: w.loss, jitter: w.jitter,
			random: rand.New(rand.NewPCG(uint64(own), uint64(i))), pending: map[*attempt]uint16{},
		}
		g.known[addr] = t
		next.targets = append(next.targets, t)
	}
	slices.SortFunc(next.targets, func(a, b *target) int { return int(a.tier) - int(b.tier) })
	g.snapshot.Store(next)
	g.startProber()
	return g
}

// simResult is what clients and one node's group saw.
type simResult struct {
	mu          sync.Mutex
	asked, lost int
	took, tail  []time.Duration // of all, and of those asked in the last quarter
	first       Status          // of the first node
	unheard     int64           // queries that its server got while it was silent
	before      Status          // the same when the last quarter began
}

func (r *simResult) note(took time.Duration, err error, last bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	if err != nil {
		r.lost++
		return
	}
	r.took = append(r.took, took)
	if last {
		r.tail = append(r.tail, took)
	}
}

func (r *simResult) percentile(p float64) time.Duration { return percentile(r.took, p) }

func percentile(took []time.Duration, p float64) time.Duration {
	slices.Sort(took)
	return took[min(int(p*float64(len(took))), len(took)-1)]
}

func (r *simResult) local() float64 { return localOf(r.first.Served) }

// localTail is the same for the last quarter.
func (r *simResult) localTail() float64 {
	served := r.first.Served
	for i := range served {
		served[i] -= r.before.Served[i]
	}
	return localOf(served)
}

func localOf(served [tierCount]uint64) float64 {
	return float64(served[NodeTier]) / float64(served[NodeTier]+served[ClusterTier])
}

// run lets the world go on for its length. It starts goroutines by the hundred thousand,
// which the race detector's own memory did not always survive: make test runs these
// without it.
func (w simWorld) run(t *testing.T) *simResult {
	t.Helper()
	if RaceEnabled {
		t.Skip("the race detector does not bear so many goroutines: go test -run Simulated ./forwarder/upstream")
	}
	r := &simResult{}
	synctest.Test(t, func(t *testing.T) {
		var servers []*simServer
		for range w.rates {
			servers = append(servers, &simServer{})
		}
		if w.begin != nil {
			w.begin(servers)
		}
		if w.half != nil {
			time.AfterFunc(w.length/2, func() { w.half(servers) })
		}
		var clients sync.WaitGroup
		var groups []*Group
		for i, rate := range w.rates {
			g := w.node(i, servers)
			groups = append(groups, g)
			clients.Go(func() { simClients(g, rate, w.length, r.note) })
		}
		time.Sleep(w.length * 3 / 4)
		r.before = groups[0].Status()
		clients.Wait()
		r.first, r.unheard = groups[0].Status(), servers[0].unheard.Load()
		for _, g := range groups {
			_ = g.Close()
		}
		time.Sleep(time.Minute) // what is still on its way
	})
	return r
}

// simClients asks in random intervals, whatever became of earlier queries.
func simClients(g *Group, rate float64, length time.Duration, note func(took time.Duration, err error, last bool)) {
	random := rand.New(rand.NewPCG(1, uint64(rate)))
	q := probeQuery("a.cluster.local", wire.TypeA)
	var waiting sync.WaitGroup
	end := time.Now().Add(length)
	tail := end.Add(-length / 4)
	for time.Now().Before(end) {
		time.Sleep(time.Duration(random.ExpFloat64() / rate * float64(time.Second)))
		waiting.Go(func() {
			start := time.Now()
			_, err := g.Exchange(context.Background(), nil, &q)
			note(time.Since(start), err, start.After(tail))
		})
	}
	waiting.Wait()
}

// check logs what came of a world, and that nothing was lost.
func (r *simResult) check(t *testing.T, what string, most time.Duration) {
	t.Helper()
	f, round := &r.first, 10*time.Microsecond
	t.Logf("%s: lost %d of %d, p50 %v, p99 %v, p99.9 %v, at the end %v; the first node: local %.1f %%, spills %d, hedges %d, retries %d, suspicions %v, ejections %v, panics %v, held %d",
		what, r.lost, r.asked, r.percentile(0.5).Round(round), r.percentile(0.99).Round(round), r.percentile(0.999).Round(round), percentile(r.tail, 0.99).Round(round),
		100*r.local(), f.Spills[ClusterTier], f.Hedges[NodeTier]+f.Hedges[ClusterTier], f.Retries, f.Suspicions, f.Ejections, f.Panics, f.Held)
	if r.lost > 0 {
		t.Errorf("%s: %d lost", what, r.lost)
	}
	if got := r.percentile(0.999); got > most {
		t.Errorf("%s: p99.9 is %v, want at most %v", what, got, most)
	}
}

// TestSimulatedOverload is what the parameters of spilling were chosen by: the
// clients of one node offer 160 % of what its server can bear, or those of all
// nodes 60 %.
func TestSimulatedOverload(t *testing.T) {
	for spill, from := range map[int]string{0: "as many as it bears", 8: "8", 32: "32", 64: "64"} {
		w := simWorld{cfg: Config{Spill: spill}, rates: []float64{600, 600, 600}, length: 5 * time.Second}
		even := w.run(t)
		even.check(t, "from "+from+" on, 60 % everywhere", 20*time.Millisecond)
		if even.local() < 0.97 {
			t.Errorf("%.1f %% stayed local", 100*even.local())
		}
		w.rates = []float64{1600, 200, 200}
		hot := w.run(t)
		hot.check(t, "from "+from+" on, 160 % on one node", 100*time.Millisecond)
		if hot.local() < 0.5 {
			t.Errorf("%.1f %% stayed local", 100*hot.local())
		}
	}
}

// TestSimulatedPause has all servers do nothing for a moment, so that their queues
// are full when they go on. They have to get through by themselves with what is
// asked meanwhile.
func TestSimulatedPause(t *testing.T) {
	for _, tt := range []struct {
		rate float64
		lost float64 // part of all, at most: what comes in the pause is more than fits
	}{{600, 0.001}, {800, 0.05}} { // at the lower rate one of 20 runs loses one query
		w := simWorld{
			rates: []float64{tt.rate, tt.rate, tt.rate}, length: 14 * time.Second,
			half: func(servers []*simServer) {
				for _, s := range servers {
					s.pause(500 * time.Millisecond)
				}
			},
		}
		r := w.run(t)
		lost := r.lost
		r.lost = 0
		r.check(t, fmt.Sprintf("a pause of all at %.0f/s (%d lost)", tt.rate, lost), 2*time.Second)
		if float64(lost) > tt.lost*float64(r.asked) {
			t.Errorf("%d of %d lost", lost, r.asked)
		}
		if got := percentile(r.tail, 0.99); got > 50*time.Millisecond {
			t.Errorf("three seconds later p99 is %v: the servers do not get through", got)
		}
	}
}

// TestSimulatedSlowServer has the first node's server take ten times as long, and
// be well again after half of the time.
func TestSimulatedSlowServer(t *testing.T) {
	w := simWorld{
		rates: []float64{600, 300, 300}, length: 12 * time.Second,
		begin: func(s []*simServer) { s[0].slower(9 * simService) },
		half:  func(s []*simServer) { s[0].slower(0) },
	}
	r := w.run(t)
	r.check(t, "a slow server", 300*time.Millisecond)
	if got := percentile(r.took, 0.99); got > 200*time.Millisecond {
		t.Errorf("p99 is %v", got)
	}
	if got := r.localTail(); got < 0.97 {
		t.Errorf("%.1f %% local when it was well again", 100*got)
	}
}

// TestSimulatedSilence has a server fall silent, and one return.
func TestSimulatedSilence(t *testing.T) {
	silence := func(silent bool) func([]*simServer) {
		return func(s []*simServer) { s[0].silent.Store(silent) }
	}
	w := simWorld{rates: []float64{600, 600, 600}, length: 10 * time.Second, half: silence(true)}
	gone := w.run(t)
	gone.check(t, "the local server falls silent", 200*time.Millisecond)
	if f := &gone.first; f.Ejections != [tierCount]uint64{1} || f.Retries > 200 {
		t.Errorf("ejections %v, retries %d", f.Ejections, f.Retries)
	}
	// Of 3000 queries in the silence, those count that are asked until the third
	// has stayed unanswered for 10 to 30 ms, and some probes.
	t.Logf("%d questions put to the silent server", gone.unheard)
	if forced := gone.first.Targets[0].Forced; forced != 0 || gone.unheard > 60 {
		t.Errorf("%d questions put to the silent server, %d of them when it was suspected", gone.unheard, forced)
	}
	w.begin, w.half, w.length = silence(true), silence(false), 20*time.Second
	back := w.run(t)
	back.check(t, "the local server returns", 200*time.Millisecond)
	if ts := back.first.Targets[0]; ts.Out || ts.Share < 1 || back.local() < 0.25 {
		t.Errorf("target %+v, local %.1f %%", ts, 100*back.local())
	}
}

// TestSimulatedHiccups has the first node's server do nothing for 60 ms twice a
// second, as a process without a processor: for so long it is suspected.
func TestSimulatedHiccups(t *testing.T) {
	w := simWorld{
		rates: []float64{600, 600, 600}, length: 10 * time.Second,
		begin: func(s []*simServer) {
			for at := time.Duration(0); at < 10*time.Second; at += 500 * time.Millisecond {
				time.AfterFunc(at, func() { s[0].pause(60 * time.Millisecond) })
			}
		},
	}
	r := w.run(t)
	r.check(t, "60 ms of silence twice a second", 150*time.Millisecond)
	if f := &r.first; f.Ejections != [tierCount]uint64{} || f.Suspicions[NodeTier] == 0 || r.local() < 0.5 {
		t.Errorf("suspicions %v, ejections %v, local %.1f %%", f.Suspicions, f.Ejections, 100*r.local())
	}
}

// TestSimulatedFewQueries has 2 % of the datagrams lost each way where so little
// is asked that three losses in a row are not made up for by replies between.
func TestSimulatedFewQueries(t *testing.T) {
	w := simWorld{rates: []float64{5, 5, 5}, length: 40 * time.Minute, loss: 0.02, jitter: 20 * time.Millisecond}
	r := w.run(t)
	lost := r.lost
	r.lost = 0
	r.check(t, fmt.Sprintf("2 %% loss each way, 5/s (%d lost)", lost), 500*time.Millisecond)
	// One question in 16000 is the third in a row that is lost, and then one probe
	// in 25: 0.05 times for what is asked here.
	if n := r.first.Ejections[NodeTier]; n > 2 {
		t.Errorf("%d ejections of the local server", n)
	}
	// Three attempts leave 6 of 100000; the bound is eight times that.
	if lost*2000 > r.asked {
		t.Errorf("%d of %d lost", lost, r.asked)
	}
}

// TestSimulatedLoss has 2 % of the datagrams lost each way, and 20 ms of jitter.
func TestSimulatedLoss(t *testing.T) {
	w := simWorld{rates: []float64{400, 400, 400}, length: 40 * time.Second, loss: 0.02, jitter: 20 * time.Millisecond}
	r := w.run(t)
	lost := r.lost
	r.lost = 0
	r.check(t, fmt.Sprintf("2 %% loss each way (%d lost)", lost), 400*time.Millisecond)
	// Three attempts leave 6 of 100000, here 3; one run of ten million has more than 16.
	if lost*3000 > r.asked {
		t.Errorf("%d of %d lost", lost, r.asked)
	}
}

// TestCrowd has many ask while every server is out. Outside the cluster only so many
// wait; the others are told at once.
func TestCrowd(t *testing.T) {
	for external, most := range map[bool]int{true: heldMost, false: 400} {
		synctest.Test(t, func(t *testing.T) {
			server := &simServer{}
			server.silent.Store(true)
			w := simWorld{cfg: Config{External: external}}
			g := w.node(0, []*simServer{server})
			q := probeQuery("a.test", wire.TypeA)
			var asking sync.WaitGroup
			var waiting atomic.Int32
			ask := func(n int) {
				for range n {
					waiting.Add(1)
					asking.Go(func() {
						_, err := g.Exchange(context.Background(), nil, &q)
						if waiting.Add(-1); err == nil {
							t.Error("answered")
						}
					})
				}
			}
			ask(10)
			time.Sleep(5 * time.Second)
			ask(400)
			time.Sleep(10 * time.Millisecond)
			// Beside those held, the packets that were saved up are out.
			if n := int(waiting.Load()); n < most || n > most+outBurst+2 {
				t.Errorf("external %v: %d of 400 wait, want %d", external, n, most)
			}
			asking.Wait()
			if n := g.held.Load(); n != 0 {
				t.Errorf("external %v: %d are held at the end", external, n)
			}
			_ = g.Close()
			time.Sleep(time.Minute)
		})
	}
}

// TestSimulatedDarkness has all servers gone for a while.
func TestSimulatedDarkness(t *testing.T) {
	all := func(silent bool) func([]*simServer) {
		return func(s []*simServer) {
			for i := range s {
				s[i].silent.Store(silent)
			}
		}
	}
	w := simWorld{rates: []float64{300, 300, 300}, length: 10 * time.Second, begin: all(true)}
	dark := w.run(t)
	t.Logf("10 s without any server: %d queries of 3 nodes, %d questions put by the first, held %d times", dark.asked, dark.first.Attempts, dark.first.Held)
	// 3000 queries of 3 attempts each would be 9000. It takes a moment to notice.
	if sent, most := dark.first.Attempts, uint64(250+12*time.Second/outInterval); sent > most {
		t.Errorf("%d questions put, want at most %d", sent, most)
	}
	w.length, w.half = 20*time.Second, all(false)
	back := w.run(t)
	t.Logf("and then with all: %d lost of %d", back.lost, back.asked)
	if back.lost > back.asked*45/100 {
		t.Errorf("%d of %d lost, though the servers were back after half the time", back.lost, back.asked)
	}
}
