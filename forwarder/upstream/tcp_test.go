package upstream_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/forwarder/upstream"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// large answers over TCP and is truncated over UDP.
func large(t testing.TB) func(*request) {
	return func(r *request) {
		if r.tcp {
			r.reply(t, 0)
		} else {
			r.reply(t, 0, truncated)
		}
	}
}

func TestTruncatedIsAskedOverTCP(t *testing.T) {
	s, other := serve(t, large(t)), serve(t, good(t))
	g := group(t, inOrder, plain(s, other))
	for range 3 {
		r, took := mustAnswer(t, g, "a.test", wire.NoError)
		if r.TC || r.Count(wire.Answer) != 1 || took > soon {
			t.Errorf("TC %v, %d answers after %v", r.TC, r.Count(wire.Answer), took)
		}
	}
	if n := other.count(); n != 0 {
		t.Errorf("the other server was asked %d times", n)
	}
	from := map[uint16]int{}
	for _, r := range s.requests(true) {
		from[r.from.Port()]++
	}
	if len(from) != 1 {
		t.Errorf("%d connections for 3 queries one after the other", len(from))
	}
	if st := g.Status(); st.TCPFallbacks != 3 || st.Attempts != 3 {
		t.Errorf("%d fallbacks, %d attempts", st.TCPFallbacks, st.Attempts)
	}
}

// TestManyTruncatedAtOnce has as many replies cut at once as a burst of clients makes:
// all are had over TCP.
func TestManyTruncatedAtOnce(t *testing.T) {
	const burst = 64
	var mu sync.Mutex
	var waiting []*request
	s := serve(t, func(r *request) {
		if !r.tcp {
			r.reply(t, 0, truncated)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if waiting = append(waiting, r); len(waiting) == burst {
			for _, w := range waiting {
				w.reply(t, 0)
			}
		}
	})
	cfg := inOrder
	cfg.Budget = 30 * time.Second
	g := group(t, cfg, plain(s))
	var asking sync.WaitGroup
	for i := range burst {
		asking.Go(func() {
			if r, _ := mustAnswer(t, g, nameOf(i), wire.NoError); r.TC || r.Count(wire.Answer) != 1 {
				t.Errorf("%s: TC %v, %d answers", nameOf(i), r.TC, r.Count(wire.Answer))
			}
		})
	}
	asking.Wait()
}

func TestTruncatedIsReturnedWhenTCPFails(t *testing.T) {
	tests := map[string]func(*request){
		"reset":  func(r *request) { _ = r.stream.SetLinger(0); _ = r.stream.Close() },
		"closed": func(r *request) { _ = r.stream.Close() },
		"silent": silent,
		"garbage": func(r *request) {
			r.send([]byte("this is no DNS message at all"))
		},
		"another ID": func(r *request) {
			r.send(forgeries["another ID"].make(t, r.msg))
		},
		"another name": func(r *request) {
			r.send(forgeries["another name"].make(t, r.msg))
		},
	}
	for name, overTCP := range tests {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(r *request) {
				if r.tcp {
					overTCP(r)
				} else {
					r.reply(t, 0, truncated)
				}
			})
			cfg := inOrder
			if name == "silent" {
				cfg.Budget = 2 * time.Second
			}
			g := group(t, cfg, plain(s))
			r, took := mustAnswer(t, g, "name.test", wire.NoError)
			if !r.TC || took > soon {
				t.Errorf("TC %v after %v", r.TC, took)
			}
			if n := len(s.requests(true)); n != 1 {
				t.Errorf("asked %d times over TCP", n)
			}
			if ts := g.Status().Targets[0]; ts.Out || ts.InFlight != 0 {
				t.Errorf("target %+v", ts)
			}
		})
	}
	t.Run("no TCP address", func(t *testing.T) {
		s := serve(t, large(t))
		g := group(t, inOrder, upstream.Table{Last: []upstream.Member{{UDP: s.addr}}})
		if r, _ := mustAnswer(t, g, "a.test", wire.NoError); !r.TC {
			t.Error("TC is not set")
		}
	})
	t.Run("another server fails", func(t *testing.T) {
		s, other := serve(t, large(t)), serve(t, coded(t, 2))
		table := plain(s, other)
		table.Tiers[upstream.ClusterTier][0].TCP = deadTCP(t)
		g := group(t, inOrder, table)
		if r, _ := mustAnswer(t, g, "a.test", wire.NoError); !r.TC {
			t.Error("TC is not set")
		}
	})
	t.Run("another server has it", func(t *testing.T) {
		s, other := serve(t, large(t)), serve(t, large(t))
		m := s.member()
		m.TCP = deadTCP(t)
		table := plain(s, other)
		table.Tiers[upstream.ClusterTier][0] = m
		g := group(t, inOrder, table)
		if r, _ := mustAnswer(t, g, "a.test", wire.NoError); r.TC {
			t.Error("TC is set")
		}
	})
}

