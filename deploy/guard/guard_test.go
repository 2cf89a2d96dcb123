package guard_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/sys/unix"

	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/deploy/guard"
	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// fakeAsker answers for the sockets of an instance.
type fakeAsker struct {
	mu       sync.Mutex
	instance string // "" = nobody
	mute     bool   // no answer at all
	behind   bool   // the servers of the fallback answer
}

func (f *fakeAsker) change(do func(f *fakeAsker)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do(f)
}

func (f *fakeAsker) Witness(ctx context.Context, _ string, _ netip.Addr, _ netip.AddrPort) (guard.Witness, error) {
	f.mu.Lock()
	mute, instance := f.mute, f.instance
	f.mu.Unlock()
	switch {
	case mute:
		<-ctx.Done()
		return guard.Witness{}, ctx.Err()
	case instance == "":
		return guard.Witness{}, unix.ECONNREFUSED
	}
	return guard.Witness{Instance: instance}, nil
}

func (f *fakeAsker) Answers(context.Context, netip.AddrPort, string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.behind
}

// house is a guard in this process on a host in memory.
type house struct {
	*guard.Guard
	cfg  guard.Config
	host *hostnet.Fake
	ask  *fakeAsker
	logs *observer.ObservedLogs
	stop func()
}

func newHouse(t *testing.T, folder string, change func(*guard.Config)) *house {
	t.Helper()
	began := time.Now()
	core, logs := observer.New(zap.InfoLevel)
	h := &house{host: &hostnet.Fake{Now: func() time.Duration { return time.Since(began) }}, ask: &fakeAsker{behind: true}, logs: logs}
	h.cfg = guard.Config{
		State: hostState(), Host: h.host, Asker: h.ask, Log: zap.New(core), Version: "v1",
		Socket: filepath.Join(folder, "guard.sock"), Lock: filepath.Join(folder, "guard.lock"), Endpoints: filepath.Join(folder, "endpoints.json"),
	}
	if change != nil {
		change(&h.cfg)
	}
	var err error
	if h.Guard, err = guard.New(h.cfg); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	h.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the guard ends with: %v", err)
		}
	})
	t.Cleanup(h.stop)
	return h
}

// serve connects an instance and returns what ends the connection.
func (h *house) serve(t *testing.T, instance string) (*guard.Client, func()) {
	t.Helper()
	client := guard.NewClient(guard.ClientConfig{Socket: h.cfg.Socket, Instance: instance, Version: "v2"})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- client.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the client ends with: %v", err)
		}
	})
	t.Cleanup(stop)
	return client, stop
}

func tableOf(servers ...string) guard.Table {
	t := guard.Table{Tiers: [][]guard.Server{nil, nil, nil}, Probe: "kubernetes.default.svc.cluster.local."}
	for _, s := range servers {
		a := netip.MustParseAddrPort(s)
		t.Tiers[2] = append(t.Tiers[2], guard.Server{UDP: a, TCP: a})
	}
	return t
}

func sockets() []guard.Socket {
	return []guard.Socket{{Address: netip.MustParseAddrPort(own + ":53")}}
}

func (h *house) held(set hostnet.Set) bool {
	found, err := h.host.Read(hostState())
	if err != nil {
		return false
	}
	for _, one := range found.Held {
		if one.Set == set {
			return true
		}
	}
	return false
}

