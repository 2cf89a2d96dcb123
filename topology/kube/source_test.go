package kube_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodens-dns/nodens/topology"
	"github.com/nodens-dns/nodens/topology/kube"
)

func meta53(protocol core.Protocol) discovery.EndpointPort {
	name, number := "dns", int32(53)
	if protocol == core.ProtocolTCP {
		name = "dns-tcp"
	}
	return discovery.EndpointPort{Name: &name, Protocol: &protocol, Port: &number}
}

// sink keeps what a Source says.
type sink struct {
	mu       sync.Mutex
	slices   map[string]topology.Slice
	replaces int
	synced   bool
	least    int // the smallest set after the first
}

func newSink() *sink { return &sink{slices: map[string]topology.Slice{}, least: 1 << 30} }

func (s *sink) Put(slice topology.Slice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slices[slice.Name] = slice
}

func (s *sink) Delete(_, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.slices, name)
	s.least = min(s.least, len(s.slices))
}

func (s *sink) Replace(all []topology.Slice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replaces++
	clear(s.slices)
	for _, slice := range all {
		s.slices[slice.Name] = slice
	}
	s.least = min(s.least, len(s.slices))
}

func (s *sink) Synced() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.synced = true
}

// addresses lists all first addresses, sorted.
func (s *sink) addresses() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.synced {
		return "not synced"
	}
	var list []string
	for _, slice := range s.slices {
		for _, e := range slice.Endpoints {
			list = append(list, e.Addresses[0])
		}
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

func (s *sink) smallest() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.least
}

// rig is a running Source against a fake API server.
type rig struct {
	*kube.Source
	*sink
	t      testing.TB
	client *kube.Client
}

// start runs a Source with short waits; cfg may say more.
func start(t testing.TB, api kube.API, cfg kube.Config) *rig {
	t.Helper()
	r := &rig{sink: newSink(), t: t, client: kube.NewClient(api)}
	cfg.Client = r.client
	began := time.Now()
	cfg.Now = func() time.Duration { return time.Since(began) }
	cfg.RetryMin, cfg.RetryMax, cfg.RefusedMax = 5*time.Millisecond, 50*time.Millisecond, 50*time.Millisecond
	if cfg.SearchEvery == 0 {
		cfg.SearchEvery = 50 * time.Millisecond
	}
	source, err := kube.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.Source = source
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- source.Run(ctx, r.sink) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Run: %v", err)
			}
		case <-time.After(time.Minute):
			t.Error("Run did not end with its context")
		}
		r.client.Close()
	})
	return r
}

// wants waits for a set of addresses.
func (r *rig) wants(addresses string) {
	r.t.Helper()
	end := time.Now().Add(time.Minute)
	for r.addresses() != addresses {
		if time.Now().After(end) {
			r.t.Fatalf("addresses %q, want %q; status %+v", r.addresses(), addresses, r.Status())
		}
		time.Sleep(time.Millisecond)
	}
}

// faces waits for a fault.
func (r *rig) faces(fault kube.Fault) kube.Status {
	r.t.Helper()
	within(r.t, time.Minute, fault.String(), func() bool { return r.Status().Fault == fault })
	return r.Status()
}

func TestFollowsChanges(t *testing.T) {
	f := newFakeAPI(t)
	f.put(slice("a", "kube-dns", "10.0.0.1", "10.0.0.2"))
	f.put(slice("x", "kube-dns-upstream", "10.0.0.9"))
	r := start(t, f.api(), kube.Config{})
	r.wants("10.0.0.1 10.0.0.2")
	f.put(slice("b", "kube-dns", "10.0.0.3"))
	r.wants("10.0.0.1 10.0.0.2 10.0.0.3")
	f.put(slice("a", "kube-dns", "10.0.0.2"))
	r.wants("10.0.0.2 10.0.0.3")
	f.remove("b")
	r.wants("10.0.0.2")

	within(t, time.Minute, "a bookmark", func() bool { f.set(func() {}); return r.Status().Counters.Bookmarks > 0 })
	s := r.Status()
	if s.Fault != kube.None || s.LastError != "" || !s.Contacted || s.Age > time.Minute || s.Service != "kube-dns" || s.Found {
		t.Errorf("status %+v", s)
	}
	if s.Counters.Lists != 1 || s.Counters.Events != 3 || s.Counters.Foreign != 0 || s.Counters.Failures != 0 {
		t.Errorf("counters %+v, want 1 list, 3 events, none foreign, no failure", s.Counters)
	}
	if n := f.count("stream"); n != 1 || f.count("list") != 0 {
		t.Errorf("requests %v, want one streamed list", f.requests)
	}
	if r.client.Received() == 0 {
		t.Error("no bytes were counted")
	}
}

