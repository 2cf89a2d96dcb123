package main

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/nodens-dns/nodens/forwarder/upstream"
	"github.com/nodens-dns/nodens/topology"
)

// whyThere is why a server is in its tier; "" where servers have no distance.
func (r *routeSnapshot) whyThere(t *upstream.TargetStatus) string {
	c := &r.Config.Topology
	switch p := r.placement(t.Addr); {
	case p != nil:
		return p.Reason
	case r.external():
		return ""
	case slices.Contains(c.Local, t.Addr):
		return "a server of this node, named in the settings"
	case slices.Contains(c.ClusterIP, t.Addr):
		return "the ClusterIP, asked while no endpoint is known or none answers"
	case slices.Contains(c.Fallback, t.Addr):
		return "the fallback, asked when nothing else answers"
	case r.Topology.Empty:
		return "no slice names it any more; kept because none names another"
	}
	return ""
}

// doubts are why a server takes less than its share of the queries.
func (r *routeSnapshot) doubts(t *upstream.TargetStatus, now time.Duration) string {
	switch {
	case t.Looped:
		return "sends what it is asked back to nodens, not asked any more"
	case t.Fresh && t.State != upstream.Ready:
		return "" // it waits to become ready, not for a probe
	case t.Fresh && t.Pod == t.Addr.Addr().String():
		return "used once a probe succeeds"
	case t.Fresh:
		return "just became ready, used once a probe succeeds"
	case t.Out:
		return ejection(t, now)
	case t.Suspect:
		return fmt.Sprintf("silent %d times in a row, others are asked until it replies or is ejected", t.Misses)
	case t.Share < 1:
		return fmt.Sprintf("just came back, takes %.0f %% of its share", 100*t.Share)
	case t.Leaving > 0 && r.goesOn(t):
		return fmt.Sprintf("lost queries of late, %.0f %% of what it would get goes on to the next tier", 100*t.Leaving)
	case t.Leaving > 0:
		return "lost queries of late; there is no next tier to take some"
	}
	return ""
}

// goesOn reports whether a tier beyond a server's has one that takes queries.
func (r *routeSnapshot) goesOn(t *upstream.TargetStatus) bool {
	return slices.ContainsFunc(r.Servers.Targets, func(o upstream.TargetStatus) bool {
		return o.Tier > t.Tier && o.Tier < upstream.LastTier && o.State == upstream.Ready && !o.Out
	})
}

// ejection is why a server is out and when it may come back.
func ejection(t *upstream.TargetStatus, now time.Duration) string {
	cause := "its last query failed"
	switch {
	case t.Misfit != "":
		cause = fmt.Sprintf("its certificate does not fit (%s)", t.Misfit)
	case t.Misses > 0:
		cause = fmt.Sprintf("silent %d times in a row", t.Misses)
	}
	again := "when probes succeed"
	if wait := t.OutUntil - now; wait > 0 {
		again += fmt.Sprintf(", in %v at the earliest", roundTime(wait))
	}
	return cause + ", used again " + again
}

// placement is what topology says of the endpoint with that address.
func (r *routeSnapshot) placement(addr netip.AddrPort) *topology.Placement {
	if r.Topology == nil {
		return nil
	}
	list := r.Topology.Endpoints
	i := slices.IndexFunc(list, func(p topology.Placement) bool { return p.Endpoint.Asked() == addr && p.Tier != topology.TierNone })
	if i < 0 {
		return nil
	}
	return &list[i]
}