func TestSession(t *testing.T) {
	folder := t.TempDir()
	h := newHouse(t, folder, nil)
	client, end := h.serve(t, "one")
	client.Publish(tableOf("10.1.0.53:53", "127.0.0.1:53", "169.254.20.10:53", "224.0.0.1:53"))
	eventually(t, "the fallback", wide, func() bool { return h.fallsBackTo("10.1.0.53:53") })
	if text := h.host.String(); strings.Contains(text, "127.0.0.1") || strings.Contains(text, "224.0.0.1") {
		t.Errorf("packets may go to where they must not:\n%s", text)
	}
	if h.held(hostnet.Alive) {
		t.Error("alive before anybody answered")
	}
	h.ask.change(func(f *fakeAsker) { f.instance = "one" })
	client.Sockets(sockets(), nil)
	eventually(t, "alive", wide, func() bool { return h.held(hostnet.Alive) })
	eventually(t, "the client knows", wide, func() bool { return client.Status().State.Owner && client.Status().State.Applied })
	big := bytes.Repeat([]byte("endpoint "), 200_000)
	client.Keep("kube-system.kube-dns", big)
	eventually(t, "the file", wide, func() bool { return fileSize(h.cfg.Endpoints) > len(big) })
	client.Publish(guard.Table{}) // nobody is worse than the last ones
	client.Publish(tableOf())

	end()
	eventually(t, "not alive", 800*time.Millisecond, func() bool { return !h.held(hostnet.Alive) })
	eventually(t, "the death is counted", wide, func() bool { return h.Status().Counts.Deaths == 1 })
	h.stop()
	if text := h.host.String(); !strings.Contains(text, "10.1.0.53:53") {
		t.Errorf("the end of the guard leaves:\n%s", text)
	}

	// What was kept is there for the next guard and the next serve.
	next := newHouse(t, folder, nil)
	eventually(t, "the fallback from the file", wide, func() bool { return next.fallsBackTo("10.1.0.53:53") })
	again, _ := next.serve(t, "two")
	patience, cancel := context.WithTimeout(t.Context(), wide)
	defer cancel()
	if got := again.Kept(patience, "kube-system.kube-dns"); !bytes.Equal(got, big) {
		t.Errorf("%d bytes come back of %d", len(got), len(big))
	}
	if got := again.Kept(patience, "other"); got != nil {
		t.Errorf("%d bytes under a name that nobody kept", len(got))
	}
}

func fileSize(path string) int {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return int(info.Size())
}

func TestLeave(t *testing.T) {
	h := newHouse(t, t.TempDir(), nil)
	h.ask.change(func(f *fakeAsker) { f.instance = "one" })
	first, end := h.serve(t, "one")
	first.Publish(tableOf("10.1.0.53:53"))
	first.Sockets(sockets(), nil)
	eventually(t, "alive", wide, func() bool { return h.held(hostnet.Alive) })
	patience, cancel := context.WithTimeout(t.Context(), wide)
	defer cancel()
	eventually(t, "the servers behind were asked", wide, func() bool { return h.Status().Fallback == "" })
	first.Leave(patience)
	if h.held(hostnet.Alive) || !h.held(hostnet.Bypass) {
		t.Error("when Leave returns, queries still go to the one that leaves")
	}
	// Its answers do not count any more.
	time.Sleep(400 * time.Millisecond)
	if h.held(hostnet.Alive) {
		t.Error("alive by an instance that leaves")
	}
	second, _ := h.serve(t, "two")
	second.Sockets(sockets(), nil)
	h.ask.change(func(f *fakeAsker) { f.instance = "two" })
	eventually(t, "queries go to the successor", wide, func() bool { return h.held(hostnet.Alive) && !h.held(hostnet.Bypass) })
	end()
	time.Sleep(100 * time.Millisecond)
	if n := h.Status().Counts.Deaths; n != 0 || !h.held(hostnet.Alive) {
		t.Errorf("the end of one that had left counts as %d deaths", n)
	}
}

// TestCrashLoop: instances that die soon after their start do not take queries along
// for ever.
func TestCrashLoop(t *testing.T) {
	h := newHouse(t, t.TempDir(), nil)
	for _, instance := range []string{"one", "two", "three"} {
		client, end := h.serve(t, instance)
		client.Publish(tableOf("10.1.0.53:53"))
		client.Sockets(sockets(), nil)
		h.ask.change(func(f *fakeAsker) { f.instance = instance })
		eventually(t, "alive", wide, func() bool { return h.held(hostnet.Alive) })
		if h.held(hostnet.Bypass) {
			t.Errorf("instance %s has no queries", instance)
		}
		end()
		eventually(t, "dead", wide, func() bool { return !h.held(hostnet.Alive) })
	}
	client, _ := h.serve(t, "four")
	client.Sockets(sockets(), nil)
	eventually(t, "the fourth has no queries yet", wide, func() bool {
		return h.held(hostnet.Bypass) && len(client.Status().State.Bypass) == 1
	})
}

