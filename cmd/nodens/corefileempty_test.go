package main

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/bench/space"
)

// emptyBlocks are blocks that forward to nobody, by what else is in them, and what is
// said of their names.
func emptyBlocks() map[string]string {
	return map[string]string{
		"": "REFUSED", "debug": "REFUSED", "health 127.0.0.1:0": "REFUSED", "pprof 127.0.0.1:0": "REFUSED",
		"ready 127.0.0.1:0": "REFUSED", "reload": "REFUSED", "timeouts {\n read 5s\n}": "REFUSED",
		"cache": "SERVFAIL", "errors": "SERVFAIL", "log": "SERVFAIL", "loop": "SERVFAIL", "bufsize 1232": "SERVFAIL",
		"loadbalance": "SERVFAIL", "minimal": "SERVFAIL", "cancel": "SERVFAIL", "prometheus 127.0.0.1:0": "SERVFAIL",
		"dns64": "SERVFAIL", "rewrite name a.example b.example": "SERVFAIL", "forward other.example 127.0.0.9:9": "SERVFAIL",
	}
}

// corefileOfEmpty has each of them as a zone of its own.
func corefileOfEmpty(at netip.AddrPort) string {
	var text strings.Builder
	for i, directive := range sortedKeys(emptyBlocks()) {
		fmt.Fprintf(&text, "e%d.example:%d {\n bind %s\n%s\n}\n", i, at.Port(), at.Addr(), directive)
	}
	return text.String()
}

// A block that forwards to nobody is served as CoreDNS serves it, which is asked as well.
func TestEmptyBlocks(t *testing.T) {
	answers := func(t *testing.T, at netip.AddrPort) {
		t.Helper()
		for i, directive := range sortedKeys(emptyBlocks()) {
			want := emptyBlocks()[directive]
			if got := answerOf(ask(t, "udp", at, fmt.Sprintf("www.e%d.example.", i), 0)); got != want {
				t.Errorf("a block with %q: %s, want %s", directive, got, want)
			}
		}
	}
	t.Run("nodens", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "Corefile")
		write(t, path, corefileOfEmpty(netip.MustParseAddrPort("127.0.0.1:0")))
		f, err := parseNodeCache(strings.Fields("-setupinterface=false -setupiptables=false -metrics-listen-address 127.0.0.1:0 -basecorefile "+path), &strings.Builder{})
		if err != nil {
			t.Fatal(err)
		}
		answers(t, serveNodeCache(t, f).address(0))
	})
	t.Run("CoreDNS", func(t *testing.T) {
		binary := os.Getenv("NODENS_COREDNS")
		space.Needs(t, "coredns", binary != "" && installed(binary))
		path, at := filepath.Join(t.TempDir(), "Corefile"), space.Free(t)
		write(t, path, corefileOfEmpty(at))
		startProcess(t, new(bytes.Buffer), nil, binary, "-conf", path)
		await(t, "CoreDNS", func() bool {
			_, _, err := (&dns.Client{Timeout: time.Second}).Exchange(new(dns.Msg).SetQuestion("e0.example.", dns.TypeA), at.String())
			return err == nil
		})
		answers(t, at)
	})
}
