package kube_test

import (
	"testing"
	"time"

	"github.com/nodens-dns/nodens/topology/kube"
)

// restore puts the server back in time: an older version, other slices.
func (f *fakeAPI) restore(name, address string) {
	f.mu.Lock()
	f.version, f.oldest, f.history = 10, 0, nil
	clear(f.slices)
	f.mu.Unlock()
	f.put(slice(name, "kube-dns", address))
}

// afterRestore follows a server that is restored from a backup meanwhile.
func afterRestore(t *testing.T, cfg kube.Config) (*fakeAPI, *rig) {
	t.Helper()
	f := newFakeAPI(t)
	f.put(slice("a", "kube-dns", "10.0.0.1"))
	r := start(t, f.api(), cfg)
	r.wants("10.0.0.1")
	f.set(func() { f.refuse = forbidden })
	r.faces(kube.Forbidden)
	f.restore("a", "10.0.0.9")
	f.set(func() { f.refuse = nil })
	within(t, time.Minute, "the older list", func() bool { return r.Status().Counters.Rewinds >= 1 })
	return f, r
}

func TestOlderListIsHeldBack(t *testing.T) {
	f, r := afterRestore(t, kube.Config{})
	f.put(slice("b", "kube-dns", "10.0.0.8"))
	time.Sleep(50 * time.Millisecond)
	if got := r.addresses(); got != "10.0.0.1" {
		t.Fatalf("addresses %q, want those of before", got)
	}
	// The server catches up: what it says now counts, with all that happened.
	f.set(func() { f.version = 1000 })
	f.remove("a")
	r.wants("10.0.0.8")
	f.put(slice("c", "kube-dns", "10.0.0.7"))
	r.wants("10.0.0.7 10.0.0.8")
}

func TestOlderListIsTakenInTheEnd(t *testing.T) {
	f, r := afterRestore(t, kube.Config{RewindHold: 100 * time.Millisecond})
	f.put(slice("b", "kube-dns", "10.0.0.8"))
	within(t, time.Minute, "it is taken", func() bool {
		f.set(func() {}) // a bookmark
		return r.addresses() == "10.0.0.8 10.0.0.9"
	})
	f.remove("a")
	r.wants("10.0.0.8")
}