// TestServeHears why there is no fallback, and since when queries go past it, also
// while it says nothing itself.
func TestServeHears(t *testing.T) {
	h := newHouse(t, t.TempDir(), nil)
	h.ask.change(func(f *fakeAsker) { f.instance, f.behind = "one", false })
	client, _ := h.serve(t, "one")
	state := func() guard.SessionState { return client.Status().State }
	client.Sockets(sockets(), nil)
	eventually(t, "no servers", wide, func() bool { return strings.HasPrefix(state().Fallback, "no server is known for UDP queries") })
	client.Publish(tableOf("10.1.0.53:53"))
	eventually(t, "silent servers", wide, func() bool { return state().Fallback == "none of the servers answers" })
	if s := state(); len(s.Bypass) > 0 || !s.BypassSince.IsZero() {
		t.Errorf("before any bypass: %+v", s)
	}
	h.ask.change(func(f *fakeAsker) { f.mute, f.behind = true, true })
	eventually(t, "a bypass", wide, func() bool { s := state(); return s.Fallback == "" && len(s.Bypass) == 1 && !s.BypassSince.IsZero() })
	began := state().BypassSince
	h.ask.change(func(f *fakeAsker) { f.mute = false })
	eventually(t, "its end", wide, func() bool { s := state(); return len(s.Bypass) == 0 && s.BypassSince.After(began) })
}

func TestBadFiles(t *testing.T) {
	for name, c := range map[string]struct{ content, says string }{
		"damaged":        {"{", "is damaged, remove it"},
		"another format": {`{"format":"x"}`, `has the format "x"`},
		"bad targets":    {`{"format":"nodens-guard-1","table":{"tiers":[[{"udp":"127.0.0.1:53","tcp":"[ff02::1]:53"}]]}}`, "packets may not be sent there"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			path := filepath.Join(folder, "endpoints.json")
			if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			h := newHouse(t, folder, nil)
			eventually(t, "the owner", wide, func() bool { return h.Status().Owner })
			told := false
			for _, line := range h.logs.All() {
				told = told || strings.Contains(line.Message, c.says) || strings.Contains(errorOf(line), c.says)
			}
			if !told || !strings.Contains(h.Status().Fallback, "no server is known") {
				t.Errorf("%q is not told, or the fallback is %q", c.says, h.Status().Fallback)
			}
			// A better one takes its place.
			client, _ := h.serve(t, "one")
			client.Publish(tableOf("10.1.0.53:53"))
			eventually(t, "the file is good", wide, func() bool {
				_, _, err := guard.KeptFallback(path, hostState())
				return err == nil && fileSize(path) > 0 && h.Status().File == ""
			})
		})
	}
}

func errorOf(line observer.LoggedEntry) string {
	for _, f := range line.Context {
		if err, ok := f.Interface.(error); ok {
			return err.Error()
		}
	}
	return ""
}

// unwatched is a host that changes something in vain and whose changes cannot be watched.
type unwatched struct{ *hostnet.Fake }

func (u unwatched) Apply(s hostnet.State) (hostnet.Report, error) {
	report, err := u.Fake.Apply(s)
	if err != nil {
		report.Changed = []string{"link nodens: missing"}
	}
	return report, err
}

func (u unwatched) Watch(context.Context, func()) error {
	return errors.New("changes cannot be watched: the capability NET_ADMIN is missing")
}

