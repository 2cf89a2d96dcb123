package main

import (
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nodens-dns/nodens/bench/load"
)

// demoView shows a demonstration: a picture that is drawn anew every second on
// a terminal, a line a second anywhere else, and the report at the end.
type demoView struct {
	out      io.Writer
	cluster  *demoCluster
	phases   []demoPhase
	snapshot func() snapshot
	live     bool // out is a terminal

	mu    sync.Mutex // the script speaks while the seconds are drawn
	drawn int        // lines of the picture on the screen
	last  demoSums
	rows  []demoRow
	// unseen are the failures of the local server before which it had no share.
	unseen []string
}

// demoSums is what was counted since the start.
type demoSums struct {
	totals
	tiers [3]uint64 // replies to the cluster route by tier
}

// demoRow is one second, or one phase.
type demoRow struct {
	phase string
	demoSums
	lost uint64
	load load.Second
}

func newDemoView(out io.Writer, c *demoCluster, phases []demoPhase, snap func() snapshot) *demoView {
	return &demoView{out: out, cluster: c, phases: phases, snapshot: snap, live: isTerminal(out)}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// sums reads the daemon's counters.
func (v *demoView) sums() demoSums {
	s := v.snapshot()
	sums := demoSums{totals: totalsOf(s.At, s.Forwarder)}
	copy(sums.tiers[:], s.Routes[0].Servers.Served[:])
	return sums
}

func (s demoSums) since(before demoSums) demoSums {
	s.totals = s.totals.since(before.totals)
	for i := range s.tiers {
		s.tiers[i] -= before.tiers[i]
	}
	return s
}

func (s *demoSums) add(more demoSums) {
	for i := range s.bySource {
		s.bySource[i] += more.bySource[i]
	}
	for i := range s.tiers {
		s.tiers[i] += more.tiers[i]
	}
}

// tierShares are percentages.
func (s demoSums) tierShares() [3]float64 {
	all, out := float64(sumOf(s.tiers[:])), [3]float64{}
	for i := range out {
		if all > 0 {
			out[i] = 100 * float64(s.tiers[i]) / all
		}
	}
	return out
}

func (v *demoView) begin(address netip.AddrPort, rate float64, length time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	fmt.Fprintf(v.out, `nodens on node n1, zone za, listening on %v; %.0f queries a second for %v.
Pods look up 2000 services and 2000 names outside, with the search list of ndots:5.

  pods --> nodens --+--> coredns-1  node n1, zone za  %v
          (cache)   +--> coredns-2  node n2, zone za  %v
                    +--> coredns-3  node n3, zone zb  %v
                    +--> a resolver for all other names

`, address, rate, length, v.cluster.endpoints[0].server.Addr(), v.cluster.endpoints[1].server.Addr(), v.cluster.endpoints[2].server.Addr())
	v.last = v.sums()
}

// step says what happens now.
func (v *demoView) step(text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.erase()
	fmt.Fprintf(v.out, "  * %s\n", text)
}

// struck takes note of a failure of the local server; before is what was counted
// in the second that led to it.
func (v *demoView) struck(how string, before demoSums) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if before.tiers[0] == 0 {
		v.unseen = append(v.unseen, how)
	}
}

// second takes the last second in; the load calls it.
func (v *demoView) second(p load.Progress) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.sums()
	row := demoRow{phase: p.Phase, demoSums: now.since(v.last), lost: p.Total.Lost, load: p.Last}
	v.last = now
	v.rows = append(v.rows, row)
	if v.live {
		v.erase()
		v.draw(row, p.At)
		return
	}
	s := row.tierShares()
	fmt.Fprintf(v.out, "%4.0fs %-9s %5d sent  hits %3.0f %%  misses from node %3.0f %% zone %3.0f %% cluster %3.0f %%  p50 %s p99 %s  lost %d\n",
		p.At.Seconds(), p.Phase, p.Last.Counts.Sent, 100*row.hitRatio(), s[0], s[1], s[2],
		milliseconds(p.Last.Latency.P50), milliseconds(p.Last.Latency.P99), p.Total.Lost)
}

