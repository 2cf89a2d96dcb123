package topology_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nodens-dns/nodens/topology"
)

// life is one run of a Watcher and its Keeper over a folder.
type life struct {
	*topology.Watcher
	*topology.Keeper
	t    *testing.T
	stop func()

	mu    sync.Mutex
	table topology.Table
}

func (l *life) publish(table topology.Table) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.table = table
}

func (l *life) brief() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return brief(l.table)
}

// live starts one with short times; the folder and what change does may differ.
func live(t *testing.T, folder string, change func(*topology.Config, *topology.KeeperConfig)) *life {
	t.Helper()
	l := &life{t: t}
	start := time.Now()
	watcher := topology.Config{
		Self: topology.Self{Node: "n1", Zone: "za"}, Rules: topology.Rules{Namespace: "kube-system"},
		Now: func() time.Duration { return time.Since(start) }, Publish: l.publish, Coalesce: -1,
	}
	keeper := topology.KeeperConfig{
		Folder: folder, Namespace: "kube-system", Service: "kube-dns", Every: 10 * time.Millisecond,
		Probe:   200 * time.Millisecond,
		Cluster: func() (string, error) { return "c", nil },
	}
	if change != nil {
		change(&watcher, &keeper)
	}
	var err error
	if l.Watcher, err = topology.New(watcher); err != nil {
		t.Fatal(err)
	}
	keeper.Watcher = l.Watcher
	if l.Keeper, err = topology.NewKeeper(keeper); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = l.Watcher.Run(ctx) })
	running.Go(func() { _ = l.Keeper.Run(ctx) })
	l.stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(l.stop)
	return l
}

func (l *life) wants(text string) {
	l.t.Helper()
	l.until("table "+text, func() bool { return l.brief() == text })
}

func (l *life) until(what string, holds func() bool) {
	l.t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			l.t.Fatalf("never: %s; table %s, stats %+v", what, l.brief(), l.Keeper.Stats())
		}
	}
}

// saved is a folder with the endpoints of a former life.
func saved(t *testing.T, list ...topology.Slice) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "made", "on the way")
	l := live(t, folder, nil)
	l.Replace(list)
	l.Synced()
	l.until("a save", func() bool { return l.Keeper.Stats().Saves > 0 })
	l.stop()
	return folder
}

func TestEndpointsOutliveTheProcess(t *testing.T) {
	var list []topology.Slice
	list = append(list, slice("a", "10.0.0.1@n1/za", "10.0.0.2@n2/za", "10.0.0.3@n3/zb", "10.0.0.4@n4/zb~"))
	list = append(list, slice("six", "fd00::1@n1/za"))
	folder := saved(t, list...)
	first := live(t, t.TempDir(), nil)
	first.Replace(list)
	first.Synced()
	const want = "10.0.0.1/fd00::1|10.0.0.2|10.0.0.3|10.0.0.4~"
	first.wants(want)

	second := live(t, folder, nil)
	second.wants(want)
	<-second.Tried()
	if s := second.Watcher.Status(); !s.Restored || !s.Synced {
		t.Errorf("status %+v, want restored", s)
	}
	first.mu.Lock()
	second.mu.Lock()
	first.table.Provisional = true
	if diff := cmp.Diff(first.table, second.table, cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); diff != "" {
		t.Errorf("tables (-told +restored):\n%s", diff)
	}
	second.mu.Unlock()
	first.mu.Unlock()
	if s := second.Keeper.Stats(); !s.Found || s.Restored != 5 || s.Refused != "" || time.Since(s.SavedAt) > time.Minute {
		t.Errorf("stats %+v", s)
	}
	// A source that says the same is heard of as well.
	second.Replace(list)
	second.until("confirmed", func() bool {
		second.mu.Lock()
		defer second.mu.Unlock()
		return !second.table.Provisional && brief(second.table) == want
	})
	// A source knows better, in one step.
	second.Replace([]topology.Slice{slice("b", "10.0.0.9@n1/za")})
	second.wants("10.0.0.9|||")
	if second.Watcher.Status().Restored {
		t.Error("still called restored")
	}
}

