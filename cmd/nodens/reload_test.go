package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/bench/space"
)

func TestReload(t *testing.T) {
	one, two := newScripted(t, 1, 0), newScripted(t, 2, 0)
	to := func(s *scripted) string { return fmt.Sprintf("routes: [{zones: [.], servers: [%q]}]\n", s.address) }
	h := serve(t, "listen: [127.0.0.1:0]\n"+to(one))
	address := h.address(0)
	h.expect("udp", address, "a.example.", 0, "NOERROR 192.0.2.1")

	// A change that leaves the routes alone keeps cache, forwarder and sockets.
	before := h.current.Load()
	if r := h.reconfigure("listen: [127.0.0.1:0]\n" + to(one) + "log: {level: warn}\n"); r.Err != nil {
		t.Fatal(r.Err)
	}
	after := h.current.Load()
	if after == before || after.cache != before.cache || after.forwarder != before.forwarder ||
		after.routes[0] != before.routes[0] || after.listens[0] != before.listens[0] {
		t.Error("a change of the log level made parts anew")
	}
	if h.level.String() != "warn" {
		t.Errorf("the log level is %s, want warn", h.level)
	}
	one.changed.Store(true)
	h.expect("udp", address, "a.example.", 0, "NOERROR 192.0.2.1") // the cache survives

	// Another server: what the old one said is forgotten.
	if r := h.reconfigure("listen: [127.0.0.1:0]\n" + to(two)); r.Err != nil {
		t.Fatal(r.Err)
	}
	h.expect("udp", address, "a.example.", 0, "NOERROR 192.0.2.2")

	// A change of rotate and limits needs another forwarder and other sockets.
	before = h.current.Load()
	if r := h.reconfigure("listen: [127.0.0.1:0]\nlimits: {followersPerMiss: 5}\n" + to(two)); r.Err != nil {
		t.Fatal(r.Err)
	}
	after = h.current.Load()
	if after.cache != before.cache || after.routes[0] != before.routes[0] || after.forwarder == before.forwarder {
		t.Error("a change of limits must keep cache and routes and change the forwarder")
	}
}

// A stop that comes while a configuration is taken over ends in time, whichever of the
// two is first.
func TestStopDuringReload(t *testing.T) {
	up := newScripted(t, 1, 0)
	for i := range 8 {
		h := serve(t, fmt.Sprintf("listen: [127.0.0.1:0]\nroutes: [{zones: [.], servers: [%q]}]\n", up.address))
		h.expect("udp", h.address(0), "a.example.", 0, "NOERROR 192.0.2.1")
		write(t, h.path, fmt.Sprintf("version: v1\nlisten: [127.0.0.1:0]\nadmin: {address: 127.0.0.1:0}\ncache: {size: %dMi}\nroutes: [{zones: [.], servers: [%q]}]\n", 2+i, up.address))
		time.Sleep(time.Duration(i) * 10 * time.Millisecond) // the change is noticed, or not yet
		began := time.Now()
		if err := h.end(); err != nil {
			t.Errorf("stop %d: %v", i, err)
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("stop %d took %v", i, took)
		}
	}
}

// TestReloadKeepsTheServersCounters changes how a route's servers are asked, and
// one of them: what was counted of the route and of the server that stays goes on.
func TestReloadKeepsTheServersCounters(t *testing.T) {
	one, two, three := newScripted(t, 1, 0), newScripted(t, 2, 0), newScripted(t, 3, 0)
	config := func(timeout string, servers ...*scripted) string {
		text := "listen: [127.0.0.1:0]\nroutes: [{zones: [.], choose: sequential, timeout: " + timeout + ", servers: ["
		for _, s := range servers {
			text += fmt.Sprintf("%q, ", s.address)
		}
		return text + "]}]\n"
	}
	h := serve(t, config("1s", one, two))
	h.expect("udp", h.address(0), "a.example.", 0, "NOERROR 192.0.2.1")
	for i, c := range []string{config("2s", one, two), config("1s", one, three), config("3s", one, two)} {
		before := h.current.Load().routes[0]
		if r := h.reconfigure(c); r.Err != nil {
			t.Fatal(r.Err)
		}
		after := h.current.Load().routes[0]
		if after == before {
			t.Fatal("the route was not made anew: this tests nothing")
		}
		h.expect("udp", h.address(0), fmt.Sprintf("%d.example.", i), 0, "NOERROR 192.0.2.1")
		want := uint64(i + 2)
		if st := after.group.Status(); st.Exchanges < want || st.Targets[0].Sent < want {
			t.Errorf("%d queries, %d of them to the first server; %d were asked since the start", st.Exchanges, st.Targets[0].Sent, want)
		}
	}
}

