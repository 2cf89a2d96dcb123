package neverdark

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nodens-dns/nodens/bench/load"
	"github.com/nodens-dns/nodens/bench/space"
)

// stream is a load and where it comes from.
type stream struct {
	name  string
	from  space.Space
	share float64 // of the rate
	cfg   load.Config
}

// fromPods are the streams of pods at an address of each family: from 64 sockets that
// keep their ports, with a port for each query, and a connection for each query. The
// last two cost those who ask much more than those who answer, so that a full run, for
// which both have the same CPUs, has fewer of them.
func (n *node) fromPods(four, six string) []stream {
	return []stream{
		{"pods, fixed ports", n.Bridged, space.Form(0.48, 0.74), load.Config{Target: at(four), Transport: load.UDP, Sockets: 64}},
		{"pods, fresh ports", n.Routed, space.Form(0.48, 0.25), load.Config{Target: at(six), Transport: load.UDP, FreshPorts: true}},
		{"pods, TCP", n.Routed, space.Form(0.02, 0.005), load.Config{Target: at(four), Transport: load.TCPEach}},
		{"pods, TCP over IPv6", n.Bridged, space.Form(0.02, 0.005), load.Config{Target: at(six), Transport: load.TCPEach}},
	}
}

// fromNode is the stream of a host-network pod.
func (n *node) fromNode(four string) stream {
	return stream{"node", n.Space, 0.1, load.Config{Target: at(four), Transport: load.UDP, Sockets: 64}}
}

// traffic is streams under way.
type traffic struct {
	n       *node
	streams []stream
	runs    []*load.Run
	got     []*load.Report
	ends    context.CancelFunc
	done    sync.WaitGroup
	dropped drops // before

	outlived []time.Duration // of processes that were there longer than a moment after their kill
}

// ask starts streams. Queries have five seconds.
func (n *node) ask(streams ...stream) *traffic {
	n.t.Helper()
	tr := &traffic{n: n, streams: streams, got: make([]*load.Report, len(streams)), dropped: n.drops()}
	for i, s := range streams {
		names := n.mix.Flat(uint64(i + 1))
		s.cfg.Source = func(int) load.Source { return names }
		s.cfg.AllowRemote = true
		s.cfg.Stages = []load.Stage{load.Steady("begin", rate()*s.share, 0)}
		s.cfg.Enter = func() error { return unix.Setns(s.from.FD(), unix.CLONE_NEWNET) }
		var run *load.Run
		s.from.In(n.t, func() (err error) { run, err = load.New(s.cfg); return err })
		tr.runs = append(tr.runs, run)
	}
	ctx, cancel := context.WithCancel(context.Background())
	tr.ends = cancel
	for i, run := range tr.runs {
		tr.done.Go(func() { tr.got[i], _ = run.Run(ctx) }) // its only error is being run twice
	}
	n.t.Cleanup(func() { cancel(); tr.done.Wait() })
	return tr
}

// mark begins a phase.
func (tr *traffic) mark(phase string) {
	for _, run := range tr.runs {
		run.Mark(phase)
	}
}

// stop ends the traffic and waits for what is in flight.
func (tr *traffic) stop() *traffic {
	tr.ends()
	tr.done.Wait()
	return tr
}

// counts adds up what happened in the phases whose names begin so, in the streams
// whose names begin so.
func (tr *traffic) counts(stream, phase string) (c load.Counts) {
	for i, r := range tr.got {
		if !strings.HasPrefix(tr.streams[i].name, stream) {
			continue
		}
		for _, p := range r.Phases {
			if strings.HasPrefix(p.Name, phase) {
				c.Sent += p.Counts.Sent
				c.Right += p.Counts.Right
				c.Late += p.Counts.Late
				c.Wrong += p.Counts.Wrong + p.Counts.Truncated
				c.ServFail += p.Counts.ServFail
				c.Lost += p.Counts.Lost
			}
		}
	}
	return c
}

