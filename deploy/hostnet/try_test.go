package hostnet_test

import (
	"strings"
	"testing"

	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// TestTry changes nothing, whether there is a table or not.
func TestTry(t *testing.T) {
	n := node{Node: space.Node{Space: space.New(t)}}
	n.host = n.openHost(t)
	look := func() string { return ruleset(t, n.Space) + n.Run(t, "ip", "-o", "link", "show") }
	for _, there := range []bool{false, true} {
		if there {
			n.apply(t, linkLocal())
		}
		before := look()
		for _, s := range []hostnet.State{linkLocal(), service(), {}} {
			if err := n.host.Try(s); err != nil {
				t.Errorf("table there %v: %v", there, err)
			}
		}
		if kind, err := n.host.TryLink(); err != nil || kind == "" {
			t.Errorf("link of kind %q: %v", kind, err)
		}
		if after := look(); after != before {
			t.Errorf("before:\n%s\nafter:\n%s", before, after)
		}
	}
	if err := n.host.Try(hostnet.State{Mode: hostnet.LinkLocal}); err == nil || !strings.Contains(err.Error(), "invalid") {
		t.Errorf("a state without addresses: %v", err)
	}
}
