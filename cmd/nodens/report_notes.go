package main

import (
	"fmt"

	"github.com/nodens-dns/nodens/forwarder/upstream"
	"github.com/nodens-dns/nodens/topology"
)

// notes are what is worth knowing about where the servers come from.
func (r *routeSnapshot) notes() []string {
	var notes []string
	if r.Config.Note != "" {
		notes = append(notes, "Of the Corefile: "+r.Config.Note+".")
	}
	if r.File != nil && r.File.LastError != "" {
		notes = append(notes, "The file cannot be used; what it said before counts: "+r.File.LastError)
	}
	notes = append(notes, r.apiNotes()...)
	if r.Topology != nil {
		notes = append(append(notes, r.cutNotes()...), r.ignoredNotes()...)
	}
	if r.Topology != nil && r.Topology.Empty {
		notes = append(notes, fmt.Sprintf("No endpoint has been known for %s; the last known ones are asked.", roundTime(r.Topology.EmptyFor)))
	}
	if r.Topology != nil && r.Topology.Table.Draining {
		notes = append(notes, "No endpoint is ready; those that are shutting down are asked.")
	}
	switch {
	case r.Config.RulesOnly:
		notes = append(notes, "There are no servers: names that no rule answers get SERVFAIL.")
	case len(r.Servers.Targets) == 0:
		notes = append(notes, "There is no server to ask: names that are not in the cache get SERVFAIL.")
	}
	return notes
}

// cutNotes say how many servers of a tier this node uses, where that is not all
// of them: only these are shown.
func (r *routeSnapshot) cutNotes() []string {
	var notes []string
	for _, tier := range []struct {
		number int
		where  string
	}{{upstream.ZoneTier, "in the zone"}, {upstream.ClusterTier, "elsewhere in the cluster"}} {
		used, known := len(r.targets(tier.number)), len(r.Topology.Table.Tiers[tier.number])
		if used < known {
			notes = append(notes, fmt.Sprintf("%d of %s endpoints %s are used and shown.", used, humanCount(known), tier.where))
		}
	}
	return notes
}

// ignoredNotes say what of the slices is not used and should not be there.
func (r *routeSnapshot) ignoredNotes() []string {
	ignored := r.Topology.Ignored.Faulty()
	if ignored == (topology.Ignored{}) {
		return nil
	}
	notes := []string{fmt.Sprintf("The slices hold what is ignored, by kind: %s.", ignored.String())}
	if ignored[topology.OtherController] > 0 && len(r.Topology.Endpoints) == 0 {
		notes = append(notes, "No slice is left that managedBy allows and that has an endpoint: correct the list, or look at who writes the slices.")
	}
	return notes
}
