package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/bench/space"
)

// admin serves the admin address of a daemon under test.
func admin(t *testing.T, h *house) (address string) {
	t.Helper()
	server := httptest.NewServer(h.adminRoutes(&h.began.Admin))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// call runs a command and returns its status and what it printed.
func call(t *testing.T, args ...string) (status int, out string) {
	t.Helper()
	var both bytes.Buffer
	status = run(t.Context(), args, noEnv, &both, &both)
	return status, both.String()
}

func TestExplainCommand(t *testing.T) {
	up := newScripted(t, 7, 0)
	h := serve(t, fmt.Sprintf("listen: [127.0.0.1:0]\nnode: {name: n1}\nlocal: {deny: [corp.example]}\nclients: {deny: [10.9.0.0/16]}\n"+
		"routes: [{zones: [example], servers: [%q], hosts: {entries: [192.0.2.99 fixed.example]}}]\n", up.address))
	address := admin(t, h)
	ask(t, "udp", h.address(0), "a.example.", 0)
	ask(t, "udp", h.address(0), "A.example.", 0)
	for name, test := range map[string]struct {
		args   string
		status int
		want   []string
	}{
		"in memory": {
			"A.Example -client 10.0.0.7", 0,
			[]string{"question a.example. A\nanswer   NOERROR from memory\n", "client   10.0.0.7 may ask", "from a server of tier external, for clients\n", "holds for", "1 hits", "a.example. ", "192.0.2.7", "example. of example. -> " + up.address.String(), "ATTEMPT", "1 or 2 or 3", "node n1"},
		},
		"not in memory":  {"b.example AAAA", 0, []string{"answer   the servers are asked\n", "memory   nothing\n"}},
		"a rule":         {"fixed.example", 0, []string{"answer   NOERROR by a rule of the route", "fixed.example. ", "192.0.2.99"}},
		"a denied name":  {"x.corp.example", 0, []string{"answer   made here: there is no such name\n", "zone     corp.example.\n"}},
		"no route":       {"elsewhere.", 0, []string{"answer   SERVFAIL: no route has a zone for the name\n"}},
		"a transfer":     {"a.example AXFR", 0, []string{"answer   REFUSED: questions of this type"}},
		"a denied one":   {"a.example -client 10.9.1.1", 0, []string{"10.9.1.1 may not ask: see clients in the configuration"}},
		"no name":        {"", 2, []string{"it takes a name"}},
		"a wrong name":   {"a..b", 1, []string{`"a..b" is not a domain name; write`}},
		"a wrong type":   {"a.example NONSENSE", 1, []string{`"NONSENSE" is not a type`}},
		"a wrong client": {"-client x a.example", 1, []string{`client is "x"; write an address`}},
		"too much":       {"a.example A B", 2, []string{`"B" is too much`}},
	} {
		t.Run(name, func(t *testing.T) {
			status, out := call(t, append([]string{"explain", "-address", address}, strings.Fields(test.args)...)...)
			for _, want := range test.want {
				if status != test.status || !strings.Contains(out, want) {
					t.Errorf("status %d, want %d and %q in\n%s", status, test.status, want, out)
				}
			}
		})
	}
	_, out := call(t, "explain", "a.example", "-o", "json", "-address", address)
	var r explainReport
	if err := json.Unmarshal([]byte(out), &r); err != nil || len(r.Kept) != 1 || r.Kept[0].Hits != 1 || len(r.Route.Servers) != 1 {
		t.Errorf("JSON: %v\n%s", err, out)
	}
}

func TestFlushCommand(t *testing.T) {
	up := newScripted(t, 7, 0)
	h := serve(t, fmt.Sprintf("listen: [127.0.0.1:0]\nroutes: [{zones: [.], servers: [%q]}]\n", up.address))
	address := admin(t, h)
	for _, name := range []string{"a.example.", "b.a.example.", "c.example."} {
		ask(t, "udp", h.address(0), name, 0)
	}
	for _, step := range []struct {
		args   string
		status int
		want   string
	}{
		{"example", 0, "dropped 0 of 3 answers: example. (process "},
		{"example", 0, "write .example.\n"},
		{"A.example.", 0, "dropped 1 of 3 answers: a.example."},
		{".a.example", 0, "dropped 1 of 2 answers: a.example. and below"},
		{"-all -o json", 0, `"dropped": 1`},
		{"-all", 0, "dropped 0 of 0 answers: . and below"},
		{"", 2, "it takes a name, a suffix"},
		{"a.example -all", 2, "it takes a name, a suffix"},
		{"a..b", 1, "is not a domain name"},
	} {
		status, out := call(t, append([]string{"flush", "-address", address}, strings.Fields(step.args)...)...)
		if status != step.status || !strings.Contains(out, step.want) {
			t.Errorf("flush %s: status %d, want %d and %q in\n%s", step.args, status, step.status, step.want, out)
		}
	}
	if n := h.logs.FilterMessageSnippet("answers were dropped on request").Len(); n != 6 {
		t.Errorf("the log has %d lines about it, want 6", n)
	}
	up.changed.Store(true)
	h.expect("udp", h.address(0), "c.example.", 0, "NOERROR 198.51.100.7")
}

// What changes something is not to be had by accident: only from loopback, only
// by a POST, and not by a page that a browser shows.
func TestWhoMayControl(t *testing.T) {
	h := serve(t, "listen: [127.0.0.1:0]\nroutes: [{zones: [.], servers: [127.0.0.1:9]}]\n")
	for name, test := range map[string]struct {
		control, method, path, from string
		header                      http.Header
		want                        int
	}{
		"loopback":             {"loopback", "POST", "/flush?name=a.", "127.0.0.1:5", nil, 200},
		"loopback, IPv6":       {"loopback", "POST", "/flush?name=a.", "[::1]:5", nil, 200},
		"a pod":                {"loopback", "POST", "/flush?name=a.", "10.0.0.7:5", nil, 403},
		"a pod explains":       {"loopback", "GET", "/explain?name=a.", "10.0.0.7:5", nil, 403},
		"a pod tails":          {"loopback", "GET", "/tail", "10.0.0.7:5", nil, 403},
		"a pod, all allowed":   {"all", "POST", "/flush?name=a.", "10.0.0.7:5", nil, 200},
		"by GET":               {"loopback", "GET", "/flush?name=a.", "127.0.0.1:5", nil, 405},
		"off":                  {"off", "POST", "/flush?name=a.", "127.0.0.1:5", nil, 404},
		"off, explain":         {"off", "GET", "/explain?name=a.", "127.0.0.1:5", nil, 404},
		"a page of a browser":  {"loopback", "POST", "/flush?name=a.", "127.0.0.1:5", http.Header{"Sec-Fetch-Site": {"cross-site"}}, 403},
		"a page, old browser":  {"loopback", "POST", "/flush?name=a.", "127.0.0.1:5", http.Header{"Origin": {"http://evil.example"}}, 403},
		"no name is not a all": {"loopback", "POST", "/flush", "127.0.0.1:5", nil, 400},
	} {
		t.Run(name, func(t *testing.T) {
			request := httptest.NewRequest(test.method, test.path, nil)
			request.RemoteAddr = test.from
			for key, values := range test.header {
				request.Header[key] = values
			}
			mux, recorder := http.NewServeMux(), httptest.NewRecorder()
			h.control(mux, test.control)
			mux.ServeHTTP(recorder, request)
			if recorder.Code != test.want {
				t.Errorf("%d, want %d: %s", recorder.Code, test.want, recorder.Body)
			}
		})
	}
}

func TestTailCommand(t *testing.T) {
	up := newScripted(t, 7, 0)
	h := serve(t, fmt.Sprintf("listen: [127.0.0.1:0]\nclients: {queriesPerSecond: 1000000}\nroutes: [{zones: [.], servers: [%q]}]\n", up.address))
	address := admin(t, h)
	chaos := new(dns.Msg).SetQuestion("version.bind.", dns.TypeTXT)
	chaos.Question[0].Qclass = dns.ClassCHAOS
	for name, test := range map[string]struct {
		args string
		want []string
		not  string
	}{
		"all":           {"-n 6", []string{"TIME", "  miss external   NOERROR ", "  hit external    NOERROR ", "a.example.", "A      B.a.example. (TCP)", "127.0.0.1:", " µs"}, ""},
		"another class": {"-n 1 -o json version.bind", []string{`"name":"version.bind.","type":"TXT","class":"CH","rcode":"REFUSED"`}, ""},
		// The other name comes twice as well.
		"a name, as JSON": {"-n 4 -o json .a.example", []string{`"rcode":"NOERROR","from":"hit","tier":"external"`, `"name":"a.example."`}, "c.example"},
		"misses":          {"-n 1 -from miss -rcode noerror -type a -client 127.0.0.0/8", []string{"miss external"}, " hit "},
	} {
		t.Run(name, func(t *testing.T) {
			var out space.Output
			ended := make(chan int, 1)
			ctx, stop := context.WithTimeout(t.Context(), patience)
			defer stop()
			go func() {
				args := append([]string{"tail", "-address", address}, strings.Fields(test.args)...)
				ended <- run(ctx, args, noEnv, &out, &out)
			}()
			await(t, "a watcher", func() bool { return h.taps.Watched() == 1 })
			call(t, "flush", "-all", "-address", address)
			for _, proto := range []string{"udp", "tcp"} {
				ask(t, "udp", h.address(0), "c.example.", 0)
				ask(t, "udp", h.address(0), "a.example.", 0)
				ask(t, proto, h.address(0), "B.a.example.", 0)
			}
			if _, _, err := (&dns.Client{Timeout: patience}).Exchange(chaos, h.address(0).String()); err != nil {
				t.Error(err)
			}
			if status := <-ended; status != 0 {
				t.Errorf("status %d", status)
			}
			for _, want := range test.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("want %q in\n%s", want, &out)
				}
			}
			if test.not != "" && strings.Contains(out.String(), test.not) {
				t.Errorf("%q in\n%s", test.not, &out)
			}
			await(t, "the end of watching", func() bool { return h.taps.Watched() == 0 })
		})
	}
}

