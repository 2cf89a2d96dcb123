package proof

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/bench/load"
	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/bench/world"
)

// A CoreDNS that may use so much of one CPU bears a known number of queries, on a
// machine whose CPUs all nodes share. The period is short: a process that has used
// up its part is silent until the next begins.
const (
	quotaPart   = 0.1
	quotaPeriod = 10 * time.Millisecond
)

// quotaGroup makes a cgroup that may use a part of one CPU. The test is skipped where
// there can be none.
func quotaGroup(t *testing.T, name string) (procs string) {
	t.Helper()
	space.Needs(t, "root", os.Geteuid() == 0)
	period, part := int(quotaPeriod.Microseconds()), int(quotaPart*float64(quotaPeriod.Microseconds()))
	root, settings := "/sys/fs/cgroup/cpu", map[string]string{"cpu.cfs_period_us": strconv.Itoa(period), "cpu.cfs_quota_us": strconv.Itoa(part)}
	if _, err := os.Stat(filepath.Join(root, "cpu.cfs_quota_us")); err != nil { // the second version
		if _, err := os.Stat(filepath.Join(root, "tasks")); err != nil {
			root, settings = "/sys/fs/cgroup", map[string]string{"cpu.max": fmt.Sprintf("%d %d", part, period)}
		}
	}
	group := filepath.Join(root, fmt.Sprintf("nodens-proof-%d-%s", os.Getpid(), name))
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Skipf("needs cgroups: %v", err)
	}
	t.Cleanup(func() {
		waitFor(t, "the end of a cgroup", 30*time.Second, func() bool { return os.Remove(group) == nil })
	})
	for file, value := range settings {
		if err := os.WriteFile(filepath.Join(group, file), []byte(value), 0o600); err != nil {
			t.Skipf("needs a quota of CPU time: %v", err)
		}
	}
	return filepath.Join(group, "cgroup.procs")
}

// bootBounded makes a ready pod on each node whose CoreDNS has a quota of CPU time.
func (c *cluster) bootBounded() {
	c.t.Helper()
	var groups []string
	for node := 1; node <= 3; node++ {
		groups = append(groups, quotaGroup(c.t, fmt.Sprintf("n%d", node)))
	}
	c.boot(1, 2, 3)
	for i, procs := range groups {
		if err := os.WriteFile(procs, []byte(strconv.Itoa(c.pods[i].process.PID())), 0o600); err != nil {
			c.t.Fatal(err)
		}
	}
}

// inTime is how soon a server that is not overloaded answers, all but one in a hundred:
// several of the periods in which it is silent for nine tenths.
const inTime = 5 * quotaPeriod

// capacity is how many misses a second a pod's CoreDNS bears: the highest of some rates
// at which it answers in time. Where some always wait it answers more, by half and above,
// as it need not wake up for each.
func (c *cluster) capacity(p *pod) (rate float64) {
	c.t.Helper()
	most := c.saturated(p)
	for rate = most; rate > most/4; rate *= 0.85 {
		got := c.askAlone(p, load.Steady("", rate, space.Form(time.Second, 3*time.Second)), 0)
		if got.Total.Lost == 0 && got.Latency.P99 < inTime {
			break
		}
	}
	c.t.Logf("one CoreDNS with %.0f %% of a CPU answers %.0f queries a second, %.0f when some always wait", 100*quotaPart, rate, most)
	return rate
}

// saturated is how many misses a second a pod's CoreDNS answers when it always has
// some to answer.
func (c *cluster) saturated(p *pod) float64 {
	c.t.Helper()
	return c.askAlone(p, load.Stage{For: space.Form(2*time.Second, 5*time.Second)}, 32).Answers
}

// askAlone asks one pod for misses, past nodens.
func (c *cluster) askAlone(p *pod, stage load.Stage, outstanding int) *load.Report {
	c.t.Helper()
	unheard, err := world.NewUnheard(c.mix, nextSequence())
	if err != nil {
		c.t.Fatal(err)
	}
	run, err := load.New(load.Config{
		Target: p.at, AllowRemote: true, Source: func(int) load.Source { return unheard }, Transport: load.UDP,
		Stages: []load.Stage{stage}, Outstanding: outstanding, Timeout: time.Second,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	report, err := run.Run(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return report
}

// view is which of the cluster's endpoints nodens is shown, and how.
type view struct {
	name string
	of   func(node int, e shownEndpoint) (shownEndpoint, bool)
}

// views are the choices that the simulation compared: the nearest with what it has
// too much handed on, the node's own whatever comes, and any of all.
func views() []view {
	return []view{
		{"nearest first", nil},
		{"the node's own alone", func(node int, e shownEndpoint) (shownEndpoint, bool) { return e, e.Node == fmt.Sprintf("n%d", node) }},
		{"any", func(_ int, e shownEndpoint) (shownEndpoint, bool) {
			e.Node, e.Zone, e.Hinted = "", "", false
			return e, true
		}},
	}
}

// TestBoundedCoreDNS repeats TestOverload with real CoreDNS, each with a part of a
// CPU; at full length also without any preference and without any choice, which
// are figures to compare with.
func TestBoundedCoreDNS(t *testing.T) {
	loads := []struct {
		name  string
		part  [4]float64
		local float64
	}{
		{"one node at 160 %", [4]float64{1: 1.6, 2: 0.2, 3: 0.2}, 0.5},
		{"all at 60 %", [4]float64{1: 0.6, 2: 0.6, 3: 0.6}, 0.97},
	}
	for _, tt := range loads[:space.Form(1, len(loads))] {
		for _, v := range views()[:space.Form(1, len(views()))] {
			t.Run(tt.name+", "+v.name, func(t *testing.T) {
				o := offerBounded(t, tt.part, v)
				figure("CoreDNS with a quota, "+tt.name, "loopback, "+v.name, o.traffics, "%s; capacity %.0f/s", o.words(), o.capacity)
				if v.of != nil {
					return
				}
				o.judge(t, tt.local)
			})
		}
	}
}

// offerBounded offers each node a part of what its CoreDNS bears.
func offerBounded(t *testing.T, part [4]float64, v view) (o overload) {
	t.Helper()
	c := newCluster(t, newLoopback(t), mustMix(t, 0))
	c.view = v.of
	c.bootBounded()
	spare := c.pods[2]
	o.capacity = c.capacity(spare)
	before := c.saturated(spare)
	o.load(c, part, nil)
	after := c.saturated(spare)
	o.unsteady = after < 0.8*before || after > 1.25*before
	return o
}
