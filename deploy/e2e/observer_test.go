package e2e

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
	corev1 "k8s.io/api/core/v1"

	"github.com/nodens-dns/nodens/deploy/e2e/cluster"
	"github.com/nodens-dns/nodens/topology"
	"github.com/nodens-dns/nodens/topology/kube"
)

// patience is how long a table may take on a machine that is busy with other
// things; how long it does take is measured.
const patience = 30 * time.Second

// observer is what runs on a node: a source, a watcher, and the tables that
// came of them.
type observer struct {
	*topology.Watcher
	source  *kube.Source
	client  *kube.Client
	account *cluster.Account
	stage   *cluster.Stage
	witness *witness
	t       *testing.T
	news    chan struct{} // capacity 1
	delays  delays        // checked when the test ends

	mu     sync.Mutex
	tables []dated
	seen   int // tables before that were looked at; the test's own
}

type dated struct {
	topology.Table
	at time.Time
}

// setup changes how an observer is made.
type setup struct {
	account *cluster.Account
	server  string // URL
	source  kube.Config
	watcher topology.Config
}

// observe starts an observer on a node of the stage. It ends with the test.
func observe(t *testing.T, s *cluster.Stage, node, zone string, changes ...func(*setup)) *observer {
	t.Helper()
	o := &observer{stage: s, witness: newWitness(t, s), t: t, news: make(chan struct{}, 1)}
	start := time.Now()
	now := func() time.Duration { return time.Since(start) }
	log := zaptest.NewLogger(t, zaptest.Level(zap.InfoLevel))
	if node != "" {
		node = s.NodeName(node)
	}
	with := setup{
		server: shared.cluster.URL(),
		source: kube.Config{Namespace: s.Namespace, Now: now, Log: log},
		watcher: topology.Config{
			Self: topology.Self{Node: node, Zone: zone}, Rules: topology.Rules{Namespace: s.Namespace},
			Now: now, Log: log, Publish: o.publish,
		},
	}
	for _, change := range changes {
		change(&with)
	}
	if with.account == nil {
		with.account = s.Account("nodens")
		with.account.Grant(shippedRules(t, "rbac.yaml"))
	}
	o.account = with.account
	o.client = kube.NewClient(kube.API{Server: with.server, CAFile: shared.cluster.CAFile(), TokenFile: with.account.TokenFile})
	with.source.Client = o.client
	o.start(with)
	t.Cleanup(func() { o.delays.check(t) })
	return o
}

func (o *observer) start(with setup) {
	o.t.Helper()
	var err error
	if o.Watcher, err = topology.New(with.watcher); err != nil {
		o.t.Fatal(err)
	}
	if o.source, err = kube.New(with.source); err != nil {
		o.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = o.Watcher.Run(ctx) })
	running.Go(func() {
		if err := o.source.Run(ctx, o.Watcher); err != nil {
			o.t.Errorf("the source ended: %v", err)
		}
	})
	o.t.Cleanup(func() {
		cancel()
		running.Wait()
		o.client.Close()
		if o.t.Failed() {
			o.t.Logf("source: %+v", o.source.Status())
		}
	})
}

func (o *observer) publish(table topology.Table) {
	o.mu.Lock()
	o.tables = append(o.tables, dated{table, time.Now()})
	o.mu.Unlock()
	select {
	case o.news <- struct{}{}:
	default:
	}
}

// latest returns the table in force.
func (o *observer) latest() (dated, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.tables) == 0 {
		return dated{}, false
	}
	return o.tables[len(o.tables)-1], true
}

// since returns the tables that were published since the last call.
func (o *observer) since() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	texts := []string{}
	for _, table := range o.tables[o.seen:] {
		texts = append(texts, o.brief(&table.Table))
	}
	o.seen = len(o.tables)
	return texts
}