// TestHostRefuses: what the kernel does not do is told, and tried again.
func TestHostRefuses(t *testing.T) {
	var mu sync.Mutex
	refuse := errors.New("the nft table cannot be replaced: this kernel has no support for it")
	var failures atomic.Int64
	h := newHouse(t, t.TempDir(), func(c *guard.Config) {
		fake := c.Host.(*hostnet.Fake)
		fake.Err = func(method string) error {
			mu.Lock()
			defer mu.Unlock()
			if method == "Apply" {
				return refuse
			}
			return nil
		}
		c.Host, c.Failed = unwatched{fake}, func(error) { failures.Add(1) }
	})
	eventually(t, "the problem", wide, func() bool { return h.Status().Problem != "" && h.Status().Fallback == h.Status().Problem })
	client, _ := h.serve(t, "one")
	client.Sockets(sockets(), nil)
	eventually(t, "serve hears it", wide, func() bool { return client.Status().State.Owner && !client.Status().State.Applied })
	eventually(t, "each failure is told", wide, func() bool { return failures.Load() > 2 })
	for said, want := range map[string]int{"does not look as it should": 1, "was changed to what it should": 0, "by the clock alone": 1} {
		if got := h.logs.FilterMessageSnippet(said).Len(); got != want {
			t.Errorf("%q is in the log %d times, want %d", said, got, want)
		}
	}
	mu.Lock()
	refuse = nil
	mu.Unlock()
	eventually(t, "it is tried again", wide, func() bool { return h.Status().Problem == "" && client.Status().State.Applied })
}

func TestNewSaysWhatIsWrong(t *testing.T) {
	host := &hostnet.Fake{}
	for want, c := range map[string]guard.Config{
		"Config.Host must be set":    {State: hostState()},
		"there is nothing to guard":  {Host: host},
		"without a listen address":   {Host: host, State: hostnet.State{Mode: hostnet.LinkLocal}},
		"loopback, which pods canno": {Host: host, State: hostnet.State{Mode: hostnet.LinkLocal, Own: []netip.Addr{netip.MustParseAddr("127.0.0.1")}}},
	} {
		if _, err := guard.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want it to say %q", err, want)
		}
	}
}

// TestStrangersAreTurnedAway by the user of the process.
func TestStrangersAreTurnedAway(t *testing.T) {
	space.Needs(t, "root", os.Geteuid() == 0)
	folder := t.TempDir()
	for path := folder; path != "/tmp" && path != "/"; path = filepath.Dir(path) {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	h := newHouse(t, folder, func(c *guard.Config) { c.UID = 4321 })
	for uid, want := range map[int]bool{0: true, 4321: true, 1234: false} {
		var conn net.Conn
		err := space.OnThread(func() (err error) {
			// Of this thread alone, which ends after this.
			if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0)); errno != 0 {
				return errno
			}
			for range 100 {
				if conn, err = net.Dial("unixpacket", h.cfg.Socket); err == nil {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write([]byte(`.{"hello":{"instance":"x"}}`)) // it may be closed already
		_ = conn.SetReadDeadline(time.Now().Add(wide))
		buf := make([]byte, 1000)
		n, err := conn.Read(buf)
		if got := err == nil && strings.Contains(string(buf[:n]), "welcome"); got != want {
			t.Errorf("user %d: welcome %v (%v), want %v", uid, got, err, want)
		}
		_ = conn.Close()
	}
}

// TestALockThatWasRemovedIsTakenAgain, so that there is one owner, and it can be found.
func TestALockThatWasRemovedIsTakenAgain(t *testing.T) {
	h := newHouse(t, t.TempDir(), nil)
	eventually(t, "the first guard owns the node", wide, func() bool { return h.Status().Owner })
	if err := os.Remove(h.cfg.Lock); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its lock is there again", wide, func() bool { _, held := guard.Holder(h.cfg.Lock); return held })
	eventually(t, "it owns the node again", wide, func() bool { return h.Status().Owner })
	if n := h.logs.FilterMessageSnippet("the lock's file was removed").Len(); n != 1 {
		t.Errorf("the log says so %d times", n)
	}
	second := newHouse(t, filepath.Dir(h.cfg.Lock), func(c *guard.Config) { c.Socket += "2" })
	eventually(t, "a second guard waits", wide, func() bool { return second.logs.FilterMessageSnippet("another guard owns this node").Len() == 1 })
	if second.Status().Owner {
		t.Error("there are two owners")
	}
}
