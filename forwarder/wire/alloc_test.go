package wire_test

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

func TestNoAllocations(t *testing.T) {
	client := join(header(rd, 1, 0, 0, 1), question("WwW.a.test", dns.TypeA), opt(1232, 1<<15, "\x00\x0a\x00\x0812345678"))
	upstream := packed(t, reply(t, "www.a.test.", dns.TypeA, "www.a.test. 60 CNAME b.test.", "b.test. 60 A 192.0.2.1",
		"--", "test. 60 NS ns.test.", "--", "ns.test. 60 A 192.0.2.2"))
	stored := bare(t, upstream)
	q := sound(t, client)
	r, err := wire.ParseReply(upstream)
	if err != nil {
		t.Fatal(err)
	}
	var offsets []uint16
	var rr wire.Record
	for c := r.Records(); c.Next(&rr); {
		offsets = append(offsets, uint16(rr.TTLAt))
	}
	buf := make([]byte, 0, 4096)
	asked := wire.AppendQuery(nil, q, wire.ID(upstream), 1232)
	steps := map[string]func(){
		"ParseQuery":  func() { wire.ParseQuery(client) },
		"AppendKey":   func() { q.AppendKey(buf) },
		"AppendQuery": func() { wire.AppendQuery(buf, q, 1, 1232) },
		"AppendError": func() { wire.AppendError(buf, q, wire.ServFail, 1232, wire.EDENetworkError) },
		"Matches":     func() { wire.Matches(upstream, asked) },
		"ParseReply":  func() { _, _ = wire.ParseReply(upstream) },
		"AppendBare":  func() { r.AppendBare(buf) },
		"Records": func() {
			for c := r.Records(); c.Next(&rr); {
			}
		},
		"hit": func() {
			msg := append(buf, stored...)
			wire.Echo(msg, q)
			wire.AgeTTLs(msg, offsets, 7)
			wire.CapTTLs(msg, offsets, 30)
			wire.AppendOPT(wire.Fit(msg, 80, q.DO), 0, q, 1232, wire.EDEStale)
		},
		"names": func() {
			wire.EqualNames(upstream, wire.HeaderLen, rr.Owner)
			wire.AppendText(buf, q.Name())
			wire.AppendName(buf, "svc.cluster.local.")
		},
	}
	for what, step := range steps {
		if n := testing.AllocsPerRun(100, step); n != 0 {
			t.Errorf("%s: %v allocations", what, n)
		}
	}
}

// The package neither waits, logs nor knows the time, which is plain as long as
// it imports nothing.
func TestImportsNothing(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		seen++
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, im := range f.Imports {
			t.Errorf("%s imports %s; only bytes may come in", file, im.Path.Value)
		}
	}
	if seen < 5 {
		t.Errorf("read %d files", seen)
	}
}
