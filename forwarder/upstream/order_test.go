package upstream_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nodens-dns/nodens/forwarder/upstream"
)

func TestOrder(t *testing.T) {
	at := func(port uint16) netip.AddrPort { return netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port) }
	member := func(port uint16, s upstream.State) upstream.Member {
		return upstream.Member{UDP: at(port), TCP: at(port), State: s}
	}
	ready := func(ports ...uint16) (list []upstream.Member) {
		for _, p := range ports {
			list = append(list, member(p, upstream.Ready))
		}
		return list
	}
	for name, test := range map[string]struct {
		table  upstream.Table
		config upstream.Config
		want   [][]uint16
	}{
		"nobody": {upstream.Table{}, upstream.Config{}, nil},
		"one server is asked again": {
			upstream.Table{Tiers: [3][]upstream.Member{ready(1)}}, upstream.Config{}, [][]uint16{{1}, {1}, {1}},
		},
		"the nearest, then farther, then back": {
			upstream.Table{Tiers: [3][]upstream.Member{ready(1), ready(2, 3), ready(4)}},
			upstream.Config{},
			[][]uint16{{1}, {2, 3}, {2, 3}},
		},
		"in the table's order": {
			upstream.Table{Tiers: [3][]upstream.Member{nil, nil, ready(1, 2, 3)}},
			upstream.Config{Policy: upstream.Sequential, External: true},
			[][]uint16{{1}, {2}, {3}},
		},
		"one that is not ready comes after the ready": {
			upstream.Table{Tiers: [3][]upstream.Member{{member(1, upstream.NotReady)}, nil, ready(2)}},
			upstream.Config{},
			[][]uint16{{2}, {2}, {1}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.config.Attempts = 3
			g := group(t, test.config, test.table)
			var got [][]uint16
			for _, attempt := range g.Order() {
				var ports []uint16
				for _, addr := range attempt {
					ports = append(ports, addr.Port())
				}
				slices.Sort(ports)
				got = append(got, ports)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
		})
	}
}
