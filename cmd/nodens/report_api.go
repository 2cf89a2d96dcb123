package main

import (
	"fmt"
	"time"

	"github.com/nodens-dns/nodens/topology"
	"github.com/nodens-dns/nodens/topology/kube"
)

// apiNotes are what is worth knowing about the API server, the endpoints kept on
// disk and the place of this node.
func (r *routeSnapshot) apiNotes() []string {
	if r.API == nil {
		return nil
	}
	var notes []string
	say := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if r.API.Fault != kube.None {
		say("The API server has been of no help for %s (%s): %s", roundTime(r.API.FailingFor), r.API.Fault, r.API.LastError)
	}
	switch t := r.Topology; {
	case t.Fallback && r.unproved():
		say("No endpoint is in force: the ClusterIP or the fallback is asked, whatever is near.")
	case t.Fallback:
		say("No endpoint has ever been known: the ClusterIP or the fallback is asked, whatever is near.")
	case t.Restored:
		say("The endpoints are those that were kept on disk at %s.", r.Kept.SavedAt.UTC().Format(time.DateTime))
	case t.ZoneFrom == topology.ZoneUnknown:
		say("The zone of this node is unknown, so no endpoint is in the same zone%s.", r.whyNoZone())
	}
	if r.API.Found {
		say("The Service is %s/%s, found by its label.", r.API.Namespace, r.API.Service)
	}
	return append(notes, r.keptNotes()...)
}

// whyNoZone is what the Node object said.
func (r *routeSnapshot) whyNoZone() string {
	if r.Node == nil || r.Node.Fault == kube.None {
		return ""
	}
	return ": " + r.Node.LastError
}

// unproved says that endpoints were kept on disk, and that not one of those that
// were asked is what it was.
func (r *routeSnapshot) unproved() bool {
	return r.Kept != nil && r.Kept.Found && r.Kept.Restored == 0 && r.Kept.Unverified > 0 && !r.Topology.Synced
}

func (r *routeSnapshot) keptNotes() []string {
	if r.Kept == nil {
		return nil
	}
	var notes []string
	if r.Kept.Refused != "" {
		notes = append(notes, fmt.Sprintf("%s was not used at the start: %s.", r.Kept.Path, string(r.Kept.Refused)))
	}
	if r.unproved() {
		notes = append(notes, fmt.Sprintf("Endpoints were kept on disk at %s, but of the %d that were asked none proved that it is a DNS server of this cluster: they are not used.",
			r.Kept.SavedAt.UTC().Format(time.DateTime), r.Kept.Unverified))
	}
	if r.Kept.LastError != "" {
		notes = append(notes, "The endpoints cannot be kept on disk: "+r.Kept.LastError)
	}
	return notes
}