// expect waits for a table, as brief writes it, that was published after the
// last change of the stage, and returns how long after.
func (o *observer) expect(want string) time.Duration {
	o.t.Helper()
	return o.until(want, patience, o.is(want))
}

// is compares a table with what brief writes.
func (o *observer) is(want string) func(*topology.Table) bool {
	return func(table *topology.Table) bool { return o.brief(table) == want }
}

// measured is expect for a change that the API was told of just now.
func (o *observer) measured(want string) {
	o.t.Helper()
	o.measure(want, o.is(want))
}

// measure waits for a table and adds the time it took.
func (o *observer) measure(what string, good func(*topology.Table) bool) {
	o.t.Helper()
	change := o.stage.Changed()
	whole := o.until(what, patience, good)
	own := change.Add(whole).Sub(o.witness.since(change))
	o.delays.add(delay{whole: whole, own: max(0, own)})
}

func (o *observer) until(what string, limit time.Duration, good func(*topology.Table) bool) time.Duration {
	o.t.Helper()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	for {
		table, ok := o.latest()
		if ok && table.at.After(o.stage.Changed()) && good(&table.Table) {
			return table.at.Sub(o.stage.Changed())
		}
		select {
		case <-o.news:
		case <-deadline.C:
			o.t.Fatalf("no table %s within %v, but %s (%s before the last change)", what, limit, o.brief(&table.Table), o.stage.Changed().Sub(table.at))
		}
	}
}

// stays wants no new table for a while.
func (o *observer) stays(while time.Duration) {
	o.t.Helper()
	before, _ := o.latest()
	time.Sleep(while)
	if after, _ := o.latest(); after.at != before.at {
		o.t.Fatalf("a new table: %s, before %s", o.brief(&after.Table), o.brief(&before.Table))
	}
}

// brief says "node|zone|cluster|last" with the names of pods; ~ is for draining
// and ! for not ready.
func (o *observer) brief(table *topology.Table) string {
	var parts []string
	for _, tier := range [][]topology.Member{table.Tiers[0], table.Tiers[1], table.Tiers[2], table.Last} {
		var names []string
		for _, m := range tier {
			mark := [...]string{topology.Ready: "", topology.Draining: "~", topology.NotReady: "!"}[m.State]
			names = append(names, strings.TrimPrefix(m.Pod, o.stage.Namespace+"/")+mark)
		}
		parts = append(parts, strings.Join(names, " "))
	}
	return strings.Join(parts, "|")
}

// waitFor waits until something is true that no table shows.
func waitFor(t *testing.T, what string, limit time.Duration, ask func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !ask(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, limit)
		}
	}
}

// step is a change and the table it leads to.
type step struct {
	do   func()
	want string
}

// play makes the changes one after the other and wants every table soon.
func (o *observer) play(steps []step) {
	o.t.Helper()
	for i, s := range steps {
		s.do()
		o.t.Logf("step %d: %s", i, s.want)
		o.measured(s.want)
	}
}

// standard is a stage with the nodes n1 and n2 in zone za and n3 in zb, and a
// ready pod on each: a1, a2 and a3. The observer is on n1.
func standard(t *testing.T, service ...func(*corev1.Service)) (*cluster.Stage, *observer) {
	t.Helper()
	s := stage(t)
	s.AddNode("n1", "za")
	s.AddNode("n2", "za")
	s.AddNode("n3", "zb")
	s.AddService(service...)
	s.AddReadyPod("a1", "n1")
	s.AddReadyPod("a2", "n2")
	s.AddReadyPod("a3", "n3")
	o := observe(t, s, "n1", "za")
	o.expect("a1|a2|a3|")
	o.since()
	return s, o
}

// never wants none of the tables published since the last look to be like this.
func (o *observer) never(what string, bad func(table string) bool) {
	o.t.Helper()
	list := o.since()
	if i := slices.IndexFunc(list, bad); i >= 0 {
		o.t.Errorf("%s: %s", what, list[i])
	}
}