func TestZoneOutlivesTheProcess(t *testing.T) {
	folder := saved(t, slice("a", "10.0.0.2@n2/za"))
	l := live(t, folder, func(w *topology.Config, _ *topology.KeeperConfig) { w.Self.Zone = "" })
	l.wants("|10.0.0.2||")
	if s := l.Watcher.Status(); s.Self.Zone != "za" || s.ZoneFrom != topology.ZoneFromSnapshot {
		t.Errorf("zone %s from %s", s.Self.Zone, s.ZoneFrom)
	}
	l.NodeZone("zb")
	l.wants("||10.0.0.2|")
}

func TestOnlyEndpointsThatProveThemselvesAreRestored(t *testing.T) {
	folder := saved(t, slice("a", "10.0.0.1@n1/za", "10.0.0.2@n2/za", "10.0.0.3@n3/zb", "10.0.0.4@n4/zb", "10.0.0.5@n5/zb"))
	var mu sync.Mutex
	var asked []string
	began := time.Now()
	l := live(t, folder, func(_ *topology.Config, k *topology.KeeperConfig) {
		k.Verify = func(ctx context.Context, server netip.AddrPort) bool {
			mu.Lock()
			asked = append(asked, server.String())
			mu.Unlock()
			switch server.Addr().String() {
			case "10.0.0.2", "10.0.0.4":
				return true
			case "10.0.0.1":
				return false // another pod by now
			}
			<-ctx.Done() // nobody there
			return false
		}
	})
	l.until("the first in force", func() bool { return strings.Contains(l.brief(), "10.0.0.") })
	if took := time.Since(began); took > time.Second {
		t.Errorf("the first took %v", took)
	}
	l.wants("|10.0.0.2|10.0.0.4|")
	<-l.Tried()
	l.until("stats", func() bool { return l.Keeper.Stats().Unverified == 2 })
	if len(asked) != 4 {
		t.Errorf("asked %v; want the one of the node, the one of the zone, two of the cluster", asked)
	}
}

func TestRestoreIsTriedAgain(t *testing.T) {
	folder := saved(t, slice("a", "10.0.0.1@n1/za"))
	var tries int
	l := live(t, folder, func(_ *topology.Config, k *topology.KeeperConfig) {
		k.Verify = func(context.Context, netip.AddrPort) bool {
			tries++ // one at a time: there is one endpoint
			return tries == 3
		}
	})
	<-l.Tried()
	l.wants("10.0.0.1|||")
}

func TestSnapshotThatIsNotUsed(t *testing.T) {
	const name = "endpoints.kube-system.kube-dns.json"
	for _, c := range []struct {
		name   string
		spoil  func(path string) error
		change func(*topology.Config, *topology.KeeperConfig)
		want   topology.Refusal
	}{
		{"corrupt", func(path string) error { return os.WriteFile(path, []byte("{"), 0o600) }, nil, topology.SnapshotCorrupt},
		{"too large", func(path string) error { return os.Truncate(path, 17<<20) }, nil, topology.SnapshotCorrupt},
		{"a folder", func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) }, nil, topology.SnapshotNoFile},
		{"a pipe", func(path string) error { return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)) }, nil, topology.SnapshotNoFile},
		{"of another cluster", nil, func(_ *topology.Config, k *topology.KeeperConfig) {
			k.Cluster = func() (string, error) { return "d", nil }
		}, topology.SnapshotOtherCluster},
		{"of a cluster unknown", nil, func(_ *topology.Config, k *topology.KeeperConfig) {
			k.Cluster = func() (string, error) { return "", errors.New("no CA") }
		}, topology.SnapshotOtherCluster},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := saved(t, slice("a", "10.0.0.1@n1/za"))
			if c.spoil != nil {
				if err := c.spoil(filepath.Join(folder, name)); err != nil {
					t.Fatal(err)
				}
			}
			l := live(t, folder, c.change)
			<-l.Tried()
			if s := l.Keeper.Stats(); s.Refused != c.want || s.Restored != 0 || s.Found {
				t.Errorf("stats %+v, want %s", s, c.want)
			}
			if l.Watcher.Status().Synced {
				t.Error("something was restored")
			}
		})
	}
}

