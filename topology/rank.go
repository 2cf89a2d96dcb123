package topology

import (
	"net/netip"
	"slices"
)

// Options changes how Rank judges. The zero value is the default.
type Options struct {
	// IgnoreHints takes nodeName and zone of every endpoint as they are and
	// never looks at ForNodes and ForZones. Default false: hints are honoured.
	IgnoreHints bool
}

// Tiers is the outcome of Rank. The lists are disjoint, hold every address and port
// once and keep the order of the input, except that endpoints which are ready
// without serving come last in their tier.
type Tiers struct {
	Node    []Endpoint // on our node
	Zone    []Endpoint // in our zone, not on our node
	Cluster []Endpoint // usable and neither

	// Last holds every other known endpoint, nearest first by nodeName and
	// zone. It is for the moment when no tier has anything that answers: the
	// control plane can lose sight of all pods while all of them work.
	Last []Endpoint
	// LastNode and LastZone are how many of Last are on our node, and how many of
	// the others in our zone.
	LastNode, LastZone int

	// Draining says that nothing is ready and the tiers were made of endpoints
	// that are terminating and still serve.
	Draining bool
}

// Usable reports whether any tier has an endpoint.
func (t *Tiers) Usable() bool { return len(t.Node)+len(t.Zone)+len(t.Cluster) > 0 }

// Rank puts the endpoints of one Service and one address family into tiers. It
// is a pure function; it keeps nothing of its arguments.
//
// An address may occur more than once, because an endpoint may move between
// slices and because a new pod may get the address of one that lingers; the
// copies of one address come oldest first. Another pod at another port is no copy:
// pods may share the address of their node. A copy that is not terminating beats
// one that is, otherwise the newest stands.
//
// Usable are the ready endpoints; only if there is none in the whole cluster,
// those that are serving and terminating. That fallback is decided here, when
// the tiers are formed, and never when they are used: one ready endpoint
// anywhere keeps every draining one out, the one on our own node included.
//
// Hints of a kind count only if every ready endpoint carries one of that kind,
// and then they are final. Where they do not count, nodeName and zone decide.
func Rank(self Self, endpoints []Endpoint, opts Options) Tiers {
	standing := standing(endpoints)
	j := newJudge(self, endpoints, standing, opts)
	slots := make([]uint8, len(standing))
	var end [slotCount]int
	for n, i := range standing {
		slots[n] = j.slot(&endpoints[i])
		end[slots[n]]++
	}
	var next [slotCount]int
	for s := 1; s < slotCount; s++ {
		next[s] = end[s-1]
		end[s] += end[s-1]
	}
	sorted := make([]Endpoint, len(standing))
	for n, i := range standing {
		sorted[next[slots[n]]] = endpoints[i]
		next[slots[n]]++
	}
	node, zone, cluster := end[2*TierNode+1], end[2*TierZone+1], end[2*TierCluster+1]
	return Tiers{
		Node:     sorted[:node:node],
		Zone:     sorted[node:zone:zone],
		Cluster:  sorted[zone:cluster:cluster],
		Last:     sorted[cluster:],
		LastNode: end[2*TierLast] - cluster,
		LastZone: end[2*TierLast+1] - end[2*TierLast],
		Draining: j.draining,
	}
}

// slotCount is two slots for each tier and three for Last. Endpoints are sorted
// by slot, counting, since there may be thousands and few slots.
const slotCount = 2*int(TierLast) + 3

// slot is where e stands in the order of the whole outcome: by tier, in a tier
// first who serves, in Last by distance.
func (j *judge) slot(e *Endpoint) uint8 {
	tier, _ := j.place(e)
	slot := 2 * uint8(tier)
	switch {
	case tier == TierLast:
		slot += j.distance(e)
	case !e.Serving:
		slot++
	}
	return slot
}

