package main

import (
	"fmt"
	"net"
	"path/filepath"
	"testing"
	"time"

	format "github.com/dnstap/golang-dnstap"
	"google.golang.org/protobuf/proto"
)

// TestQueryLog: a sample is logged, and no more than the bound; a reload changes
// it.
func TestQueryLog(t *testing.T) {
	up := newScripted(t, 7, 0)
	with := func(log string) string {
		return fmt.Sprintf("listen: [127.0.0.1:0]\nroutes: [{zones: [.], servers: [%q]}]\nqueryLog: %s\n", up.address, log)
	}
	h := serve(t, with("{every: 2, below: example}"))
	ask := func(n int, name string) {
		for range n {
			h.expect("udp", h.address(0), name, 0, "NOERROR 192.0.2.7")
		}
	}
	lines := func() int { return h.logs.FilterMessage("query").Len() }
	await(t, "the tap", func() bool { ask(2, "warm.example."); return lines() > 0 })
	before := lines()
	ask(10, "a.example.")
	ask(3, "other.test.")
	await(t, "half of the queries in the log", func() bool { return lines() >= before+5 })
	last := h.logs.FilterMessage("query").All()[lines()-1].ContextMap()
	if last["name"] != "a.example." || last["type"] != "A" || last["rcode"] != "NOERROR" || last["proto"] != "udp" || last["source"] != "hit" {
		t.Errorf("the line says %v", last)
	}
	if s := h.snapshot(); s.Logged != uint64(lines()) {
		t.Errorf("%d lines, %d counted", lines(), s.Logged)
	}

	if r := h.reconfigure(with("{every: 1, perSecond: 1}")); r.Err != nil {
		t.Fatal(r.Err)
	}
	await(t, "lines above the bound", func() bool { ask(10, "a.example."); return h.snapshot().Unlogged > 5 })
	if r := h.reconfigure(with("{every: 0}")); r.Err != nil {
		t.Fatal(r.Err)
	}
	await(t, "the end of the log", func() bool {
		before := h.snapshot()
		ask(5, "a.example.")
		time.Sleep(20 * time.Millisecond)
		after := h.snapshot()
		return after.Logged == before.Logged && after.Unlogged == before.Unlogged
	})
}

// TestQueryLogOfARoute: a route has a sample of its own, or none, whatever holds for
// the others.
func TestQueryLogOfARoute(t *testing.T) {
	up := newScripted(t, 7, 0)
	for _, tt := range []struct{ name, daemon, route, want string }{
		{"a route alone", "{}", "{every: 1}", "a.own.test."},
		{"all but a route", "{every: 1}", "{every: 0}", "a.test."},
		{"a route in place of a name", "{every: 1, below: test}", "{every: 1000000}", "a.test."},
		{"only slow ones", "{every: 1}", "{every: 1, slower: 10s}", "a.test."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := serve(t, fmt.Sprintf("listen: [127.0.0.1:0]\nroutes: [{zones: [.], servers: [%[1]q]}, {zones: [own.test], servers: [%[1]q], queryLog: %[2]s}]\nqueryLog: %[3]s\n", up.address, tt.route, tt.daemon))
			ask := func(names ...string) {
				for _, name := range names {
					h.expect("udp", h.address(0), name, 0, "NOERROR 192.0.2.7")
				}
			}
			await(t, "the log", func() bool { ask(tt.want); return h.logs.FilterMessage("query").Len() > 0 })
			ask("a.test.", "a.own.test.", "a.test.", "a.own.test.")
			await(t, "the last line", func() bool {
				ask(tt.want)
				return h.logs.FilterMessage("query").Len() > 4
			})
			for _, line := range h.logs.FilterMessage("query").All() {
				if got := line.ContextMap()["name"]; got != tt.want {
					t.Errorf("a line about %v", got)
				}
			}
		})
	}
}

// TestDnstap: the collector hears of hits, misses and TCP.
func TestDnstap(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tap.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	told := make(chan *format.Message, 100)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		in, err := format.NewReader(c, &format.ReaderOptions{Bidirectional: true})
		if err != nil {
			return
		}
		buf := make([]byte, 8192)
		for {
			n, err := in.ReadFrame(buf)
			if err != nil {
				return
			}
			m := new(format.Dnstap)
			if proto.Unmarshal(buf[:n], m) == nil && string(m.Identity) == "node-7" {
				told <- m.Message
			}
		}
	}()
	up := newScripted(t, 7, 0)
	h := serve(t, fmt.Sprintf("listen: [127.0.0.1:0]\nnode: {name: node-7}\nroutes: [{zones: [.], servers: [%q]}]\ndnstap: {address: %s}\n", up.address, path))
	for _, proto := range []string{"udp", "udp", "tcp"} {
		h.expect(proto, h.address(0), "a.example.", 0, "NOERROR 192.0.2.7")
	}
	var queries, replies, overTCP int
	for range 6 {
		select {
		case m := <-told:
			if m.GetType() == format.Message_CLIENT_QUERY {
				queries++
			} else if len(m.ResponseMessage) > 12 {
				replies++
			}
			if m.GetSocketProtocol() == format.SocketProtocol_TCP {
				overTCP++
			}
		case <-time.After(patience):
			t.Fatalf("%d queries and %d replies are told", queries, replies)
		}
	}
	if queries != 3 || replies != 3 || overTCP != 2 {
		t.Errorf("%d queries and %d replies are told, %d messages of TCP", queries, replies, overTCP)
	}
	await(t, "the count", func() bool { return h.snapshot().Dnstap.Sent == 3 })
}
