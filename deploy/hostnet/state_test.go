package hostnet_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nodens-dns/nodens/deploy/hostnet"
)

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		name  string
		state hostnet.State
		want  []string
	}{
		{"nothing wanted", hostnet.State{}, nil},
		{"link-local", linkLocal(), nil},
		{"service", service(), nil},
		{"no address", hostnet.State{Mode: hostnet.LinkLocal}, []string{"without a listen address"}},
		{"cluster address in link-local mode", hostnet.State{Mode: hostnet.LinkLocal, Service: addrs(cluster4)}, []string{"without a listen address"}},
		{"unknown mode", hostnet.State{Mode: 9, Own: addrs(own4)}, []string{"mode 9 is unknown"}},
		{"long name", hostnet.State{Link: "a-name-of-16-by.", Mode: hostnet.None}, []string{"1 to 15 bytes"}},
		{
			"every mistake at once",
			hostnet.State{
				Mode: hostnet.LinkLocal, Own: addrs("127.0.0.1", "fe80::1", "ff02::1", "0.0.0.0", own4),
				Fallback: hostnet.Fallback{
					UDP: targets("127.0.0.1:53", "169.254.1.1:53", "10.0.0.1:0", "[::ffff:169.254.20.10]:53"),
					TCP: targets("[ff02::1]:53", "255.255.255.255:53"),
				},
			},
			[]string{
				"0.0.0.0 is no address", "127.0.0.1 is loopback, which", "fe80::1 is IPv6 link-local", "ff02::1 is multicast",
				"target 127.0.0.1:53 is loopback", "target 169.254.1.1:53 is link-local", "target 10.0.0.1:0 is without a port",
				"target 169.254.20.10:53 is link-local", "target [ff02::1]:53 is multicast",
				"target 255.255.255.255:53 is broadcast",
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var lines []string
			if err := c.state.Validate(); err != nil {
				lines = strings.Split(err.Error(), "\n")
			}
			if len(lines) != len(c.want) {
				t.Fatalf("mistakes %q, want %d", lines, len(c.want))
			}
			for _, w := range c.want {
				if !strings.Contains(strings.Join(lines, "\n"), w) {
					t.Errorf("mistakes %q, want one with %q", lines, w)
				}
			}
		})
	}
}

