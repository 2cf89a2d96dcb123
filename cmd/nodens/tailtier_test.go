package main

import (
	"testing"

	"github.com/nodens-dns/nodens/topology"
)

// The tier of an answer is called what status and explain call it.
func TestTailTiers(t *testing.T) {
	d := newDaemon(nopLog(), level(), keepMemory)
	near, outside := &route{feed: feed{watcher: new(topology.Watcher)}}, &route{}
	d.current.Store(&generation{routes: []*liveRoute{{route: near}, {route: outside}}})
	for _, one := range []struct {
		route int
		via   uint8
		want  string
	}{{0, 1, "node"}, {0, 2, "zone"}, {0, 3, "cluster"}, {0, 4, "last"}, {1, 3, "external"}, {2, 1, ""}} {
		if got := d.tierOf(one.route, one.via); got != one.want {
			t.Errorf("route %d, via %d: %q, want %q", one.route, one.via, got, one.want)
		}
	}
}
