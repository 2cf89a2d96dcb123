package topology

import (
	"cmp"
	"net/netip"
	"slices"
)

// State is the condition of a Member.
type State uint8

// The states.
const (
	Ready    State = iota // takes queries
	Draining              // terminating, still answers
	NotReady              // starting, failing its probe, lost with its node, or terminating and silent
)

// String returns the word used in status pages and metrics.
func (s State) String() string {
	switch s {
	case Ready:
		return "ready"
	case Draining:
		return "draining"
	default:
		return "not ready"
	}
}

// Step is a place in Table.Last. Members of one step are equally near.
type Step uint8

// The steps, nearest first.
const (
	StepNode    Step = iota // on our node
	StepZone                // in our zone
	StepCluster             // anywhere in the cluster
	StepService             // Fallback.Service
	StepServers             // Fallback.Servers
)

// Member is one pod of a Table, with the addresses it can be asked on. Invalid
// address and port pairs mean "not there".
type Member struct {
	// Pod is the pod's namespace/name, for people; else the uid, else the
	// address. Never empty.
	Pod    string
	UDP    netip.AddrPort
	TCP    netip.AddrPort
	AltUDP netip.AddrPort // the same pod in the other address family
	AltTCP netip.AddrPort
	State  State
	// Step is the place in Table.Last. 0 in a tier.
	Step Step
}

// Table is an immutable snapshot of whom to ask: neither its maker nor its
// readers change it.
type Table struct {
	// Tiers are the usable members: of our node, of our zone, of the cluster.
	Tiers [3][]Member
	// Last are the other known members, by steps. They take no new query
	// while a tier has a member that answers; a member that turned Draining is
	// listed here so that its replies in flight are still awaited. A member in
	// neither place was removed.
	Last []Member
	// Draining says that the tiers hold draining members, because nothing is
	// ready: keep per-try timeouts short, some may be dead.
	Draining bool
	// Provisional says that no source has told it: it is made of a snapshot, or of
	// what is known without any endpoint.
	Provisional bool
}

// Empty reports a Table without any member.
func (t *Table) Empty() bool { return t.Usable() == 0 && len(t.Last) == 0 }

// Usable returns the number of members in the tiers.
func (t *Table) Usable() int { return len(t.Tiers[0]) + len(t.Tiers[1]) + len(t.Tiers[2]) }

// Equal reports whether both hold the same members in the same order, on the same
// authority.
func (t *Table) Equal(other *Table) bool {
	for i := range t.Tiers {
		if !slices.Equal(t.Tiers[i], other.Tiers[i]) {
			return false
		}
	}
	return slices.Equal(t.Last, other.Last) && t.Draining == other.Draining && t.Provisional == other.Provisional
}

// NewTable turns the tiers of one address family into a Table. others are the
// endpoints of the other family: those that belong to a pod of the tiers become
// its alternate addresses, the rest is left out.
func NewTable(tiers Tiers, others []Endpoint) Table {
	alternates := byPod(others)
	return Table{
		Tiers: [3][]Member{
			members(tiers.Node, alternates),
			members(tiers.Zone, alternates),
			members(tiers.Cluster, alternates),
		},
		Last:     lastMembers(&tiers, alternates),
		Draining: tiers.Draining,
	}
}

// lastMembers are the members of Last, each with its step.
func lastMembers(tiers *Tiers, alternates map[string]*Endpoint) []Member {
	list := members(tiers.Last, alternates)
	for i := range list {
		switch {
		case i < tiers.LastNode:
			list[i].Step = StepNode
		case i < tiers.LastNode+tiers.LastZone:
			list[i].Step = StepZone
		default:
			list[i].Step = StepCluster
		}
	}
	return list
}

// byPod indexes the standing endpoints that name their pod.
func byPod(endpoints []Endpoint) map[string]*Endpoint {
	if len(endpoints) == 0 {
		return nil
	}
	index := make(map[string]*Endpoint, len(endpoints))
	for _, i := range standing(endpoints) {
		if e := &endpoints[i]; e.Pod != "" {
			index[e.Pod] = e
		}
	}
	return index
}

func members(endpoints []Endpoint, alternates map[string]*Endpoint) []Member {
	if len(endpoints) == 0 {
		return nil
	}
	list := make([]Member, len(endpoints))
	for i := range endpoints {
		e := &endpoints[i]
		m := Member{
			Pod:   cmp.Or(e.PodName, e.Pod),
			UDP:   addrPort(e.Addr, e.UDPPort),
			TCP:   addrPort(e.Addr, e.TCPPort),
			State: e.state(),
		}
		if m.Pod == "" {
			m.Pod = e.Addr.String()
		} else if alt := alternates[e.Pod]; alt != nil {
			m.AltUDP = addrPort(alt.Addr, alt.UDPPort)
			m.AltTCP = addrPort(alt.Addr, alt.TCPPort)
		}
		list[i] = m
	}
	return list
}

func addrPort(addr netip.Addr, port uint16) netip.AddrPort {
	if port == 0 {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(addr, port)
}

// lastResort is the table for a world that stays empty: whoever was known last,
// nearest first, trusted by nobody but better than nothing.
func (t *Table) lastResort() Table {
	var last []Member
	for tier, group := range t.Tiers {
		for _, m := range group {
			m.Step = Step(tier)
			last = append(last, m)
		}
	}
	last = append(last, t.Last...)
	for i := range last {
		last[i].State = NotReady
	}
	slices.SortStableFunc(last, func(a, b Member) int { return cmp.Compare(a.Step, b.Step) })
	return Table{Last: last}
}
