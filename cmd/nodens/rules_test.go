package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestHostsFile: the file is followed, stands beside the entries, and may come
// late.
func TestHostsFile(t *testing.T) {
	up, path := newScripted(t, 7, 0), filepath.Join(t.TempDir(), "hosts")
	h := serve(t, fmt.Sprintf("listen: [127.0.0.1:0]\nroutes: [{zones: [.], servers: [%q], hosts: {entries: [\"192.0.2.50 a.example\"], file: %q}}]\n", up.address, path))
	h.expect("udp", h.address(0), "a.example.", 0, "NOERROR 192.0.2.50")
	h.expect("tcp", h.address(0), "b.example.", 0, "NOERROR 192.0.2.7")
	write(t, path, "192.0.2.51 b.example\n")
	await(t, "the hosts file", func() bool { return answerOf(ask(t, "udp", h.address(0), "b.example.", 0)) == "NOERROR 192.0.2.51" })
	h.expect("tcp", h.address(0), "A.example.", 0, "NOERROR 192.0.2.50")
}

// TestReloadOfRules: a rule that makes something else of the servers' answers
// takes the cache with it, others leave it.
func TestReloadOfRules(t *testing.T) {
	up := newScripted(t, 7, 0)
	with := func(rule string) string {
		return fmt.Sprintf("listen: [127.0.0.1:0]\nroutes: [{zones: [.], servers: [%q]%s}]\n", up.address, rule)
	}
	h := serve(t, with(""))
	h.expect("udp", h.address(0), "a.example.", 0, "NOERROR 192.0.2.7")
	for _, step := range []struct {
		rule, want string
		kept       bool
	}{
		{", answers: [{below: [a.example], rcode: NXDOMAIN}]", "NXDOMAIN", true},
		{"", "NOERROR 192.0.2.7", true},
		{", rewrite: [{name: a.example, to: nx.example}]", "NXDOMAIN", false},
		{", filterAAAA: true", "NOERROR 192.0.2.7", false},
		{", dns64: {prefix: \"64:ff9b::/96\"}", "NOERROR 192.0.2.7", false},
	} {
		before := h.current.Load()
		if r := h.reconfigure(with(step.rule)); r.Err != nil {
			t.Fatal(r.Err)
		}
		after := h.current.Load()
		if kept := after.cache == before.cache; kept != step.kept || after.routes[0] != before.routes[0] {
			t.Errorf("%q: the cache was kept: %v; the route: %v", step.rule, kept, after.routes[0] == before.routes[0])
		}
		h.expect("udp", h.address(0), "a.example.", 0, step.want)
	}
}

// TestRulesOnly: a route without servers answers what its rules say, and nothing else.
func TestRulesOnly(t *testing.T) {
	up := newScripted(t, 7, 0)
	h := serve(t, fmt.Sprintf(`listen: [127.0.0.1:0]
routes:
- {zones: [.], servers: [%q]}
- {zones: [lan], rulesOnly: true, answers: [{below: [no.lan], rcode: NXDOMAIN}], hosts: {entries: [192.0.2.50 a.lan]}}
- {zones: [corp.example], rulesOnly: true, hosts: {entries: [192.0.2.51 a.corp.example], only: true}}
- {zones: [empty.example], rulesOnly: true}
`, up.address))
	for name, want := range map[string]string{
		"other.example.":     "NOERROR 192.0.2.7",
		"a.lan.":             "NOERROR 192.0.2.50",
		"x.no.lan.":          "NXDOMAIN",
		"b.lan.":             "SERVFAIL",
		"a.corp.example.":    "NOERROR 192.0.2.51",
		"b.corp.example.":    "NXDOMAIN",
		"www.empty.example.": "SERVFAIL",
	} {
		h.expect("udp", h.address(0), name, 0, want)
	}
	if n := up.asked.Load(); n != 1 {
		t.Errorf("the server of the other names was asked %d times", n)
	}
	for text, want := range map[string]string{
		"{zones: [lan], rulesOnly: false}":                        "has no servers",
		"{zones: [lan], rulesOnly: true, servers: [192.0.2.1]}":   "has both rulesOnly",
		"{zones: [lan], rulesOnly: true, resolvConf: /etc/hosts}": "has both rulesOnly",
	} {
		if r := h.reconfigure("listen: [127.0.0.1:0]\nroutes: [" + text + "]\n"); r.Err == nil || !strings.Contains(r.Err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, r.Err, want)
		}
	}
}