// A tail ends with the daemon, and with whoever reads it; what does not fit is
// counted.
func TestTailEnds(t *testing.T) {
	up := newScripted(t, 7, 0)
	h := serve(t, fmt.Sprintf("listen: [127.0.0.1:0]\nroutes: [{zones: [.], servers: [%q]}]\n", up.address))
	await(t, "the admin address", func() bool { return h.adminAt.Load() != nil })
	address := h.adminAt.Load().(string)
	var out space.Output
	ctx, interrupt := context.WithCancel(t.Context())
	first, second := make(chan int, 1), make(chan int, 1)
	go func() { first <- run(ctx, []string{"tail", "-address", address}, noEnv, &out, &out) }()
	await(t, "a watcher", func() bool { return h.taps.Watched() == 1 })
	for range 400 {
		ask(t, "udp", h.address(0), "a.example.", 0)
	}
	interrupt()
	if status := <-first; status != 0 {
		t.Errorf("interrupted: status %d", status)
	}
	await(t, "the end of watching", func() bool { return h.taps.Watched() == 0 })
	go func() { second <- run(t.Context(), []string{"tail", "-address", address}, noEnv, &out, &out) }()
	await(t, "a watcher", func() bool { return h.taps.Watched() == 1 })
	began := time.Now()
	if err := h.end(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the daemon took %v to stop while one tailed", took)
	}
	if status := <-second; status != 1 || !strings.Contains(out.String(), "the daemon stopped") {
		t.Errorf("the daemon stopped: status %d\n%s", status, &out)
	}
}

