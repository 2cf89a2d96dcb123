package e2e

import (
	"context"
	"os"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/nodens-dns/nodens/deploy/e2e/cluster"
	"github.com/nodens-dns/nodens/topology"
	"github.com/nodens-dns/nodens/topology/kube"
)

// soonBack is how long an observer may take after the API is there again. Its
// longest wait between attempts is 10 s, and the library may add as much when a
// connection is refused.
const soonBack = 25 * time.Second

// through puts a proxy between an observer and the API server.
func through(t *testing.T) (*cluster.Proxy, func(*setup)) {
	t.Helper()
	proxy, err := cluster.NewProxy(shared.cluster.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	return proxy, func(with *setup) { with.server = "https://" + proxy.Address() }
}

func (o *observer) fault() kube.Fault { return o.source.Status().Fault }

func (o *observer) waitForFault(want kube.Fault) {
	o.t.Helper()
	waitFor(o.t, "fault "+want.String(), patience, func() bool { return o.fault() == want })
	status := o.source.Status()
	if want != kube.None && status.LastError == "" {
		o.t.Error("no reason is given")
	}
}

// away is a stage with an observer behind a proxy, which can be cut off.
func away(t *testing.T, changes ...func(*setup)) (*cluster.Stage, *cluster.Proxy, *observer) {
	t.Helper()
	s := stage(t)
	s.AddNode("n1", "za")
	s.AddNode("n2", "za")
	s.AddService()
	s.AddReadyPod("a1", "n1")
	s.AddReadyPod("a2", "n2")
	proxy, via := through(t)
	o := observe(t, s, "n1", "za", append(changes, via)...)
	o.expect("a1|a2||")
	return s, proxy, o
}

// roll replaces a1 by b1.
func roll(s *cluster.Stage) {
	s.AddReadyPod("b1", "n1")
	s.Terminate("a1")
	s.Remove("a1")
}

func TestAPIIsStoppedAndStarted(t *testing.T) {
	outage := 20 * time.Second
	if text := os.Getenv("NODENS_E2E_OUTAGE"); text != "" {
		var err error
		if outage, err = time.ParseDuration(text); err != nil {
			t.Fatalf("NODENS_E2E_OUTAGE: %v", err)
		}
	}
	s, proxy, o := away(t)
	direct := observe(t, s, "n1", "za", func(with *setup) {
		with.account = s.Account("direct")
		with.account.Grant(shippedRules(t, "rbac.yaml"))
	})
	direct.expect("a1|a2||")

	proxy.Down()
	roll(s) // what one observer cannot see any more
	direct.measured("b1|a2||")
	shared.cluster.StopAPI()
	direct.waitForFault(kube.Unreachable)
	o.waitForFault(kube.Unreachable)
	before, _ := direct.latest()
	o.stays(outage)
	if after, _ := direct.latest(); after.at != before.at {
		t.Errorf("a table while the API was away: %s", direct.brief(&after.Table))
	}
	if age := direct.source.Status().FailingFor; age < outage {
		t.Errorf("failing for %v only", age)
	}
	if err := shared.cluster.StartAPI(t.Context()); err != nil {
		t.Fatal(err)
	}
	up := time.Now()
	if err := shared.cluster.RestartControllers(); err != nil {
		t.Fatal(err)
	}
	proxy.Up()
	o.until("b1|a2||", soonBack, o.is("b1|a2||"))
	t.Logf("caught up %v after the API was back", time.Since(up).Round(time.Millisecond))
	s.Ready("a2", false)
	direct.expect("b1|||a2!")
	o.expect("b1|||a2!")
	direct.waitForFault(kube.None)
}

func TestAPIIsUnreachableForAWhile(t *testing.T) {
	s, proxy, o := away(t)
	proxy.Down()
	roll(s)
	o.waitForFault(kube.Unreachable)
	o.stays(3 * time.Second)
	proxy.Up()
	o.until("b1|a2||", soonBack, o.is("b1|a2||"))
	o.waitForFault(kube.None)
}

// The network drops every packet of the watch and tells nobody.
func TestWatchIsDroppedInSilence(t *testing.T) {
	s, proxy, o := away(t)
	proxy.Freeze()
	s.Terminate("a1")
	took := o.until("|a2||a1~", 25*time.Second, o.is("|a2||a1~"))
	t.Logf("noticed after %v", took.Round(time.Millisecond))
	if took > 20*time.Second {
		t.Errorf("noticed only after %v", took)
	}
}

// While an observer is away, the history that it would go on from is forgotten.
func TestHistoryIsCompacted(t *testing.T) {
	s, proxy, o := away(t)
	version := s.EndpointSlices()[0].ResourceVersion
	proxy.Down()
	roll(s)
	o.waitForFault(kube.Unreachable)
	for range 3 { // more history
		s.Ready("a2", false)
		s.Ready("a2", true)
	}
	time.Sleep(time.Second) // the controller has written the last
	if err := shared.cluster.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	shared.cluster.StopAPI() // it remembers a while by itself
	if err := shared.cluster.StartAPI(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := shared.cluster.RestartControllers(); err != nil {
		t.Fatal(err)
	}
	refusesOldVersion(t, s, version)
	lists := o.source.Status().Counters.Lists
	proxy.Up()
	o.until("b1|a2||", soonBack, o.is("b1|a2||"))
	if now := o.source.Status().Counters.Lists; now <= lists {
		t.Errorf("%d lists, as before: what was tested?", now)
	}
	s.Ready("a2", false)
	o.expect("b1|||a2!")
}

// refusesOldVersion makes sure that the test is about what it says.
func refusesOldVersion(t *testing.T, s *cluster.Stage, version string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	w, err := shared.cluster.Admin.DiscoveryV1().EndpointSlices(s.Namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: version})
	if err == nil {
		defer w.Stop()
		event := <-w.ResultChan()
		if event.Type != watch.Error {
			t.Fatalf("a watch from an old version begins with %s", event.Type)
		}
		err = apierrors.FromObject(event.Object)
	}
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		t.Fatalf("a watch from an old version gets %v", err)
	}
}

