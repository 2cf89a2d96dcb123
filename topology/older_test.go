package topology_test

import (
	"testing"

	"github.com/nodens-dns/nodens/topology"
)

// What a cluster does not tell, or an older one did not yet, costs the nearness that would
// follow from it and nothing else: no endpoint is lost, and none is taken for near.
func TestClustersThatTellLess(t *testing.T) {
	here := topology.Self{Node: "n1", Zone: "za"}
	all := slice("a", "10.0.0.1@n1/za", "10.0.0.2@n2/za", "10.0.0.3@n3/zb")
	with := func(change func(e *topology.SliceEndpoint)) topology.Slice {
		s := slice("a", "10.0.0.1@n1/za", "10.0.0.2@n2/za", "10.0.0.3@n3/zb")
		for i := range s.Endpoints {
			change(&s.Endpoints[i])
		}
		return s
	}
	ready := func(of bool) func(e *topology.SliceEndpoint) {
		return func(e *topology.SliceEndpoint) { e.Ready, e.Serving, e.Terminating = &of, nil, nil }
	}
	for name, c := range map[string]struct {
		self topology.Self
		told topology.Slice
		want string
	}{
		"everything":               {here, all, "10.0.0.1|10.0.0.2|10.0.0.3|"},
		"no zones":                 {here, with(func(e *topology.SliceEndpoint) { e.Zone = "" }), "10.0.0.1||10.0.0.2 10.0.0.3|"},
		"no names of nodes":        {here, with(func(e *topology.SliceEndpoint) { e.Node = "" }), "|10.0.0.1 10.0.0.2|10.0.0.3|"},
		"neither":                  {here, with(func(e *topology.SliceEndpoint) { e.Node, e.Zone = "", "" }), "||10.0.0.1 10.0.0.2 10.0.0.3|"},
		"not who we are":           {topology.Self{Zone: "za"}, all, "|10.0.0.1 10.0.0.2|10.0.0.3|"},
		"not where we are":         {topology.Self{Node: "n9"}, all, "||10.0.0.1 10.0.0.2 10.0.0.3|"},
		"our zone by our endpoint": {topology.Self{Node: "n1"}, all, "10.0.0.1|10.0.0.2|10.0.0.3|"},
		"ready alone, and it is":   {here, with(ready(true)), "10.0.0.1|10.0.0.2|10.0.0.3|"},
		"ready alone, and it is not": {
			here, with(ready(false)), "|||10.0.0.1! 10.0.0.2! 10.0.0.3!",
		},
		"no pods": {here, with(func(e *topology.SliceEndpoint) { e.TargetUID = "" }), "10.0.0.1|10.0.0.2|10.0.0.3|"},
		"hints for zones alone": {
			here, with(func(e *topology.SliceEndpoint) { e.ForZones = []string{e.Zone} }), "10.0.0.1|10.0.0.2|10.0.0.3|",
		},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, topology.Config{Self: c.self}, func(r *rig) {
				r.Replace([]topology.Slice{c.told})
				r.Synced()
				r.after(tick, c.want)
			})
		})
	}
}