func deadTCP(t *testing.T) netip.AddrPort {
	s := serve(t, silent)
	s.stop()
	return s.addr
}

var forceTCP = upstream.Config{
	ForceTCP: true, Policy: upstream.Sequential, RetryMin: patient.RetryMin, RetryMax: patient.RetryMax,
	Budget: patient.Budget, PacketRate: patient.PacketRate,
}

func TestForceTCP(t *testing.T) {
	s := serve(t, good(t))
	g := group(t, forceTCP, plain(s))
	for range 5 {
		mustAnswer(t, g, "a.test", wire.NoError)
	}
	if n := len(s.requests(false)); n != 0 {
		t.Errorf("%d queries over UDP", n)
	}
	if st := g.Status(); st.Open != 1 || st.Targets[0].Sent != 5 {
		t.Errorf("status %+v", st)
	}
}

func TestTCPClosedAfterSomeQueries(t *testing.T) {
	tests := map[string]func(*net.TCPConn){
		"closed": func(c *net.TCPConn) { _ = c.Close() },
		"reset":  func(c *net.TCPConn) { _ = c.SetLinger(0); _ = c.Close() },
	}
	for name, end := range tests {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			served := map[uint16]int{}
			s := serve(t, func(r *request) {
				mu.Lock()
				defer mu.Unlock()
				// The third query of a connection finds it closed.
				if served[r.from.Port()]++; served[r.from.Port()] == 3 {
					end(r.stream)
					return
				}
				r.reply(t, 0)
			})
			g := group(t, forceTCP, plain(s))
			for range 10 {
				if _, took := mustAnswer(t, g, "a.test", wire.NoError); took > soon {
					t.Errorf("took %v", took)
				}
			}
			st := g.Status()
			if st.Retries != 0 || st.Targets[0].Out || st.Targets[0].HardErrors != 0 {
				t.Errorf("%d retries, suspect %v", st.Retries, st.Targets[0].Out)
			}
		})
	}
}

// TestTCPResetAtOnce has a server that accepts and resets.
func TestTCPResetAtOnce(t *testing.T) {
	s := serve(t, func(r *request) { _ = r.stream.SetLinger(0); _ = r.stream.Close() })
	cfg := forceTCP
	cfg.RetryMin, cfg.RetryMax = 20*time.Millisecond, 20*time.Millisecond
	g := group(t, cfg, plain(s))
	_, took, err := ask(t, g, "a.test")
	if !errors.Is(err, upstream.ErrFailed) || took > soon {
		t.Errorf("error %v after %v", err, took)
	}
	if n := uint64(s.count()); n > 3+g.Status().Probes {
		t.Errorf("asked %d times", n)
	}
}

func TestTCPRefusedGoesOnAtOnce(t *testing.T) {
	gone, alive := serve(t, silent), serve(t, good(t))
	gone.stop()
	g := group(t, forceTCP, plain(gone, alive))
	if _, took := mustAnswer(t, g, "a.test", wire.NoError); took > soon {
		t.Errorf("took %v", took)
	}
}

// TestTCPBlackHole has connections that swallow everything: they must not keep
// later queries, and must go.
func TestTCPBlackHole(t *testing.T) {
	s, alive := serve(t, silent), serve(t, good(t))
	cfg := forceTCP
	cfg.RetryMin, cfg.RetryMax, cfg.Budget = 20*time.Millisecond, 20*time.Millisecond, 3*time.Second
	g := group(t, cfg, plain(s, alive))
	waitFor(t, "the silent server is suspect", func() bool {
		mustAnswer(t, g, "a.test", wire.NoError)
		ts := g.Status().Targets[0]
		return ts.Suspect || ts.Out
	})
	waitFor(t, "it is out, and the dead connections close", func() bool {
		st := g.Status()
		return st.Targets[0].Out && st.Targets[0].InFlight == 0 && st.Open == 1
	})
}

