package hostnet_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nodens-dns/nodens/deploy/hostnet"
)

func addrs(list ...string) []netip.Addr {
	out := make([]netip.Addr, 0, len(list))
	for _, s := range list {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

func targets(list ...string) []netip.AddrPort {
	out := make([]netip.AddrPort, 0, len(list))
	for _, s := range list {
		out = append(out, netip.MustParseAddrPort(s))
	}
	return out
}

// golden lists a state for every mode, by the name of its file.
func golden() map[string]hostnet.State {
	own := addrs("169.254.20.10", "fd00:90de:d95::1")
	fallback := hostnet.Fallback{
		UDP: targets("10.1.0.53:5300", "10.2.0.53:5300", "[fd01::53]:5300", "[fd02::53]:5300"),
		TCP: targets("10.1.0.53:5301", "10.2.0.53:5301", "[fd01::53]:5301"),
	}
	return map[string]hostnet.State{
		"none":       {Mode: hostnet.None, Own: own, Fallback: fallback},
		"link-local": {Mode: hostnet.LinkLocal, Own: own, Fallback: fallback},
		"link-local-tracked": {
			Mode: hostnet.LinkLocal, Own: own, Fallback: fallback, Tracked: true,
			ProbeMark: 0x6e64,
		},
		"link-local-without-targets": {Mode: hostnet.LinkLocal, Own: own[:1], Link: "nodelocaldns"},
		"service": {
			Mode: hostnet.Service, Own: own, Service: addrs("10.96.0.10", "fd10::a"), Fallback: fallback,
			Exempt:    hostnet.Exempt{UIDs: []uint32{65532}, Marks: []uint32{0x6e65}},
			ProbeMark: 0x6e64,
		},
		"service-tracked": {
			Mode: hostnet.Service, Own: own[:1], Service: addrs("10.96.0.10"), Fallback: fallback, Tracked: true,
			Exempt: hostnet.Exempt{UIDs: []uint32{65532}},
		},
		"service-only": {Mode: hostnet.Service, Service: addrs("10.96.0.10"), Port: 5353},
	}
}

func TestTheTableOfEveryMode(t *testing.T) {
	for name, state := range golden() {
		t.Run(name, func(t *testing.T) {
			var host hostnet.Fake
			if _, err := host.Apply(state); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", name+".nft")
			if os.Getenv("NODENS_UPDATE") != "" {
				if err := os.WriteFile(file, []byte(host.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), host.String()); diff != "" {
				t.Errorf("table (-want +got), run with NODENS_UPDATE=1 if it is right:\n%s", diff)
			}
		})
	}
}