// standing returns the index of the copy that stands for each endpoint, in the
// order in which these first occur.
func standing(endpoints []Endpoint) []int {
	indexes := make([]int, 0, len(endpoints))
	first := make(map[netip.Addr]int, len(endpoints)) // in indexes
	var more map[netip.Addr][]int                     // likewise, of addresses with several endpoints
	for i := range endpoints {
		e := &endpoints[i]
		at, known := first[e.Addr]
		if !known {
			first[e.Addr] = len(indexes)
			indexes = append(indexes, i)
			continue
		}
		of := func(at int) bool { return e.copies(&endpoints[indexes[at]]) }
		if !of(at) {
			others := more[e.Addr]
			n := slices.IndexFunc(others, of)
			if n < 0 {
				if more == nil {
					more = map[netip.Addr][]int{}
				}
				more[e.Addr] = append(others, len(indexes))
				indexes = append(indexes, i)
				continue
			}
			at = others[n]
		}
		if old := &endpoints[indexes[at]]; old.Terminating || !e.Terminating {
			indexes[at] = i
		}
	}
	return indexes
}

// judge is what has to be known about all endpoints before one can be placed.
type judge struct {
	self      Self
	draining  bool // nothing is ready, something is draining
	nodeHints bool // node hints are complete and count
	zoneHints bool // zone hints are complete and count
}

func newJudge(self Self, endpoints []Endpoint, standing []int, opts Options) judge {
	var ready, draining, nodeHinted, zoneHinted int
	for _, i := range standing {
		e := &endpoints[i]
		if e.draining() {
			draining++
		}
		if !e.Ready {
			continue
		}
		ready++
		if !e.ForNodes.Empty() {
			nodeHinted++
		}
		if !e.ForZones.Empty() {
			zoneHinted++
		}
	}
	// Hints are written for ready endpoints only: on a draining one they are
	// what is left of an earlier state.
	honour := ready > 0 && !opts.IgnoreHints
	return judge{
		self:      self,
		draining:  ready == 0 && draining > 0,
		nodeHints: honour && nodeHinted == ready,
		zoneHints: honour && zoneHinted == ready,
	}
}

// place returns the tier of e and the reason in a few words.
func (j *judge) place(e *Endpoint) (Tier, string) {
	if !e.Ready && !(j.draining && e.draining()) {
		return TierLast, j.whyNot(e)
	}
	switch {
	case j.nodeHints && e.ForNodes.Has(j.self.Node):
		return TierNode, "hinted for this node"
	case !j.nodeHints && same(e.Node, j.self.Node):
		return TierNode, "on this node"
	case j.zoneHints && e.ForZones.Has(j.self.Zone):
		return TierZone, "hinted for this zone"
	case !j.zoneHints && same(e.Zone, j.self.Zone):
		return TierZone, "in this zone"
	}
	return TierCluster, j.whyFar(e)
}

// whyNot tells why e is in no tier.
func (j *judge) whyNot(e *Endpoint) string {
	switch {
	case e.draining():
		return "terminating, still serving; not used while another endpoint is ready"
	case e.Terminating:
		return "terminating and not serving"
	default:
		return "not ready"
	}
}

// whyFar tells why e is usable and neither on this node nor in this zone.
func (j *judge) whyFar(e *Endpoint) string {
	switch {
	case j.nodeHints && same(e.Node, j.self.Node):
		return "on this node, but hinted for another"
	case j.zoneHints && same(e.Zone, j.self.Zone):
		return "in this zone, but hinted for another"
	case j.self.Zone == "":
		return "on another node; the zone of this node is unknown"
	case j.zoneHints:
		return "hinted for another zone"
	case e.Zone == "":
		return "its zone is unknown"
	default:
		return "in another zone"
	}
}

// distance is closeness by nodeName and zone alone: 0 node, 1 zone, 2 cluster.
func (j *judge) distance(e *Endpoint) uint8 {
	switch {
	case same(e.Node, j.self.Node):
		return 0
	case same(e.Zone, j.self.Zone):
		return 1
	default:
		return 2
	}
}

// same compares two names; an unknown name is never the same as anything.
func same(a, b string) bool { return a != "" && a == b }
