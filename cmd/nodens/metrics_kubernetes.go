package main

import (
	"github.com/nodens-dns/nodens/topology"
	"github.com/nodens-dns/nodens/topology/kube"
)

// ownKubernetesMetrics are about routes whose endpoints the API server tells.
func ownKubernetesMetrics() []metric {
	route := []string{"route"}
	return []metric{
		{
			"nodens_topology_contact_age_seconds", "Time since the last sign of life of the API server; up to a minute while nothing changes.", route,
			eachAPI(func(r *routeSnapshot, e emitter) { e.gauge(r.API.Age.Seconds(), r.name()) }),
		},
		{"nodens_topology_fault", "1 for what keeps us from the API server.", []string{"route", "fault"}, eachAPI(readFault)},
		ofTopology("nodens_topology_fallback", "1 while no endpoint was ever known and the ClusterIP or the fallback is asked.", func(t *topology.Status) float64 { return oneIf(t.Fallback) }),
		ofTopology("nodens_topology_restored", "1 while the endpoints are those that were kept on disk.", func(t *topology.Status) float64 { return oneIf(t.Restored) }),
		ofTopology("nodens_topology_zone_known", "1 while the zone of this node is known.", func(t *topology.Status) float64 { return oneIf(t.ZoneFrom != topology.ZoneUnknown) }),
		{"nodens_topology_ignored", "What is ignored in the slices known now.", []string{"route", "kind"}, readIgnoredSlices},
		{"nodens_topology_api_total", "What passed between us and the API server.", []string{"route", "what"}, eachAPI(readAPI)},
		{
			"nodens_topology_api_received_bytes_total", "Bytes of the API server's replies, for all routes of the connection.", route,
			eachAPI(func(r *routeSnapshot, e emitter) { e.count(r.Received, r.name()) }),
		},
		{"nodens_snapshot_writes_total", "Times the endpoints were to be kept on disk.", []string{"route", "result"}, eachAPI(readWrites)},
		{"nodens_snapshot_refused", "1 for why the endpoints kept on disk were not used at the start.", []string{"route", "reason"}, eachAPI(readRefused)},
	}
}

func eachAPI(read func(r *routeSnapshot, e emitter)) func(*snapshot, emitter) {
	return func(s *snapshot, e emitter) {
		for i := range s.Routes {
			if r := &s.Routes[i]; r.API != nil {
				read(r, e)
			}
		}
	}
}

func readFault(r *routeSnapshot, e emitter) {
	for _, f := range kube.Faults() {
		e.gauge(oneIf(r.API.Fault == f), r.name(), f.String())
	}
}

func readIgnoredSlices(s *snapshot, e emitter) {
	for i := range s.Routes {
		r := &s.Routes[i]
		if r.Topology == nil {
			continue
		}
		for _, k := range topology.Kinds() {
			e.gauge(float64(r.Topology.Ignored[k]), r.name(), k.String())
		}
	}
}

func readWrites(r *routeSnapshot, e emitter) {
	if r.Kept != nil {
		e.count(r.Kept.Saves, r.name(), "saved")
		e.count(r.Kept.Failed, r.name(), "failed")
	}
}

func readRefused(r *routeSnapshot, e emitter) {
	if r.Kept == nil {
		return
	}
	for _, reason := range topology.Refusals() {
		e.gauge(oneIf(r.Kept.Refused == reason), r.name(), string(reason))
	}
}

func readAPI(r *routeSnapshot, e emitter) {
	c := &r.API.Counters
	e.count(c.Lists, r.name(), "list")
	e.count(c.Watches, r.name(), "watch")
	e.count(c.Events, r.name(), "event")
	e.count(c.Bookmarks, r.name(), "bookmark")
	e.count(c.Failures, r.name(), "failure")
	e.count(c.Foreign, r.name(), "foreign")
	e.count(c.Rewinds, r.name(), "rewind")
	e.count(c.Searches, r.name(), "search")
}
