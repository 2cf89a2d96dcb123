package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder"
)

// What a server said is good as long as the same servers are asked for the same
// zones, however they are asked.
func TestReloadKeepsTheCache(t *testing.T) {
	one, two := newScripted(t, 1, 0), newScripted(t, 2, 0)
	start := func(more, route string) string {
		return fmt.Sprintf("listen: [127.0.0.1:0]\n%sroutes:\n- {zones: [.], servers: [%q]%s}\n- {zones: [b.example], servers: [%q]}\n", more, one.address, route, one.address)
	}
	for name, tc := range map[string]struct {
		config string
		kept   bool
	}{
		"choose":         {start("", ", choose: random"), true},
		"timeout":        {start("", ", timeout: 1s"), true},
		"forceTCP":       {start("", ", forceTCP: true"), true},
		"sockets":        {start("", ", socketsPerServer: 2"), true},
		"times":          {start("", ", cache: {maxTTL: 10s, staleWait: 2s}"), true},
		"node":           {start("node: {name: n2}\n", ""), true},
		"rotate":         {start("cache: {rotate: false}\n", ""), true},
		"size":           {start("cache: {size: 64Mi}\n", ""), false},
		"deny":           {start("local: {deny: [corp]}\n", ""), false},
		"another server": {strings.Replace(start("", ""), one.address.String(), two.address.String(), 1), false},
		"another zone":   {strings.Replace(start("", ""), "b.example", "c.example", 1), false},
		"another order": {fmt.Sprintf("listen: [127.0.0.1:0]\nroutes:\n- {zones: [b.example], servers: [%q]}\n- {zones: [.], servers: [%q]}\n",
			one.address, one.address), false},
	} {
		t.Run(name, func(t *testing.T) {
			h := serve(t, start("", ""))
			before := h.current.Load()
			h.expect("udp", h.address(0), "a.example.", 0, "NOERROR 192.0.2.1")
			if r := h.reconfigure(tc.config); r.Err != nil {
				t.Fatal(r.Err)
			}
			after := h.current.Load()
			if kept := after.cache == before.cache; kept != tc.kept || after == before {
				t.Errorf("the cache was kept: %v, want %v", kept, tc.kept)
			}
			one.changed.Store(true)
			defer one.changed.Store(false)
			if got := answerOf(ask(t, "udp", h.address(0), "a.example.", 0)); tc.kept && got != "NOERROR 192.0.2.1" {
				t.Errorf("the server was asked for what is in the cache: %s", got)
			}
		})
	}
}

func TestOriginOfTopology(t *testing.T) {
	read := func(topology, server string) *Config {
		c, err := readConfig("f", []byte("version: v1\nkubernetes: {server: "+server+"}\nroutes: [{zones: [.], topology: {"+topology+"}}]\n"), noEnv)
		if err != nil {
			t.Fatal(err)
		}
		return &c
	}
	was := read("service: dns", "https://192.0.2.1")
	for topology, same := range map[string]bool{
		"service: dns":                               true,
		"service: dns, hints: ignore":                true,
		"service: dns, domain: k8s.example":          true,
		"service: other":                             false,
		"service: dns, namespace: other":             false,
		"service: dns, clusterIP: [192.0.2.9]":       false,
		"service: dns, file: /endpoints":             false,
		"service: dns, ports: {udp: dns, tcp: tcp2}": false,
	} {
		if got := sameAnswers(read(topology, "https://192.0.2.1"), was); got != same {
			t.Errorf("%s: the same answers: %v, want %v", topology, got, same)
		}
	}
	if sameAnswers(read("service: dns", "https://192.0.2.2"), was) {
		t.Error("another API server: the same answers")
	}
}

// TestReloadGoesOnCounting holds that no counter falls while it counts the same
// things, and that the status knows when it began to.
func TestReloadGoesOnCounting(t *testing.T) {
	up := newScripted(t, 1, 0)
	config := func(more, route string) string {
		return fmt.Sprintf("listen: [127.0.0.1:0]\n%sroutes: [{zones: [.], servers: [%q]%s}]\n", more, up.address, route)
	}
	h := serve(t, config("", ""))
	h.expect("udp", h.address(0), "a.example.", 0, "NOERROR 192.0.2.1")
	h.expect("udp", h.address(0), "a.example.", 0, "NOERROR 192.0.2.1")
	sent := h.current.Load().routes[0].group.Status().Targets[0].Sent
	before := time.Now()
	for _, next := range []string{config("", ", cache: {maxTTL: 10s}"), config("limits: {followersPerMiss: 7}\n", "")} {
		if r := h.reconfigure(next); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	r := h.report()
	if r.Rates.Total["hit"] != 1 || r.Rates.Total["miss"] != 1 || r.Counted.After(before) {
		t.Errorf("after a reload %v are counted since %v; started %v", r.Rates.Total, r.Counted, r.Started)
	}
	if got := r.Routes[0].Servers[0].Sent; got < sent {
		t.Errorf("the server was sent %d queries, now it says %d", sent, got)
	}
	time.Sleep(10 * time.Millisecond)
	changed := time.Now()
	if r := h.reconfigure(strings.Replace(config("", ""), "[.]", "[., b.example]", 1)); r.Err != nil {
		t.Fatal(r.Err)
	}
	if r = h.report(); r.Rates.Total["hit"] != 0 || r.Counted.Before(changed) {
		t.Errorf("with other zones %v are counted since %v, the reload was at %v", r.Rates.Total, r.Counted, changed)
	}
}

// A forwarder that is not needed any more asks nothing in the background.
func TestForwarderIsClosed(t *testing.T) {
	up := newScripted(t, 1, 0)
	config := func(prefetch int) string {
		return fmt.Sprintf("listen: [127.0.0.1:0]\nroutes: [{zones: [.], servers: [%q], timeout: 2s, cache: {prefetch: %d}}]\n", up.address, prefetch)
	}
	h := serve(t, config(1))
	// closed looks at an answer just before its end, at which it is asked for
	// again unless the forwarder is closed.
	closed := func(f *forwarder.Forwarder, name string) bool {
		t.Helper()
		query, err := new(dns.Msg).SetQuestion(name, dns.TypeA).Pack()
		if err != nil {
			t.Fatal(err)
		}
		before := f.Stats()
		if _, v := f.Lookup(make([]byte, 0, 4096), query, forwarder.Peer{Received: h.now() + 57*time.Second}); v != forwarder.Answered {
			t.Fatalf("verdict %v, want an answer from memory", v)
		}
		after := f.Stats()
		began, shed := after.Prefetched-before.Prefetched, after.Routes[0].Shed-before.Routes[0].Shed
		if began+shed != 1 {
			t.Fatal("the answer was not to be asked for again: this tests nothing")
		}
		return shed == 1
	}
	for _, name := range []string{"a.example.", "b.example.", "c.example."} {
		for range 3 {
			ask(t, "udp", h.address(0), name, 0)
		}
	}
	first := h.current.Load().forwarder
	if closed(first, "a.example.") {
		t.Fatal("the forwarder in force is closed")
	}
	if r := h.reconfigure(config(2)); r.Err != nil {
		t.Fatal(r.Err)
	}
	h.retired.Wait()
	if !closed(first, "b.example.") {
		t.Error("a forwarder that was replaced still asks")
	}
	if err := h.end(); err != nil {
		t.Fatal(err)
	}
	ended := h.current.Load().forwarder
	if ended == first || !closed(ended, "c.example.") {
		t.Error("after the stop the forwarder still asks")
	}
}