// expectNone asserts that a stream lost nothing in a phase.
func (tr *traffic) expectNone(stream, phase string) {
	tr.n.t.Helper()
	tr.expectAtMost(stream, phase, 0)
}

// expectAtMost asserts that a stream lost at most so many queries in a phase, and
// that none failed or was answered wrong.
func (tr *traffic) expectAtMost(stream, phase string, lost uint64) {
	tr.n.t.Helper()
	c := tr.counts(stream, phase)
	if tr.starved() && c.Wrong == 0 {
		tr.n.t.Logf("not judged, the machine is too busy: %s, phase %q: %d of %d lost, %d SERVFAIL; %s", stream, phase, c.Lost, c.Sent, c.ServFail, tr.remarks())
		return
	}
	drops := tr.n.drops()
	lost += drops.behind - tr.dropped.behind // CoreDNS had no CPU
	if !space.Full() {
		lost += drops.here - tr.dropped.here
	}
	if c.Sent == 0 {
		tr.n.t.Errorf("%s asked nothing in phase %q", stream, phase)
	}
	if c.Lost > lost || c.Wrong+c.ServFail > 0 {
		tr.n.t.Errorf("%s, phase %q: %d of %d lost, want at most %d; %d wrong, %d SERVFAIL", stream, phase, c.Lost, c.Sent, lost, c.Wrong, c.ServFail)
		tr.explain()
	}
}

// explain shows who may have lost what, and when.
func (tr *traffic) explain() {
	tr.n.t.Log(tr.remarks())
	for i, r := range tr.got {
		for _, p := range r.Phases {
			if c := p.Counts; c.Lost+c.Wrong+c.ServFail > 0 {
				tr.n.t.Logf("%s, phase %s from %v: %d sent, %d lost, %d wrong, %d SERVFAIL", tr.streams[i].name, p.Name, p.Start.Round(time.Millisecond), c.Sent, c.Lost, c.Wrong, c.ServFail)
			}
		}
		for _, text := range r.Examples {
			tr.n.t.Log(text)
		}
	}
}

// remarks says what the loads and the kernel dropped themselves.
func (tr *traffic) remarks() string {
	var overflow, unsent, broken uint64
	var lag time.Duration
	for _, r := range tr.got {
		overflow += r.Generator.Overflow
		unsent += r.Generator.Unsent
		broken += r.Generator.Broken
		lag = max(lag, r.Generator.Lag.P99)
	}
	drops := tr.n.drops()
	return fmt.Sprintf("UdpRcvbufErrors +%d, in the pods that answer +%d; load: %d overflowed, %d unsent, %d connections broken, left %v late (p99)",
		drops.here-tr.dropped.here, drops.behind-tr.dropped.behind, overflow, unsent, broken, lag.Round(10*time.Microsecond))
}

// starved tells whether the machine was too busy with other things to say anything
// about a nodens: queries left late. A full run is never excused.
func (tr *traffic) starved() bool {
	var late time.Duration
	for _, r := range tr.got {
		late = max(late, r.Generator.Lag.P99)
	}
	return !space.Full() && late > 100*time.Millisecond
}

// drops is how many datagrams the kernel dropped because a receive buffer was full: on
// the node and in the pods that ask, and in those that answer.
type drops struct{ here, behind uint64 }

func (n *node) drops() drops {
	return drops{n.rcvbufErrors(n.Space, n.Bridged, n.Routed), n.rcvbufErrors(n.Answers, n.FarAnswers)}
}

func (n *node) rcvbufErrors(where ...space.Space) (sum uint64) {
	for _, s := range where {
		s.In(n.t, func() error {
			for _, file := range []string{"snmp", "snmp6"} {
				data, err := os.ReadFile("/proc/thread-self/net/" + file)
				if err != nil {
					return err
				}
				sum += space.UDPCounter(string(data), "RcvbufErrors")
			}
			return nil
		})
	}
	return sum
}