func TestReloadWholeOrNotAtAll(t *testing.T) {
	one, two := newScripted(t, 1, 0), newScripted(t, 2, 0)
	good := fmt.Sprintf("listen: [127.0.0.1:0]\nroutes: [{zones: [.], servers: [%q]}]\n", one.address)
	taken, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	h := serve(t, good)
	before := h.current.Load()
	for name, test := range map[string]struct{ config, want string }{
		"a mistake": {fmt.Sprintf("routes: [{zones: [.], servers: [%q]}]\nlog: {level: loud}\n", two.address), `log.level is "loud"`},
		"a taken port": {
			fmt.Sprintf("listen: [127.0.0.1:0, %q]\nroutes: [{zones: [.], servers: [%q]}]\n", taken.LocalAddr(), two.address),
			"stop the program that has it",
		},
		"a missing file": {
			fmt.Sprintf("listen: [127.0.0.1:0]\nroutes:\n- {zones: [.], servers: [%q]}\n- {zones: [a.example], topology: {file: /nowhere}}\n", two.address),
			"/nowhere does not exist",
		},
		"no file at all": {"", "is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			failures := h.reloads.result().Failed
			r := h.reconfigure(test.config)
			if r.Err == nil || !strings.Contains(r.Err.Error(), test.want) || r.Failed != failures+1 {
				t.Errorf("result %v after %d failures, want one more that says %q", r.Err, r.Failed, test.want)
			}
			if h.current.Load() != before {
				t.Error("something changed")
			}
			h.expect("udp", h.address(0), strings.ReplaceAll(name, " ", "-")+".example.", 0, "NOERROR 192.0.2.1")
			lines := h.logs.FilterMessageSnippet("was not taken over").Len()
			h.reload(t.Context(), false) // the same again is no news
			if h.reloads.result().Failed != failures+1 || h.logs.FilterMessageSnippet("was not taken over").Len() != lines {
				t.Error("the same mistake was counted or logged twice")
			}
		})
	}
	replace(t, h.path, head+good)
	await(t, "the old file to be good again", func() bool { return h.reloads.result().Err == nil })
	if h.current.Load() != before {
		t.Error("the same file made new parts")
	}
}

// What was bound before the mistake was met is free again.
func TestFailedReloadLeavesNothing(t *testing.T) {
	taken, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	routes := "routes: [{zones: [.], servers: [127.0.0.1:9]}]\n"
	h := serve(t, "listen: [127.0.0.1:0]\n"+routes)
	free := space.Free(t).String()
	r := h.reconfigure(fmt.Sprintf("listen: [%q, %q]\n%s", free, taken.LocalAddr(), routes))
	if r.Err == nil {
		t.Error("a taken port was no mistake")
	}
	again, err := net.ListenPacket("udp", free)
	if err != nil {
		t.Fatalf("after a reload that failed: %v", err)
	}
	again.Close()
}

// What is refused is not tried again with every hint of a change in a busy folder, but
// is when what was missing may be there.
func TestRefusedReloadRests(t *testing.T) {
	resolv := filepath.Join(t.TempDir(), "resolv.conf")
	write(t, resolv, "nameserver 192.0.2.1\n")
	routes := "routes: [{zones: [.], servers: [127.0.0.1:9]}]\n"
	h := serve(t, "listen: [127.0.0.1:0]\n"+routes)
	made := func() int { return h.logs.FilterMessage("nameservers taken from resolv.conf").Len() }
	next := "routes: [{zones: [.], resolvConf: " + resolv + "}]\n"

	if r := h.reconfigure("listen: [127.0.0.1:0, 192.0.2.77:53]\n" + next); r.Err == nil || !strings.Contains(r.Err.Error(), "this machine has no such address") {
		t.Fatalf("a foreign address: %v", r.Err)
	}
	if n := made(); n != 0 {
		t.Errorf("routes were made %d times for addresses that are not there", n)
	}

	taken, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if r := h.reconfigure(fmt.Sprintf("listen: [127.0.0.1:0, %q]\n%s", taken.LocalAddr(), next)); r.Err == nil {
		t.Fatal("a taken port was no mistake")
	}
	const hints = 20
	began := time.Now()
	for range hints {
		write(t, filepath.Join(filepath.Dir(h.path), "other"), "a log that grows")
		time.Sleep(2 * settle)
	}
	most := 2 + int(time.Since(began)/restAtFirst)
	if n := made(); n > most {
		t.Errorf("it was tried %d times within %v, want at most %d", n, time.Since(began), most)
	}
	taken.Close()
	await(t, "the port that is free now", func() bool { return h.reloads.result().Err == nil })
	if n := h.reloads.result().Failed; n != 2 {
		t.Errorf("%d failures, want 2", n)
	}
}

