package upstream

import "net/netip"

// State is what the source of a member says of it.
type State uint8

// States of a member.
const (
	// Ready members take new queries.
	Ready State = iota
	// Draining members finish what they have; they take new queries only when
	// nothing better is left.
	Draining
	// NotReady members take new queries only as a last resort.
	NotReady
)

func (s State) String() string {
	switch s {
	case Ready:
		return "ready"
	case Draining:
		return "draining"
	}
	return "not ready"
}

// Tiers of a table, nearest first. Plain servers, which have no distance, stand
// in ClusterTier in the order they were configured.
const (
	NodeTier    = 0
	ZoneTier    = 1
	ClusterTier = 2
	LastTier    = 3 // Table.Last
	tierCount   = 4
)

// Step is a place in Table.Last. Members of one step are equally near, and the
// lowest goes first.
type Step uint8

// Steps of Table.Last, nearest first.
const (
	NodeStep     Step = iota // on our node
	ZoneStep                 // in our zone
	ClusterStep              // anywhere in the cluster
	ServiceStep              // stands for the whole Service: its ClusterIP
	FallbackStep             // no server of the Service; asked when none of the others answers
)

// Member is one server. Invalid addresses are ways it cannot be asked; at least
// one must be valid, or the member is left out. Alt is the other address family
// of the same pod, used while the first is invalid or unreachable.
type Member struct {
	Pod                      string // for display; empty for plain servers
	UDP, TCP, AltUDP, AltTCP netip.AddrPort
	State                    State
	// Step is the member's place in Table.Last. It says nothing in a tier.
	Step Step
	// TLSName has the member asked over TLS (RFC 7858) at its TCP addresses
	// only, and is the name that its certificate must be for. Its UDP addresses
	// are not used. Empty: without TLS.
	TLSName string
}

// addr names the member: its first valid address.
func (m *Member) addr() netip.AddrPort {
	for _, a := range [...]netip.AddrPort{m.UDP, m.TCP, m.AltUDP} {
		if a.IsValid() {
			return a
		}
	}
	return m.AltTCP
}

// Table is the whole set of servers of a group. A member that is missing from
// the next table was removed.
type Table struct {
	// Tiers are the members by distance: NodeTier, ZoneTier, ClusterTier.
	Tiers [3][]Member
	// Last is used when no member of the tiers is healthy, by steps.
	Last []Member
	// Draining says that every member of the tiers is draining. It is shown in
	// Status; the choice goes by the members' states.
	Draining bool
}