func TestTokenExpiresAndIsRotated(t *testing.T) {
	s := stage(t)
	s.AddNode("n1", "za")
	s.AddNode("n2", "za")
	s.AddService()
	s.AddReadyPod("a1", "n1")
	s.AddReadyPod("a2", "n2")
	proxy, via := through(t)
	account := s.Account("nodens")
	account.Grant(shippedRules(t, "rbac.yaml"))
	o := observe(t, s, "n1", "za", via, func(with *setup) { with.account = account; with.source.RefusedMax = 10 * time.Second })
	o.expect("a1|a2||")

	account.Expire()
	waitFor(t, "the server refuses the token", patience, func() bool { return !account.Accepted() })
	proxy.Down() // an open watch goes on
	roll(s)
	proxy.Up()
	o.waitForFault(kube.Unauthorized)
	o.stays(2 * time.Second)
	account.Rotate()
	o.until("b1|a2||", soonBack, o.is("b1|a2||"))
	o.waitForFault(kube.None)
}

func TestPermissionIsMissingThenGranted(t *testing.T) {
	s := stage(t)
	s.AddNode("n1", "za")
	s.AddService()
	s.AddReadyPod("a1", "n1")
	proxy, via := through(t)
	account := s.Account("nodens")
	o := observe(t, s, "n1", "za", via, func(with *setup) {
		with.account = account
		with.source.RetryMax = 3 * time.Second
		with.source.RefusedMax = 3 * time.Second
	})
	o.waitForFault(kube.Forbidden)
	if tables := o.since(); len(tables) > 0 {
		t.Errorf("tables without permission: %q", tables)
	}
	account.Grant(shippedRules(t, "rbac.yaml"))
	o.until("a1|||", soonBack, o.is("a1|||"))
	o.waitForFault(kube.None)

	account.Revoke()
	proxy.Down()
	proxy.Up()
	o.waitForFault(kube.Forbidden)
	s.Ready("a1", false)
	o.stays(time.Second)
	account.Restore()
	o.until("|||a1!", soonBack, o.is("|||a1!"))
}

// A node that starts while the API is away serves what an earlier run kept.
func TestStartWithoutTheAPI(t *testing.T) {
	s, proxy, o := away(t)
	folder := t.TempDir()
	first := keep(t, s, o, folder)
	waitFor(t, "the endpoints are kept", patience, func() bool { return first.Stats().Saves > 0 })
	proxy.Down()
	roll(s)

	began := time.Now()
	late := observe(t, s, "n1", "", func(with *setup) {
		with.account = o.account
		with.server = "https://" + proxy.Address()
	})
	keep(t, s, late, folder)
	waitFor(t, "a table", patience, func() bool { _, ok := late.latest(); return ok })
	table, _ := late.latest()
	if took := table.at.Sub(began); took > time.Second || late.brief(&table.Table) != "a1|a2||" {
		t.Errorf("%s after %v", late.brief(&table.Table), took)
	}
	late.waitForFault(kube.Unreachable)
	proxy.Up()
	late.until("b1|a2||", soonBack, late.is("b1|a2||"))
}

// keep keeps the endpoints of an observer in a folder, and restores what is
// there.
func keep(t *testing.T, s *cluster.Stage, o *observer, folder string) *topology.Keeper {
	t.Helper()
	api := kube.API{CAFile: shared.cluster.CAFile()}
	keeper, err := topology.NewKeeper(topology.KeeperConfig{
		Watcher: o.Watcher, Folder: folder, Cluster: api.Cluster, Namespace: s.Namespace, Every: 50 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = keeper.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return keeper
}
