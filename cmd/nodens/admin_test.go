package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/nodens-dns/nodens/forwarder/upstream"
)

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func TestAdmin(t *testing.T) {
	// No server answers: neither liveness nor readiness may care.
	h := serve(t, "listen: [127.0.0.1:0]\nroutes: [{zones: [.], servers: [127.0.0.1:9], timeout: 100ms}]\n")
	ask(t, "udp", h.address(0), "a.example.", 0)
	server := httptest.NewServer(h.adminRoutes(&h.began.Admin))
	defer server.Close()
	for path, want := range map[string]struct {
		status int
		body   string
	}{
		"/health":              {200, "OK"},
		"/livez":               {200, "alive"},
		"/readyz":              {200, "ready"},
		"/metrics":             {200, `coredns_dns_requests_total{family="1",proto="udp",server="dns://` + h.address(0).String() + `",type="A",view="",zone="."} 1`},
		"/statusz":             {200, "<title>nodens</title>"},
		"/":                    {200, "<title>nodens</title>"},
		"/statusz?format=json": {200, `"queriesPerSecond"`},
		"/debug/pprof/":        {200, "goroutine"},
		"/nothing":             {404, ""},
	} {
		status, body := get(t, server.URL+path)
		if status != want.status || !strings.Contains(body, want.body) {
			t.Errorf("%s: %d, want %d and %q in\n%.2000s", path, status, want.status, want.body, body)
		}
	}
	if _, body := get(t, server.URL+"/health"); body != "OK" {
		t.Errorf("/health says %q, want OK alone", body)
	}
	if err := h.end(); err != nil {
		t.Error(err)
	}
	if status, body := get(t, server.URL+"/readyz"); status != 503 || !strings.Contains(body, "stopping") {
		t.Errorf("/readyz after the stop: %d %q", status, body)
	}
	if status, _ := get(t, server.URL+"/livez"); status != 200 {
		t.Errorf("/livez after the stop: %d, want 200: a stop is no reason to be killed", status)
	}
}

func TestProfilesAreForLoopback(t *testing.T) {
	for _, test := range []struct {
		who, from string
		want      int
	}{
		{"loopback", "127.0.0.1:5000", 200},
		{"loopback", "[::1]:5000", 200},
		{"loopback", "[::ffff:127.0.0.1]:5000", 200},
		{"loopback", "192.0.2.1:5000", 403},
		{"loopback", "nonsense", 403},
		{"all", "192.0.2.1:5000", 200},
	} {
		recorder := httptest.NewRecorder()
		request := httptest.NewRequest("GET", "/debug/pprof/", nil)
		request.RemoteAddr = test.from
		onlyFor(test.who, "admin.pprof", say("profile")).ServeHTTP(recorder, request)
		if recorder.Code != test.want {
			t.Errorf("for %s, from %s: %d, want %d", test.who, test.from, recorder.Code, test.want)
		}
	}
	d := newDaemon(nopLog(), level(), keepMemory)
	d.began.Admin.Pprof = "off"
	recorder := httptest.NewRecorder()
	d.adminRoutes(&d.began.Admin).ServeHTTP(recorder, httptest.NewRequest("GET", "/debug/pprof/", nil))
	if recorder.Code != 404 {
		t.Errorf("profiles are off and give %d, want 404", recorder.Code)
	}
}

// DNS is served while another program has the admin address, and the address
// is taken when it is free.
func TestBusyAdminAddress(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	up := newScripted(t, 3, 0)
	path := filepath.Join(t.TempDir(), "nodens.yaml")
	write(t, path, fmt.Sprintf("version: v1\nlisten: [127.0.0.1:0]\nadmin: {address: %q}\nroutes: [{zones: [.], servers: [%q]}]\n", taken.Addr(), up.address))
	h := serveFile(t, path)
	await(t, "the warning", func() bool { return h.logs.FilterMessageSnippet("an address for HTTP cannot be had").Len() == 1 })
	h.expect("udp", h.address(0), "a.example.", 0, "NOERROR 192.0.2.3")
	address := taken.Addr().String()
	await(t, "a second try", func() bool { return h.adminFailures.Load() >= 2 })
	taken.Close()
	await(t, "the address", func() bool { return h.logs.FilterMessageSnippet("an address for HTTP is served").Len() == 1 })
	if status, body := get(t, "http://"+address+"/metrics"); status != 200 || !strings.Contains(body, "nodens_admin_bind_failures_total ") {
		t.Errorf("metrics: %d", status)
	}
	if h.logs.FilterMessageSnippet("an address for HTTP cannot be had").Len() != 1 {
		t.Error("the busy address was logged more than once")
	}
}

func TestStatusCommand(t *testing.T) {
	up := newScripted(t, 3, 0)
	h := serve(t, fmt.Sprintf("listen: [127.0.0.1:0]\nnode: {name: n1}\nroutes: [{zones: [.], servers: [%q]}]\n", up.address))
	ask(t, "udp", h.address(0), "a.example.", 0)
	server := httptest.NewServer(h.adminRoutes(&h.began.Admin))
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	other := httptest.NewServer(say("hello"))
	defer other.Close()
	for name, test := range map[string]struct {
		args   string
		status int
		want   []string
	}{
		"text":         {"-address " + address, 0, []string{"ready", "node n1", "route    . -> " + up.address.String(), "external", "LISTEN"}},
		"wrong format": {"-address " + address + " -o xml", 2, []string{`-o is "xml"; write text or json`}},
		"nobody there": {"-address 127.0.0.1:1", 1, []string{"no daemon answers at 127.0.0.1:1", "refused; start it"}},
		"not a host":   {"-address :::", 1, []string{"-address"}},
		"not nodens":   {"-address " + strings.TrimPrefix(other.URL, "http://"), 1, []string{"not as nodens does"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			status := run(t.Context(), append([]string{"status"}, strings.Fields(test.args)...), noEnv, &out, &out)
			for _, want := range test.want {
				if status != test.status || !strings.Contains(out.String(), want) {
					t.Errorf("status %d, want %d and %q in\n%s", status, test.status, want, &out)
				}
			}
		})
	}
	var out strings.Builder
	var r report
	if status := run(t.Context(), []string{"status", "-o", "json", "-address", address}, noEnv, &out, &out); status != 0 {
		t.Errorf("status %d", status)
	}
	if err := json.Unmarshal([]byte(out.String()), &r); err != nil || len(r.Routes) != 1 || r.Routes[0].Servers[0].Sent != 1 {
		t.Errorf("JSON: %v\n%s", err, &out)
	}
}