// A server that sends what it was not asked for gives us no resolver.
func TestSlicesOfOthersAreNotTaken(t *testing.T) {
	f := newFakeAPI(t)
	f.deaf = true
	f.put(slice("a", "kube-dns", "10.0.0.1"))
	f.put(slice("x", "web", "10.0.0.8"))
	r := start(t, f.api(), kube.Config{})
	r.wants("10.0.0.1")
	f.put(slice("y", "web", "10.0.0.9"))
	f.remove("x")
	f.put(slice("b", "kube-dns", "10.0.0.2"))
	r.wants("10.0.0.1 10.0.0.2")
	if n := r.Status().Counters.Foreign; n != 3 {
		t.Errorf("%d slices of others were counted, want one of the list and two of the watch", n)
	}
}

// A server of before streamed lists, or with them switched off.
func TestListsWhereListsAreNotStreamed(t *testing.T) {
	f := newFakeAPI(t)
	f.refuse = func(r *http.Request) *meta.Status {
		if r.URL.Query().Has("sendInitialEvents") {
			return failure(http.StatusUnprocessableEntity, meta.StatusReasonInvalid)
		}
		return nil
	}
	f.put(slice("a", "kube-dns", "10.0.0.1"))
	r := start(t, f.api(), kube.Config{})
	r.wants("10.0.0.1")
	f.put(slice("b", "kube-dns", "10.0.0.2"))
	r.wants("10.0.0.1 10.0.0.2")
	if s := r.Status(); s.Counters.Failures != 0 {
		t.Errorf("status %+v, want no failure: such a server is none", s)
	}
}

func TestWatchThatEndsIsResumed(t *testing.T) {
	f := newFakeAPI(t)
	f.put(slice("a", "kube-dns", "10.0.0.1"))
	r := start(t, f.api(), kube.Config{})
	r.wants("10.0.0.1")
	for i := range 3 {
		time.Sleep(1100 * time.Millisecond) // shorter ones count as broken
		f.endWatches()
		f.put(slice("b", "kube-dns", fmt.Sprintf("10.0.0.%d", 2+i)))
		r.wants(fmt.Sprintf("10.0.0.1 10.0.0.%d", 2+i))
	}
	if s := r.Status(); s.Counters.Lists != 1 || r.smallest() != 1 {
		t.Errorf("lists %d, smallest set %d; want one list and never less than a slice", s.Counters.Lists, r.smallest())
	}
}

// The version we know was compacted away: a new list repairs it, without an
// empty moment and without a fault.
func TestVersionGone(t *testing.T) {
	f := newFakeAPI(t)
	f.put(slice("a", "kube-dns", "10.0.0.1"))
	f.put(slice("b", "kube-dns", "10.0.0.2"))
	r := start(t, f.api(), kube.Config{})
	r.wants("10.0.0.1 10.0.0.2")
	time.Sleep(1100 * time.Millisecond)
	f.compact("a")
	r.wants("10.0.0.2")
	if s := r.Status(); r.smallest() != 1 || s.Fault != kube.None || s.Counters.Failures != 0 {
		t.Errorf("the smallest set was %d slices, want 1; status %+v, want no failure", r.smallest(), s)
	}
}

func TestFaultsKeepTheSet(t *testing.T) {
	for _, c := range []struct {
		name  string
		code  int32
		why   meta.StatusReason
		fault kube.Fault
		text  string
	}{
		{"forbidden", http.StatusForbidden, meta.StatusReasonForbidden, kube.Forbidden, "grant list and watch of endpointslices in namespace kube-system"},
		{"errors for ever", http.StatusInternalServerError, meta.StatusReasonInternalError, kube.ServerError, "the fake says"},
		{"overload for ever", http.StatusTooManyRequests, meta.StatusReasonTooManyRequests, kube.ServerError, "the fake says"},
		{"unavailable", http.StatusServiceUnavailable, meta.StatusReasonServiceUnavailable, kube.ServerError, "the fake says"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFakeAPI(t)
			f.put(slice("a", "kube-dns", "10.0.0.1"))
			r := start(t, f.api(), kube.Config{})
			r.wants("10.0.0.1")
			f.set(func() { f.refuse = func(*http.Request) *meta.Status { return failure(c.code, c.why) } })
			f.put(slice("a", "kube-dns", "10.0.0.2"))
			s := r.faces(c.fault)
			if !strings.Contains(s.LastError, c.text) {
				t.Errorf("last error %q, want %q in it", s.LastError, c.text)
			}
			before := r.Status().Counters.Failures
			within(t, time.Minute, "more attempts", func() bool { return r.Status().Counters.Failures > before+2 })
			if s := r.Status(); r.addresses() != "10.0.0.1" || s.FailingFor == 0 {
				t.Errorf("addresses %s, status %+v; want the last set, and since when", r.addresses(), s)
			}
			f.set(func() { f.refuse = nil })
			r.wants("10.0.0.2")
			if s := r.faces(kube.None); s.LastError != "" || s.FailingFor != 0 || r.smallest() != 1 {
				t.Errorf("status %+v, smallest set %d", s, r.smallest())
			}
		})
	}
}

