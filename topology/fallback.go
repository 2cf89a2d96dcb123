package topology

import (
	"net/netip"
	"slices"
)

// Fallback is whom to ask without knowing any endpoint, and last of all when
// none that is known answers.
type Fallback struct {
	// Service are addresses that stand for the whole Service: its ClusterIP.
	Service []netip.AddrPort
	// Servers are asked when those do not answer. They should know the names of
	// the cluster.
	Servers []netip.AddrPort
}

func (f *Fallback) none() bool { return len(f.Service)+len(f.Servers) == 0 }

// apply returns the Table with the fallback. While an endpoint is known, even
// one that is not ready, the fallback is the end of the last resort; otherwise
// it is all there is. The Table given is not changed.
func (f *Fallback) apply(t Table) Table {
	switch {
	case f.none():
	case !t.Empty():
		t.Last = slices.Concat(t.Last, plain(NotReady, StepService, f.Service), plain(NotReady, StepServers, f.Servers))
	case len(f.Service) > 0:
		t.Tiers[TierCluster] = plain(Ready, 0, f.Service)
		t.Last = plain(NotReady, StepServers, f.Servers)
	default:
		t.Tiers[TierCluster] = plain(Ready, 0, f.Servers)
	}
	return t
}

// plain makes members of addresses without a pod.
func plain(state State, step Step, addrs []netip.AddrPort) []Member {
	var members []Member
	for _, a := range addrs {
		members = append(members, Member{Pod: a.Addr().String(), UDP: a, TCP: a, State: state, Step: step})
	}
	return members
}
