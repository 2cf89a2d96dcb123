package file_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/topology"
	"github.com/nodens-dns/nodens/topology/file"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// patience bounds every wait for something that should happen.
const patience = time.Minute

// sink tells the test what came; a method that must not be called panics.
type sink struct {
	lists  chan string // names of the slices of a Replace
	synced chan struct{}
}

func (s *sink) Put(topology.Slice)    { panic("unexpected Put") }
func (s *sink) Delete(string, string) { panic("unexpected Delete") }
func (s *sink) Synced()               { s.synced <- struct{}{} }
func (s *sink) Replace(all []topology.Slice) {
	var names []string
	for _, one := range all {
		if one.Seen.IsZero() {
			panic("a slice without the time it was seen")
		}
		names = append(names, one.Name)
	}
	s.lists <- strings.Join(names, " ")
}

// rig is a running Source.
type rig struct {
	*sink
	*file.Source
	t    *testing.T
	logs *observer.ObservedLogs
}

// run gives a Source over path that looks by itself only once an hour, unless
// poll says otherwise.
func run(t *testing.T, path string, poll time.Duration) *rig {
	t.Helper()
	core, logs := observer.New(zap.WarnLevel)
	if poll == 0 {
		poll = time.Hour
	}
	source, err := file.New(file.Config{Path: path, Poll: poll, Settle: 20 * time.Millisecond, Log: zap.New(core)})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{&sink{make(chan string), make(chan struct{})}, source, t, logs}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- source.Run(ctx, r.sink) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Run: %v", err)
			}
		case <-time.After(patience):
			t.Error("Run did not end")
		}
	})
	return r
}

// gets wants a list and the call to Synced after it.
func (r *rig) gets(want string) {
	r.t.Helper()
	select {
	case got := <-r.lists:
		if got != want {
			r.t.Fatalf("slices %q, want %q", got, want)
		}
		<-r.synced
	case <-time.After(patience):
		r.t.Fatalf("nothing came, want slices %q; %+v", want, r.Stats())
	}
}

// complains waits until n bad files were counted and wants as many log lines
// and nothing emitted.
func (r *rig) complains(n uint64) {
	r.t.Helper()
	for deadline := time.Now().Add(patience); r.Stats().Bad < n; time.Sleep(time.Millisecond) {
		select {
		case got := <-r.lists:
			r.t.Fatalf("a bad file gave slices %q", got)
		default:
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("not noticed: %+v", r.Stats())
		}
	}
	if s := r.Stats(); s.Bad != n || s.LastError == "" {
		r.t.Fatalf("stats %+v, want %d bad", s, n)
	}
	for deadline := time.Now().Add(patience); r.logs.Len() < int(n) && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if r.logs.Len() != int(n) {
		r.t.Fatalf("%d log lines, want %d: %v", r.logs.Len(), n, r.logs.All())
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestSourceSeesRenames(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "slices.yaml")
	write(t, path, named(typed, "one"))
	r := run(t, path, 0)
	r.gets("one")
	for i := range 3 {
		write(t, filepath.Join(dir, "new"), named(typed, fmt.Sprint("next", i)))
		must(t, os.Rename(filepath.Join(dir, "new"), path))
		r.gets(fmt.Sprint("next", i))
	}
}

func TestSourceSeesConfigMapSwaps(t *testing.T) {
	dir := t.TempDir()
	version := func(name string) {
		must(t, os.Mkdir(filepath.Join(dir, ".."+name), 0o700))
		write(t, filepath.Join(dir, ".."+name, "slices.yaml"), named(typed, name))
		must(t, os.Symlink(".."+name, filepath.Join(dir, "..data_tmp")))
		must(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	}
	version("one")
	path := filepath.Join(dir, "slices.yaml")
	must(t, os.Symlink(filepath.Join("..data", "slices.yaml"), path))
	r := run(t, path, 0)
	r.gets("one")
	version("two")
	r.gets("two")
	must(t, os.RemoveAll(filepath.Join(dir, "..one")))
	version("three")
	r.gets("three")
}

func TestSourceSeesWritesInPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "slices.yaml")
	write(t, path, named(typed, "one"))
	r := run(t, path, 0)
	r.gets("one")
	write(t, path, named(typed, "two"))
	r.gets("two")
	if s := r.Stats(); s.Bad != 0 || s.Applied != 2 {
		t.Errorf("%+v", s)
	}
}

