package topology

// Tier is how near an endpoint stands.
type Tier uint8

// The tiers, nearest first.
const (
	TierNode    Tier = iota // on our node
	TierZone                // in our zone
	TierCluster             // anywhere in the cluster
	TierLast                // known, not usable: last resort
	TierNone                // in no list, e.g. an older copy of an address
)

// String returns the word used in status pages and metrics.
func (t Tier) String() string {
	switch t {
	case TierNode:
		return "node"
	case TierZone:
		return "zone"
	case TierCluster:
		return "cluster"
	case TierLast:
		return "last"
	default:
		return "none"
	}
}

// Placement is one endpoint, where it stands, and why.
type Placement struct {
	Endpoint Endpoint
	Slice    string // namespace/name of its slice; "" from Explain
	Tier     Tier
	Reason   string // a few words for a status page
}

// Explain tells for every endpoint where Rank puts it and why, in the order of
// the input. It judges by the same code as Rank.
func Explain(self Self, endpoints []Endpoint, opts Options) []Placement {
	standing := standing(endpoints)
	j := newJudge(self, endpoints, standing, opts)
	placements := make([]Placement, len(endpoints))
	for i := range endpoints {
		placements[i] = Placement{
			Endpoint: endpoints[i],
			Tier:     TierNone,
			Reason:   "another copy of the address stands: not terminating, or newer",
		}
	}
	for _, i := range standing {
		p := &placements[i]
		p.Tier, p.Reason = j.place(&endpoints[i])
		if p.Tier != TierLast && !endpoints[i].Serving {
			p.Reason += "; ready but not serving, ordered last"
		}
	}
	return placements
}