func TestNearest(t *testing.T) {
	var many []netip.AddrPort
	for i := range 20 {
		many = append(many, netip.MustParseAddrPort(fmt.Sprintf("10.0.0.%d:53", i+1)))
	}
	for _, c := range []struct {
		name         string
		tiers        [][]netip.AddrPort
		use, refused []netip.AddrPort
	}{
		{name: "no tier"},
		{name: "only empty tiers", tiers: [][]netip.AddrPort{nil, nil}},
		{name: "the nearest that is not empty", tiers: [][]netip.AddrPort{nil, targets("10.0.0.1:53"), targets("10.0.0.2:53")}, use: targets("10.0.0.1:53")},
		{
			name:  "each family by itself",
			tiers: [][]netip.AddrPort{targets("[fd01::1]:53"), targets("10.0.0.1:53", "[fd01::2]:53")},
			use:   targets("10.0.0.1:53", "[fd01::1]:53"),
		},
		{
			name:    "a tier with nothing usable is empty",
			tiers:   [][]netip.AddrPort{targets("169.254.20.10:53", "127.0.0.1:53"), targets("10.0.0.1:53")},
			use:     targets("10.0.0.1:53"),
			refused: targets("169.254.20.10:53", "127.0.0.1:53"),
		},
		{name: "twice the same", tiers: [][]netip.AddrPort{targets("10.0.0.1:53", "[::ffff:10.0.0.1]:53")}, use: targets("10.0.0.1:53")},
		{name: "at most 16", tiers: [][]netip.AddrPort{many}, use: many[:hostnet.MaxTargets]},
	} {
		t.Run(c.name, func(t *testing.T) {
			use, refused := hostnet.Nearest(addrs(own4), c.tiers...)
			if diff := cmp.Diff(c.use, use, cmp.Comparer(sameTarget)); diff != "" {
				t.Errorf("use (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.refused, refused, cmp.Comparer(sameTarget)); diff != "" {
				t.Errorf("refused (-want +got):\n%s", diff)
			}
		})
	}
}

func sameTarget(a, b netip.AddrPort) bool { return a == b }

// host is what both a Host and a Fake are.
type host interface {
	Apply(hostnet.State) (hostnet.Report, error)
	Read(hostnet.State) (hostnet.Found, error)
	Hold(hostnet.Set, time.Duration, ...netip.Addr) error
	Release(hostnet.Set, ...netip.Addr) error
	RemoveLeftovers(hostnet.State) (hostnet.Report, error)
	Cleanup(hostnet.State, func(netip.Addr) bool) (hostnet.Report, error)
	Watch(context.Context, func()) error
	Close()
}

func TestTheFakeIsAHost(t *testing.T) {
	var _ host = (*hostnet.Host)(nil)
	now := time.Duration(0)
	fake := &hostnet.Fake{Now: func() time.Duration { return now }}
	var h host = fake
	if err := h.Hold(hostnet.Alive, time.Second, addrs(own4)...); !errors.Is(err, hostnet.ErrNoTable) {
		t.Errorf("Hold without a table: %v", err)
	}
	if r, err := h.Apply(linkLocal()); err != nil || r.Kind != "dummy" || len(r.Changed) != 2 {
		t.Errorf("the first Apply: %+v, %v", r, err)
	}
	if r, err := h.Apply(linkLocal()); err != nil || len(r.Changed) != 0 {
		t.Errorf("the second Apply: %+v, %v", r, err)
	}
	if err := h.Hold(hostnet.Alive, time.Second, addrs(own4, own6)...); err != nil {
		t.Error(err)
	}
	now = 500 * time.Millisecond
	if err := errors.Join(h.Hold(hostnet.Alive, time.Second, addrs(own4)...), h.Release(hostnet.Alive, addrs(own6)...)); err != nil {
		t.Error(err)
	}
	now = 1200 * time.Millisecond
	held(t, h, hostnet.Hold{Set: hostnet.Alive, Addr: addrs(own4)[0], Left: 300 * time.Millisecond})
	now = 2 * time.Second
	held(t, h)

	fake.Flush()
	fake.DropLink()
	fake.Leave("link nodelocaldns")
	found, err := h.Read(linkLocal())
	if err != nil {
		t.Fatal(err)
	}
	if missing := found.Missing(linkLocal()); len(missing) != 2 || len(found.Leftovers) != 1 {
		t.Errorf("missing %q, leftovers %q", missing, found.Leftovers)
	}
	if r, err := h.Cleanup(linkLocal(), nil); err != nil || len(r.Changed) != 1 || fake.String() != "" {
		t.Errorf("Cleanup: %+v, %v; then:\n%s", r, err, fake)
	}
}

func held(t *testing.T, h host, want ...hostnet.Hold) {
	t.Helper()
	found, err := h.Read(hostnet.State{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, found.Held, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("held (-want +got):\n%s", diff)
	}
}

func TestProbeSource(t *testing.T) {
	both := hostnet.State{Own: addrs("fd00::2", "fd00::1", "169.254.20.11", "169.254.20.10"), ProbeMark: 1}
	four, unmarked := both, both
	four.Own, unmarked.ProbeMark = both.Own[2:], 0
	for _, c := range []struct {
		state         hostnet.State
		service, want string
	}{
		{both, "10.96.0.10", "169.254.20.10"},
		{both, "::ffff:10.96.0.10", "169.254.20.10"},
		{both, "fd10::a", "fd00::1"},
		{four, "fd10::a", "invalid IP"},
		{unmarked, "10.96.0.10", "invalid IP"},
		{hostnet.State{ProbeMark: 1}, "10.96.0.10", "invalid IP"},
	} {
		if got := c.state.ProbeSource(addrs(c.service)[0]).String(); got != c.want {
			t.Errorf("to %s: from %s, want %s", c.service, got, c.want)
		}
	}
}