// erase takes the picture off the screen.
func (v *demoView) erase() {
	if v.drawn > 0 {
		fmt.Fprintf(v.out, "\x1b[%dA\x1b[J", v.drawn)
		v.drawn = 0
	}
}

// draw draws the picture and remembers its height.
func (v *demoView) draw(row demoRow, at time.Duration) {
	var b strings.Builder
	fmt.Fprintf(&b, "\n  %3.0f s  \x1b[1m%s\x1b[0m: %d queries in the last second, %.0f %% from the cache, %d lost so far\n",
		at.Seconds(), row.phase, row.load.Counts.Sent, 100*row.hitRatio(), row.lost)
	fmt.Fprintf(&b, "         latency p50 %s, p99 %s, max %s\n",
		milliseconds(row.load.Latency.P50), milliseconds(row.load.Latency.P99), milliseconds(row.load.Latency.Max))
	shares, conditions := row.tierShares(), v.cluster.conditions()
	for i, e := range v.cluster.endpoints {
		fmt.Fprintf(&b, "  %-8s %s on %s/%s  %s %3.0f %%  API: %s\n",
			[...]string{"node", "zone", "cluster"}[i], e.Pod, e.Node, e.Zone, bar(shares[i], 30), shares[i], conditions[i])
	}
	_, _ = io.WriteString(v.out, b.String())
	v.drawn = strings.Count(b.String(), "\n")
}

func bar(percent float64, width int) string {
	n := int(percent*float64(width)/100 + 0.5)
	return strings.Repeat("█", n) + strings.Repeat("·", width-n)
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
}

// end prints the report: a table of the phases, then the whole.
func (v *demoView) end(r *load.Report) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.erase()
	fmt.Fprintln(v.out)
	t := tabwriter.NewWriter(v.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "phase\tqueries\tlost\tSERVFAIL\twrong\tover 1 s\thits %\tnode %\tzone %\tcluster %\tp50 ms\tp90 ms\tp99 ms\tmax ms\t")
	var whole demoSums
	for _, p := range r.Phases {
		sums := v.phase(p.Name)
		whole.add(sums)
		writePhase(t, p.Name, p.Counts, p.Latency, sums)
	}
	writePhase(t, "total", r.Total, r.Latency, whole)
	_ = t.Flush() // to the screen
	fmt.Fprintf(v.out, `
Node, zone and cluster are the shares of the misses below cluster.local by where
the answering server is. %d queries were sent, one datagram each: nothing was
sent twice by the clients. %d lost, %d SERVFAIL, %d wrong.
`, r.Total.Sent, r.Total.Lost, r.Total.ServFail, r.Total.Wrong)
	for _, how := range v.unseen {
		fmt.Fprintf(v.out, "The %s proved nothing: in the second before, the server on the node had no share.\n", how)
	}
	for _, e := range r.Examples {
		fmt.Fprintln(v.out, e)
	}
	if r.Generator.Bottleneck != "" {
		fmt.Fprintf(v.out, "The latencies are not the daemon's alone: %s.\n", r.Generator.Bottleneck)
	}
}

// phase adds up the seconds of a phase.
func (v *demoView) phase(name string) demoSums {
	var sums demoSums
	for _, row := range v.rows {
		if row.phase == name {
			sums.add(row.demoSums)
		}
	}
	return sums
}

func writePhase(w io.Writer, name string, c load.Counts, l load.Percentiles, sums demoSums) {
	s := sums.tierShares()
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%.1f\t%.1f\t%.1f\t%.1f\t%.2f\t%.2f\t%.2f\t%.2f\t\n",
		name, c.Sent, c.Lost, c.ServFail, c.Wrong, c.Late, 100*sums.hitRatio(), s[0], s[1], s[2],
		ms(l.P50), ms(l.P90), ms(l.P99), ms(l.Max))
}

// keep says where to look while the daemon goes on.
func (v *demoView) keep(dns netip.AddrPort, admin any) {
	fmt.Fprintf(v.out, `
Still serving; interrupt to end. Try:
  dig @%[1]v -p %[2]d kubernetes.default.svc.cluster.local
  curl http://%[3]s/statusz
`, dns.Addr(), dns.Port(), admin)
}