// A server whose lists work and whose watches do not, for ever.
func TestWatchThatFailsForEver(t *testing.T) {
	f := newFakeAPI(t)
	f.put(slice("a", "kube-dns", "10.0.0.1"))
	r := start(t, f.api(), kube.Config{})
	r.wants("10.0.0.1")
	f.set(func() { f.spoil = failure(http.StatusInternalServerError, meta.StatusReasonInternalError) })
	r.faces(kube.ServerError)
	for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if s := r.Status(); s.Fault != kube.ServerError || s.LastError == "" || r.addresses() != "10.0.0.1" {
			t.Fatalf("in between: status %+v, addresses %s", s, r.addresses())
		}
	}
	if s := r.Status(); s.FailingFor < 400*time.Millisecond || s.Counters.Lists < 3 {
		t.Errorf("status %+v, want failing all along, and lists meanwhile", s)
	}
	f.set(func() { f.spoil = nil })
	r.faces(kube.None)
}

func TestPermissionIsPickedUp(t *testing.T) {
	f := newFakeAPI(t)
	f.refuse = forbidden
	f.put(slice("a", "kube-dns", "10.0.0.1"))
	r := start(t, f.api(), kube.Config{})
	if s := r.faces(kube.Forbidden); s.Contacted {
		t.Errorf("status %+v: a refusal is no contact", s)
	}
	if got := r.addresses(); got != "not synced" {
		t.Errorf("emitted %q without any list", got)
	}
	f.set(func() { f.refuse = nil })
	r.wants("10.0.0.1")
}

func TestTokenIsRotated(t *testing.T) {
	f := newFakeAPI(t)
	f.put(slice("a", "kube-dns", "10.0.0.1"))
	r := start(t, f.api(), kube.Config{})
	r.wants("10.0.0.1")
	f.set(func() { f.token = "second" })
	time.Sleep(1100 * time.Millisecond)
	f.endWatches()
	r.faces(kube.Unauthorized)
	f.write(t, "token", "second")
	f.put(slice("b", "kube-dns", "10.0.0.2"))
	r.wants("10.0.0.1 10.0.0.2")
}

func TestAuthorityIsRotated(t *testing.T) {
	f := newFakeAPI(t)
	f.put(slice("a", "kube-dns", "10.0.0.1"))
	own := f.api()
	good := readFile(t, own.CAFile)
	f.write(t, "ca.crt", otherAuthority(t))
	r := start(t, own, kube.Config{})
	if s := r.faces(kube.Certificate); !strings.Contains(s.LastError, "did not sign") {
		t.Errorf("last error %q", s.LastError)
	}
	f.write(t, "ca.crt", good)
	r.wants("10.0.0.1")
}

func TestCredentialsThatAreMissing(t *testing.T) {
	f := newFakeAPI(t)
	f.put(slice("a", "kube-dns", "10.0.0.1"))
	good := f.api()
	for name, api := range map[string]kube.API{
		"no token":     {Server: good.Server, CAFile: good.CAFile, TokenFile: good.TokenFile + ".gone"},
		"no authority": {Server: good.Server, CAFile: good.CAFile + ".gone", TokenFile: good.TokenFile},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, api, kube.Config{})
			if s := r.faces(kube.NoServer); !strings.Contains(s.LastError, ".gone") {
				t.Errorf("last error %q, want the file named", s.LastError)
			}
		})
	}
	t.Run("no server", func(t *testing.T) {
		t.Setenv("KUBERNETES_SERVICE_HOST", "")
		r := start(t, kube.API{}, kube.Config{})
		if s := r.faces(kube.NoServer); !strings.Contains(s.LastError, "KUBERNETES_SERVICE_HOST") {
			t.Errorf("last error %q", s.LastError)
		}
	})
}

// Whatever a server sends, only slices of the Service that was asked for count.
func TestSelectorIsIgnoredByTheServer(t *testing.T) {
	f := newFakeAPI(t)
	strange := slice("a", "kube-dns", "10.0.0.1")
	strange.Namespace = "default"
	f.put(strange)
	f.put(slice("b", "kube-dns", "10.0.0.2"))
	r := start(t, f.api(), kube.Config{})
	r.wants("10.0.0.2")
	if s := r.Status(); s.Counters.Foreign == 0 {
		t.Error("the strange slice was not counted")
	}
}

func TestWarmStartDoesNotHurry(t *testing.T) {
	f := newFakeAPI(t)
	f.put(slice("a", "kube-dns", "10.0.0.1"))
	r := start(t, f.api(), kube.Config{Warm: func() bool { return true }, StartJitter: 5 * time.Minute})
	time.Sleep(100 * time.Millisecond) // a start within it has a chance of 1 in 3000
	if n := f.count(""); n != 0 || r.addresses() != "not synced" {
		t.Errorf("%d requests though warm", n)
	}
}
