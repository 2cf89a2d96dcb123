package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// A node that cannot be set up, because the link belongs to somebody else: each attempt is
// counted where node-cache's dashboards look, before there is anything else to tell.
func TestNodeCacheCannotSetUpTheNode(t *testing.T) {
	onNode(t, func(t *testing.T) {
		for _, line := range []string{"ip link set lo up", "ip link add nodelocaldns type bridge"} {
			shell(t, line)
		}
		folder := t.TempDir()
		write(t, folder+"/Corefile", ".:53 {\n bind 169.254.20.10\n forward . 127.0.0.2\n prometheus 127.0.0.1:9253\n}\n")
		begin(t, "-localip", "169.254.20.10", "-basecorefile", folder+"/Corefile")
		for _, port := range []string{"9253", "9353"} {
			count := ""
			await(t, "two failures in the metrics at "+port, func() bool {
				text, err := fetchHere("http://127.0.0.1:" + port + "/metrics")
				_, after, _ := strings.Cut(text, `coredns_nodecache_setup_errors_total{errortype="interface_check"} `)
				count, _, _ = strings.Cut(after, "\n")
				return err == nil && count != "" && count != "0" && count != "1"
			})
		}
		for path, want := range map[string]string{"livez": "alive", "readyz": " 503 "} {
			if text, err := fetchHere("http://127.0.0.1:9253/" + path); err != nil || !strings.Contains(text, want) {
				t.Errorf("%s: %q, %v, want %q", path, text, err, want)
			}
		}
	})
}

func TestSetupErrorsByKind(t *testing.T) {
	for kind, err := range map[int]error{
		setupInterfaceCheck: fmt.Errorf("link nodelocaldns is a bridge: %w", hostnet.ErrForeign),
		setupInterfaceAdd:   errors.Join(errors.New("the table"), fmt.Errorf("the link: %w", hostnet.ErrLink)),
		setupRules:          errors.New("the nft tables cannot be read"),
	} {
		var e setupErrors
		e.hear(err)
		var want [5]uint64
		want[kind] = 1
		if got := e.snapshot().Setup; got != want {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
}