// Who asks too much is named where operators look.
func TestClientsReport(t *testing.T) {
	up := newScripted(t, 7, 0)
	h := serve(t, fmt.Sprintf("listen: [127.0.0.1:0]\nclients: {queriesPerSecond: 1, burst: 1}\nroutes: [{zones: [.], servers: [%q]}]\n", up.address))
	ask(t, "udp", h.address(0), "a.example.", 0)
	h.expect("tcp", h.address(0), "a.example.", 0, "SERVFAIL")
	_, text := call(t, "status", "-address", admin(t, h))
	want := "clients  1 queries turned away (0 of clients that may not ask, 1 over their share), 1 of 4\u202f096 clients remembered; most often over: 127.0.0.1 (1 times)\n"
	if !strings.Contains(text, want) {
		t.Errorf("want %q in\n%s", want, text)
	}
	page, err := renderStatus(h.report())
	if err != nil || !strings.Contains(string(page), "127.0.0.1 (1 times)") {
		t.Errorf("the page does not name the client: %v", err)
	}
}

func TestTailLines(t *testing.T) {
	var text strings.Builder
	lines := `{"at":"2026-01-02T03:04:05.6Z","client":"10.0.0.7:4242","proto":"udp","name":"a.example.","type":"A","from":"limited","tookMicroseconds":12}
{"at":"2026-01-02T03:04:05.7Z","leftOut":1234}
{"at":"2026-01-02T03:04:06Z","client":"[2001:db8::1]:53","proto":"tcp","name":"b.example.","type":"AAAA","rcode":"SERVFAIL","from":"failure","tookMicroseconds":2500000}
{"at":"2026-01-02T03:04:07Z","client":"10.0.0.7:4242","proto":"udp","name":"c.example.","type":"A","class":"CH","rcode":"REFUSED","from":"local","tookMicroseconds":12}
`
	if err := printTail(&text, strings.NewReader(lines), false, 3); err != nil {
		t.Error(err)
	}
	want := `TIME          FROM            RCODE          TOOK  CLIENT                     TYPE   NAME
03:04:05.600  limited         no reply      12 µs  10.0.0.7:4242              A      a.example.
03:04:05.700  ... 1 234 queries left out: more than can be shown; narrow the filter
03:04:06.000  failure         SERVFAIL     2.50 s  [2001:db8::1]:53           AAAA   b.example. (TCP)
03:04:07.000  local           REFUSED       12 µs  10.0.0.7:4242              CH A   c.example.
`
	var got []string
	for line := range strings.SplitSeq(strings.ReplaceAll(text.String(), "\u202f", " "), "\n") {
		got = append(got, strings.TrimRight(line, " "))
	}
	if joined := strings.Join(got, "\n"); joined != want {
		t.Errorf("got\n%s\nwant\n%s", joined, want)
	}
	for query, want := range map[string]string{
		"from=nobody": "hit, stale, miss, local or failure", "rcode=X": "NOERROR", "slower=x": "duration", "client=x": "prefix", "type=x": "not a type",
	} {
		recorder := httptest.NewRecorder()
		newDaemon(nopLog(), level(), keepMemory).serveTail(recorder, httptest.NewRequest("GET", "/tail?"+query, nil))
		if recorder.Code != 400 || !strings.Contains(recorder.Body.String(), want) {
			t.Errorf("%s: %d %s", query, recorder.Code, recorder.Body)
		}
	}
}