// A file that says where it must not lead: made by hand, or on another host.
func TestAddressesOfASnapshotAreJudged(t *testing.T) {
	s := topology.Snapshot{Cluster: "c", Namespace: "kube-system", Service: "kube-dns"}
	for i, a := range []string{"127.0.0.1", "169.254.20.10", "224.0.0.1", "0.0.0.0", "10.0.0.53", "10.0.0.1", "nonsense"} {
		s.Slices = append(s.Slices, topology.Slice{
			Namespace: "kube-system", Name: fmt.Sprint(i), Service: "kube-dns", AddressType: "IPv4", AllowLoopback: true,
			Ports:     []topology.Port{{Name: "dns", Protocol: "UDP", Number: 53}},
			Endpoints: []topology.SliceEndpoint{{Addresses: []string{a}}},
		})
	}
	file, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "endpoints.kube-system.kube-dns.json"), file, 0o600); err != nil {
		t.Fatal(err)
	}
	l := live(t, folder, func(w *topology.Config, _ *topology.KeeperConfig) {
		w.Rules.Own = []netip.AddrPort{netip.MustParseAddrPort("10.0.0.53:53")}
	})
	l.wants("||10.0.0.1|")
	status := l.Watcher.Status()
	if got, want := status.Ignored.String(), "bad-address=5 own-address=1"; got != want {
		t.Errorf("ignored %s, want %s", got, want)
	}
}

func TestWhatIsNotSaved(t *testing.T) {
	folder := saved(t, slice("a", "10.0.0.1@n1/za"))
	path := filepath.Join(folder, "endpoints.kube-system.kube-dns.json")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	l := live(t, folder, nil)
	l.wants("10.0.0.1|||")
	time.Sleep(50 * time.Millisecond)
	l.Replace(nil) // an empty world
	time.Sleep(50 * time.Millisecond)
	l.stop()
	after, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(before) != string(after) || l.Keeper.Stats().Saves != 0 {
		t.Errorf("what was restored, or an empty world, was saved: %s", after)
	}
}

func TestWhatWasOnlyRestoredIsNotSaved(t *testing.T) {
	l := live(t, saved(t, slice("a", "10.0.0.1@n1/za")), nil)
	l.wants("10.0.0.1|||")
	l.stop()
	if n := l.Keeper.Stats().Saves; n != 0 {
		t.Errorf("%d saves; the old one is as good and says when it was true", n)
	}
}

// The API server answers while the endpoints on disk are still being asked.
func TestSourceIsFasterThanTheProbe(t *testing.T) {
	told := make(chan struct{})
	l := live(t, saved(t, slice("a", "10.0.0.1@n1/za")), func(_ *topology.Config, k *topology.KeeperConfig) {
		k.Probe = 5 * time.Second
		k.Verify = func(context.Context, netip.AddrPort) bool { <-told; return true }
	})
	l.Replace([]topology.Slice{slice("b", "10.0.0.9@n1/za")})
	l.Synced()
	close(told)
	<-l.Tried()
	l.wants("10.0.0.9|||")
	time.Sleep(20 * time.Millisecond)
	if s := l.Watcher.Status(); s.Restored || l.brief() != "10.0.0.9|||" || l.Keeper.Stats().Restored != 0 {
		t.Errorf("table %s, status %+v; want what the source told", l.brief(), s)
	}
}

func TestSavesFollowChanges(t *testing.T) {
	l := live(t, t.TempDir(), nil)
	saves := func(n uint64) {
		t.Helper()
		l.until(fmt.Sprint(n, " saves"), func() bool { return l.Keeper.Stats().Saves == n })
	}
	l.Replace([]topology.Slice{slice("a", "10.0.0.1@n1/za"), slice("b", "10.0.0.2@n1/za")})
	l.Synced()
	saves(1)
	l.Put(slice("a", "10.0.0.1@n1/za")) // nothing new
	time.Sleep(50 * time.Millisecond)
	saves(1)
	l.Put(slice("a", "10.0.0.3@n1/za"))
	saves(2)
	l.Delete("kube-system", "b")
	saves(3)
	files, err := os.ReadDir(filepath.Dir(l.Keeper.Stats().Path))
	if err != nil || len(files) != 1 {
		t.Errorf("%d files, %v; want the one", len(files), err)
	}
	if info, err := os.Stat(l.Keeper.Stats().Path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v; want it for the owner only", info.Mode(), err)
	}
}

func TestFolderThatCannotBeWritten(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(folder, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l := live(t, filepath.Join(folder, "below"), nil)
	l.Replace([]topology.Slice{slice("a", "10.0.0.1@n1/za")})
	l.Synced()
	l.wants("10.0.0.1|||")
	l.until("failures", func() bool { s := l.Keeper.Stats(); return s.Failed > 1 && s.LastError != "" })
}