func TestRates(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(seconds int, queries uint64) totals {
		return totals{at: start.Add(time.Duration(seconds) * time.Second), bySource: [5]uint64{queries}}
	}
	var r rates
	if got := r.oldest(at(3, 9), start); got != (totals{at: start}) {
		t.Errorf("without samples the start counts, got %v", got)
	}
	for s := 5; s <= 200; s += 5 {
		r.add(at(s, uint64(s)*10))
	}
	if got := r.oldest(at(201, 2010), start); got != at(140, 1400) {
		t.Errorf("the oldest sample is %v, want the one of a minute before the last", got)
	}
	r.add(at(205, 50)) // a new forwarder counts from zero
	if got := r.oldest(at(206, 60), start); got != at(205, 50) {
		t.Errorf("after a fall the oldest sample is %v, want the one after it", got)
	}
	if got := r.oldest(at(206, 10), start).at; got != start {
		t.Error("a sample above the totals of now was taken")
	}
}

func TestReportInWords(t *testing.T) {
	s := fullSnapshot()
	s.Now = 10 * time.Second
	target := &s.Routes[1].Servers.Targets[0]
	s.Routes[1].Servers.Ejections[upstream.ClusterTier], s.Routes[1].Servers.Spills[upstream.ClusterTier] = 2, 9
	target.Out, target.OutUntil, target.Misses = true, 12500*time.Millisecond, 4
	s.Routes[0].Topology.Empty, s.Routes[0].Topology.EmptyFor = true, 90*time.Second
	s.Routes[0].File.LastError = "line 3 is odd"
	s.Routes[0].API = nil // its notes are tested with a daemon
	s.Listens[0].UDP.Overflowed, s.Listens[0].TCP.EvictedIdle = 5, 2
	s.NotReady = "stopping"
	r := newReport(&s, totals{at: s.At}, totals{at: s.At.Add(-time.Minute)})
	if got, want := r.Routes[1].Servers[0].Why, "silent 4 times in a row, used again when probes succeed, in 2.5s at the earliest"; got != want {
		t.Errorf("why is %q, want %q", got, want)
	}
	if got := r.Routes[1].Served[0].Events; got != "2 ejections, 9 spilled here" {
		t.Errorf("events of the tier: %q", got)
	}
	notes := []string{
		"The file cannot be used; what it said before counts: line 3 is odd",
		"No endpoint has been known for 1m30s; the last known ones are asked.",
	}
	if diff := cmp.Diff(notes, r.Routes[0].Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	if got := r.Listens[0]; got.Dropped != 7 || strings.Join(got.Reasons, ", ") != "5 receive buffer full, 2 TCP connections closed to make room" {
		t.Errorf("drops: %d, %q", got.Dropped, got.Reasons)
	}
	r.Config.Error = "c.yaml:3: <b>odd</b>; mend it"
	page, err := renderStatus(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"not ready: stopping", "192.0.2.53:53", "avoided", "line 3 is odd", "&lt;b&gt;odd&lt;/b&gt;", "(every other name)",
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, never := range []string{"<script", "http://", "https://", "<b>odd", "%!"} {
		if strings.Contains(string(page), never) {
			t.Errorf("the page has %q", never)
		}
	}
	var text strings.Builder
	if err := printReport(&text, &r); err != nil || !strings.Contains(text.String(), "NOT taken over: c.yaml:3") {
		t.Errorf("text: %v\n%s", err, &text)
	}
}

func TestNumbersForPeople(t *testing.T) {
	for got, want := range map[string]string{
		humanBytes(0): "0 B", humanBytes(1536): "1.5 KiB", humanBytes(32 << 20): "32.0 MiB", humanBytes(3 << 30): "3.0 GiB",
		humanCount(999): "999", humanCount(1000): "1\u202f000", humanCount(uint64(1234567)): "1\u202f234\u202f567",
		humanRate(0): "0", humanRate(0.123): "0.12", humanRate(12.4): "12", humanRate(1234.5): "1\u202f235",
		humanTime(59 * time.Second): "59 s", humanTime(61 * time.Minute): "1 h 1 min", humanTime(49 * time.Hour): "2 d 1 h",
		shortDuration(90 * time.Minute): "1h30m", shortDuration(24 * time.Hour): "24h", shortDuration(0): "0s",
		shortBytes(1 << 20): "1Mi", shortBytes(1500): "1500 bytes", orList([]string{"a"}): "a",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A handler that panics costs its request, and the log says so.
func TestPanicOfAHandlerIsLogged(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		serveHTTP(ctx, l, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("at the disco") }), zap.New(core))
	}()
	if r, err := http.Get("http://" + l.Addr().String()); err == nil {
		r.Body.Close()
		t.Error("the request of a handler that panics was answered")
	}
	stop()
	<-done
	if logs.FilterMessageSnippet("at the disco").FilterLevelExact(zap.ErrorLevel).Len() != 1 {
		t.Errorf("the panic was not logged: %v", logs.All())
	}
}
