package main

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/deploy/guard"
)

// What the guard says of the node is in the status and on the page.
func TestHostInWords(t *testing.T) {
	own := netip.MustParseAddr("169.254.20.10")
	at := time.Unix(1700000000, 0)
	for name, test := range map[string]struct {
		status guard.ClientStatus
		host   string   // in the status
		page   []string // parts
	}{
		"all is well": {
			guard.ClientStatus{Connected: true, State: guard.SessionState{Owner: true, Applied: true}},
			"link-local, guarded, the fallback is ready",
			[]string{"<code>169.254.20.10</code> on link <code>nodens</code>", `<dd class="good">ready</dd>`, "<dd>off since the guard began</dd>"},
		},
		"no fallback": {
			guard.ClientStatus{Connected: true, State: guard.SessionState{Owner: true, Applied: true, Fallback: "none of the servers answers", BypassSince: at.Add(-time.Hour)}},
			"link-local, guarded, but there is no fallback: none of the servers answers",
			[]string{`<dd class="bad">not ready: none of the servers answers</dd>`, "<dd>off since 2023-11-14 21:13:20 UTC (1 h 0 min)</dd>"},
		},
		"a bypass": {
			guard.ClientStatus{Connected: true, State: guard.SessionState{Owner: true, Applied: true, Bypass: []netip.Addr{own}, BypassSince: at.Add(-12 * time.Second)}},
			"link-local, queries to [169.254.20.10] go past this daemon",
			[]string{`<dd class="bad">on since 2023-11-14 22:13:08 UTC (12 s): queries to 169.254.20.10 go past this daemon</dd>`},
		},
		"the host refuses": {
			guard.ClientStatus{Connected: true, State: guard.SessionState{Owner: true, Fallback: "the nft tables cannot be read"}},
			"link-local, the guard cannot set up the node: the nft tables cannot be read",
			[]string{`<dd class="bad">not ready: the nft tables cannot be read</dd>`},
		},
		"two guards": {
			guard.ClientStatus{Connected: true, State: guard.SessionState{Fallback: "another guard owns this node"}},
			"link-local, the guard waits for another one on this node",
			[]string{`<dd class="bad">the guard waits for another one on this node</dd>`},
		},
		"no guard": {guard.ClientStatus{}, "link-local, no connection to the guard", []string{`<dd class="bad">no connection to the guard</dd>`}},
	} {
		s := fullSnapshot()
		s.At, s.Guard, s.Config.Host.Mode, s.Config.Listen = at, &test.status, "link-local", addrPorts("169.254.20.10:53", "127.0.0.1:53")
		r := newReport(&s, totals{at: at}, totals{at: at.Add(-time.Minute)})
		var text strings.Builder
		if err := printReport(&text, &r); err != nil || !strings.Contains(text.String(), "host     "+test.host+"\n") {
			t.Errorf("%s: %v, without %q:\n%s", name, err, test.host, &text)
		}
		page, err := renderStatus(r)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range test.page {
			if !strings.Contains(string(page), want) {
				t.Errorf("%s: the page is without %q", name, want)
			}
		}
	}
	s := fullSnapshot()
	s.Guard = nil
	if page, err := renderStatus(newReport(&s, totals{at: at}, totals{at: at})); err != nil || strings.Contains(string(page), "<h2>Node</h2>") {
		t.Errorf("without a guard the page speaks of the node: %v", err)
	}
}