func TestSourceBadThenGood(t *testing.T) {
	path := filepath.Join(t.TempDir(), "slices.yaml")
	good := named(typed, "one")
	write(t, path, good)
	r := run(t, path, 30*time.Millisecond) // looks often, complains once
	r.gets("one")
	write(t, path, good[:len(good)/2]) // a write that broke off
	r.complains(1)
	time.Sleep(100 * time.Millisecond)
	r.complains(1)
	write(t, path, "")
	r.complains(2)
	must(t, os.Remove(path))
	r.complains(3)
	write(t, path, named(typed, "two"))
	r.gets("two")
	for deadline := time.Now().Add(patience); r.Stats().LastError != ""; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still complaining: %+v", r.Stats())
		}
	}
	write(t, path, "[]") // no slices, and meant so
	r.gets("")
}

func TestSourceBadThenAsBefore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "slices.yaml")
	write(t, path, named(typed, "one"))
	r := run(t, path, 0)
	r.gets("one")
	write(t, path, "{")
	r.complains(1)
	write(t, path, named(typed, "one")) // what is in force: nothing to emit
	for deadline := time.Now().Add(patience); r.Stats().LastError != ""; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still complaining: %+v", r.Stats())
		}
	}
	if s := r.Stats(); s.Applied != 1 {
		t.Errorf("%+v", s)
	}
}

func TestSourceWaitsForTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "slices.yaml")
	r := run(t, path, 0)
	r.complains(1)
	write(t, path, named(typed, "one"))
	r.gets("one")
}

func TestSourceWaitsForTheFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "later")
	r := run(t, filepath.Join(dir, "slices.yaml"), 20*time.Millisecond)
	must(t, os.Mkdir(dir, 0o700))
	write(t, filepath.Join(dir, "slices.yaml"), named(typed, "one"))
	r.gets("one")
	must(t, os.RemoveAll(dir)) // made anew: the old watch is gone with the old folder
	must(t, os.Mkdir(dir, 0o700))
	write(t, filepath.Join(dir, "slices.yaml"), named(typed, "two"))
	r.gets("two")
}

func TestSourcePollsAsABackstop(t *testing.T) {
	elsewhere := filepath.Join(t.TempDir(), "real.yaml")
	path := filepath.Join(t.TempDir(), "slices.yaml")
	write(t, elsewhere, named(typed, "one"))
	must(t, os.Symlink(elsewhere, path))
	r := run(t, path, 20*time.Millisecond)
	r.gets("one")
	write(t, elsewhere, named(typed, "two")) // in a folder that is not watched
	r.gets("two")
}

func TestSourceRequired(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.yaml")
	write(t, bad, "kind: Pod")
	cases := map[string]struct{ path, want string }{
		"missing":  {filepath.Join(dir, "none.yaml"), "create it"},
		"bad":      {bad, "unknown kind"},
		"a folder": {dir, "not a regular file"},
	}
	for name, c := range cases {
		source, err := file.New(file.Config{Path: c.path, Required: true})
		must(t, err)
		err = source.Run(t.Context(), &sink{})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.path) {
			t.Errorf("%s: error %v, want %s", name, err, c.want)
		}
		if name == "missing" && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: error %v does not wrap fs.ErrNotExist", name, err)
		}
	}
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	for name, cfg := range map[string]file.Config{
		"no path": {},
		"busy":    {Path: "f", Poll: time.Millisecond},
		"settle":  {Path: "f", Settle: time.Minute},
	} {
		if _, err := file.New(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestLoopbackFromAFile: the whole way from a file to a Table.
func TestLoopbackFromAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "slices.yaml")
	write(t, path, full)
	tables := make(chan topology.Table, 1)
	w, err := topology.New(topology.Config{
		Self: topology.Self{Node: "n1"}, Now: func() time.Duration { return 0 },
		Publish: func(table topology.Table) { tables <- table },
	})
	must(t, err)
	source, err := file.New(file.Config{Path: path, Required: true})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	go func() { done <- w.Run(ctx) }()
	go func() { done <- source.Run(ctx, w) }()
	table := <-tables
	cancel()
	must(t, errors.Join(<-done, <-done))
	if len(table.Tiers[2]) != 1 || table.Tiers[2][0].UDP.String() != "127.0.0.3:53" || len(table.Last) != 1 {
		t.Errorf("%+v", table)
	}
}