func TestTCPIdleCloses(t *testing.T) {
	cfg := forceTCP
	cfg.TCPIdle = 50 * time.Millisecond
	g := group(t, cfg, plain(serve(t, good(t))))
	mustAnswer(t, g, "a.test", wire.NoError)
	waitFor(t, "the idle connection closes", func() bool { return g.Status().Open == 0 })
	mustAnswer(t, g, "b.test", wire.NoError)
}

func TestTCPAge(t *testing.T) {
	clk := newClock()
	cfg := forceTCP
	cfg.Now = clk.now
	s := serve(t, good(t))
	g := group(t, cfg, plain(s))
	mustAnswer(t, g, "a.test", wire.NoError)
	clk.move(2 * time.Minute)
	mustAnswer(t, g, "b.test", wire.NoError)
	seen := s.requests(true)
	if seen[0].from == seen[1].from {
		t.Error("an old connection was used")
	}
	waitFor(t, "the old connection closes", func() bool { return g.Status().Open == 1 })
}

// TestTCPDepth bounds what is in flight on connections.
func TestTCPDepth(t *testing.T) {
	var mu sync.Mutex
	inFlight, most := map[uint16]int{}, 0
	s := serve(t, func(r *request) {
		mu.Lock()
		port := r.from.Port()
		inFlight[port]++
		most = max(most, inFlight[port])
		mu.Unlock()
		time.Sleep(30 * time.Millisecond)
		mu.Lock()
		inFlight[port]--
		mu.Unlock()
		r.reply(t, 0)
	})
	cfg := forceTCP
	cfg.TCPConns, cfg.TCPDepth = 3, 2
	g := group(t, cfg, plain(s))
	var asking sync.WaitGroup
	for i := range 6 {
		asking.Go(func() { mustAnswer(t, g, nameOf(i), wire.NoError) })
	}
	asking.Wait()
	if most > 2 || len(inFlight) > 3 {
		t.Errorf("%d in flight on one of %d connections", most, len(inFlight))
	}
}

func TestTCPOnlyMember(t *testing.T) {
	s := serve(t, good(t))
	g := group(t, upstream.Config{}, upstream.Table{Last: []upstream.Member{{TCP: s.addr}}})
	mustAnswer(t, g, "a.test", wire.NoError)
	if len(s.requests(true)) != 1 {
		t.Error("not asked over TCP")
	}
}

// TestTCPBacklog lets questions pile up at a server that is slow to answer: what the
// connections have no room for is turned away, and nothing is left of all that.
func TestTCPBacklog(t *testing.T) {
	const asked, conns, depth = 500, 4, 4
	answer := make(chan struct{})
	s := serve(t, func(r *request) {
		<-answer
		r.reply(t, 0)
	})
	cfg := inOrder
	cfg.ForceTCP, cfg.TCPConns, cfg.TCPDepth, cfg.TCPIdle, cfg.Budget = true, conns, depth, 50*time.Millisecond, 8*time.Second
	g := group(t, cfg, plain(s))
	var (
		asking   sync.WaitGroup
		answered atomic.Int64
	)
	for i := range asked {
		asking.Go(func() {
			if _, _, err := ask(t, g, fmt.Sprintf("n%d.test", i)); err == nil {
				answered.Add(1)
			}
		})
	}
	waitFor(t, "the connections are full", func() bool {
		st := g.Status()
		return st.Exchanges == asked && st.Targets[0].InFlight == conns*depth
	})
	if open := g.Status().Open; open != conns {
		t.Errorf("%d connections", open)
	}
	close(answer)
	asking.Wait()
	if n := answered.Load(); n < conns*depth {
		t.Errorf("%d answered", n)
	}
	waitFor(t, "nothing is left of it", func() bool {
		st := g.Status()
		return st.Open == 0 && st.Targets[0].InFlight == 0
	})
}