func TestReloadOfListenAddresses(t *testing.T) {
	up := newScripted(t, 1, 100*time.Millisecond)
	routes := fmt.Sprintf("routes: [{zones: [.], servers: [%q]}]\n", up.address)
	h := serve(t, "listen: [127.0.0.1:0]\n"+routes)
	first := h.address(0)
	if r := h.reconfigure("listen: [127.0.0.1:0, \"[::1]:0\"]\n" + routes); r.Err != nil {
		t.Fatal(r.Err)
	}
	if h.address(0) != first {
		t.Fatal("the address that stayed was bound anew")
	}
	second := h.address(1)
	h.expect("udp", first, "a.example.", 0, "NOERROR 192.0.2.1")
	h.expect("tcp", second, "a.example.", 0, "NOERROR 192.0.2.1")

	// A query that waits for a server when its address goes still gets its reply.
	waiting := make(chan string)
	go func() {
		reply, _, err := (&dns.Client{Timeout: patience}).Exchange(new(dns.Msg).SetQuestion("slow.example.", dns.TypeA), second.String())
		if err != nil {
			waiting <- err.Error()
			return
		}
		waiting <- answerOf(reply)
	}()
	await(t, "the slow query", func() bool { return up.sawName("slow.example.") })
	if r := h.reconfigure("listen: [127.0.0.1:0]\n" + routes); r.Err != nil {
		t.Fatal(r.Err)
	}
	if got := <-waiting; got != "NOERROR 192.0.2.1" {
		t.Errorf("the query under way got %s", got)
	}
	await(t, "the address to be closed", func() bool {
		c, err := net.DialTimeout("tcp", second.String(), time.Second)
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	h.expect("udp", first, "b.example.", 0, "NOERROR 192.0.2.1")
}

// The servers change under load: every query gets its reply,
// those too that wait for a server which is no longer configured.
func TestReloadUnderLoadLosesNothing(t *testing.T) {
	ups := []*scripted{newScripted(t, 1, 40*time.Millisecond), newScripted(t, 2, 40*time.Millisecond)}
	config := func(i int) string {
		return fmt.Sprintf("listen: [127.0.0.1:0]\nroutes: [{zones: [.], servers: [%q], timeout: 10s}]\n", ups[i%2].address)
	}
	h := serve(t, config(0))
	l := crowd{to: h.address(0)}
	for i := range 12 {
		l.clients.Go(func() { l.client(t, []string{"udp", "udp", "tcp"}[i%3], i) })
	}
	for i := range 4 {
		more := l.sent.Load() + 50
		await(t, "load", func() bool { return l.sent.Load() > more })
		if r := h.reconfigure(config(i + 1)); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	l.over.Store(true)
	l.clients.Wait()
	if l.sent.Load() != l.answered.Load() || l.failed.Load() != 0 {
		t.Errorf("%d queries sent, %d answered, %d of them with an error", l.sent.Load(), l.answered.Load(), l.failed.Load())
	}
	if ups[0].asked.Load() == 0 || ups[1].asked.Load() == 0 {
		t.Error("not both servers were asked: this tests nothing")
	}
}

// A link that leads through a folder nobody watches changes without an event:
// only the signal tells.
func TestReloadBySignal(t *testing.T) {
	up := newScripted(t, 1, 0)
	config := head + fmt.Sprintf("listen: [127.0.0.1:0]\nroutes: [{zones: [.], servers: [%q]}]\n", up.address)
	dir := t.TempDir()
	for _, d := range []string{"a", "b", "c", "d"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	write(t, at("c/real"), config)
	write(t, at("d/real"), config+"log: {level: warn}\n")
	link(t, at("c/real"), at("b/link"))
	link(t, at("b/link"), at("a/nodens.yaml"))
	h := serveFile(t, at("a/nodens.yaml"))
	time.Sleep(settle) // the look at the start is over
	link(t, at("d/real"), at("b/link"))
	time.Sleep(4 * settle)
	if h.level.String() != "info" {
		t.Fatal("the change was seen without the signal: this tests nothing")
	}
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGUSR1} {
		if err := syscall.Kill(syscall.Getpid(), s); err != nil {
			t.Fatal(err)
		}
		want := map[syscall.Signal]string{syscall.SIGHUP: "warn", syscall.SIGUSR1: "info"}[s]
		await(t, "the level "+want, func() bool { return h.level.String() == want })
		link(t, at("c/real"), at("b/link"))
	}
}

// link makes a symbolic link in place of what was there.
func link(t *testing.T, target, path string) {
	t.Helper()
	if err := errors.Join(os.Symlink(target, path+".new"), os.Rename(path+".new", path)); err != nil {
		t.Fatal(err)
	}
}

func TestNeedsRestart(t *testing.T) {
	start := defaultConfig()
	c := start
	if got := needsRestart(&c, &start); got != nil {
		t.Errorf("nothing changed, and a restart is needed for %v", got)
	}
	c.Admin.Pprof, c.Log.Format, c.StopGrace, c.Host.Mode = "off", "console", time.Minute, "service"
	if got := needsRestart(&c, &start); !slices.Equal(got, []string{"log.format", "host.mode"}) {
		t.Errorf("a restart is needed for %q", got)
	}
}

// What a reload does not bring into force is told, until it is the old again.
func TestReloadTellsWhatWaits(t *testing.T) {
	routes := "routes: [{zones: [.], servers: [127.0.0.1:9]}]\nlisten: [127.0.0.1:0]\n"
	h := serve(t, routes)
	if r := h.reconfigure(routes + "log: {format: console}\n"); r.Err != nil {
		t.Fatal(r.Err)
	}
	if got := h.report().Config.Waits; !slices.Equal(got, []string{"log.format"}) {
		t.Errorf("it says that a restart is waited for by %q", got)
	}
	if r := h.reconfigure(routes + "log: {level: warn}\n"); r.Err != nil || h.report().Config.Waits != nil {
		t.Errorf("%v, and %q wait for a restart", r.Err, h.report().Config.Waits)
	}
}

// The HTTP side and the times of a stop are those of the configuration in force.
func TestReloadOfAdmin(t *testing.T) {
	routes := "routes: [{zones: [.], servers: [127.0.0.1:9]}]\nlisten: [127.0.0.1:0]\n"
	path := filepath.Join(t.TempDir(), "nodens.yaml")
	admin := func(rest string) string {
		return "version: v1\n" + routes + "stopGrace: 1m\nadmin: {address: 127.0.0.1:0" + rest + "}\n"
	}
	write(t, path, admin(""))
	h := serveFile(t, path)
	health, metrics := space.Free(t).String(), space.Free(t).String()
	replace(t, path, admin(fmt.Sprintf(", health: [%q], metrics: [%q], pprof: 'off'", health, metrics))+"stopDelay: 1ms\n")
	status := func(address, page string) int {
		r, err := http.Get("http://" + address + page)
		if err != nil {
			return 0
		}
		r.Body.Close()
		return r.StatusCode
	}
	await(t, "the new address for health checks", func() bool { return status(health, "/health") == 200 })
	await(t, "the new address of the metrics", func() bool { return status(metrics, "/metrics") == 200 })
	await(t, "the end of the profiles", func() bool { return status(h.adminAt.Load().(string), "/debug/pprof/") == 404 })
	if got := h.stopPatience(); got != time.Minute+time.Millisecond {
		t.Errorf("a stop may take %v", got)
	}
	replace(t, path, admin(""))
	await(t, "the end of an address", func() bool { return status(health, "/health") == 0 && status(metrics, "/metrics") == 0 })

	replace(t, path, admin(", metricsTLS: {listen: [127.0.0.1:0], certFile: /nowhere, keyFile: /nowhere}"))
	await(t, "the refusal of a certificate that is not there", func() bool {
		err := h.reloads.result().Err
		return err != nil && strings.Contains(err.Error(), "/nowhere")
	})
	if h.current.Load().config.Admin.MetricsTLS.Listen != nil {
		t.Error("it was taken over")
	}
}

// TestReloadThatIsAskedFor says what came of it, also when that is nothing.
func TestReloadThatIsAskedFor(t *testing.T) {
	good := "listen: [127.0.0.1:0]\nroutes: [{zones: [.], servers: [127.0.0.1:9]}]\n"
	h := serve(t, good)
	expect := func(what, says string, n int) {
		t.Helper()
		h.signals <- syscall.SIGHUP
		await(t, what, func() bool { return h.logs.FilterMessageSnippet(says).Len() == n })
	}
	expect("no change", "nothing changed", 1)
	expect("no change again", "nothing changed", 2)
	if r := h.reconfigure("nonsense: 1\n" + good); r.Err == nil || r.Failed != 1 {
		t.Fatalf("%+v", r)
	}
	expect("the same mistake", "was not taken over", 2)
	if r := h.reloads.result(); r.Failed != 1 {
		t.Errorf("one file is counted %d times", r.Failed)
	}
	if r := h.reconfigure("nonsense: 1\n" + good + "# another file\n"); r.Err == nil || r.Failed != 2 {
		t.Errorf("another file with the same mistake: %+v", r)
	}
}
