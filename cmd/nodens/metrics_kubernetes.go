package main

import (
	"github.com/nodens-dns/nodens/topology"
	"github.com/nodens-dns/nodens/topology/kube"
)

// ownKubernetesMetrics are about routes whose endpoints the API server tells.
func ownKubernetesMetrics() []metric {
	route := []string{"route"}
	rows := []metric{
		{
			"nodens_topology_contact_age_seconds", "Time since the last sign of life of the API server; up to a minute while nothing changes.", route,
			eachAPI(func(r *routeSnapshot) float64 { return r.API.Age.Seconds() }),
		},
		{"nodens_topology_fault", "1 for what keeps us from the API server.", []string{"route", "fault"}, func(s *snapshot, e emitter) {
			for i := range s.Routes {
				if r := &s.Routes[i]; r.API != nil {
					for _, f := range kube.Faults() {
						e.gauge(oneIf(r.API.Fault == f), r.name(), f.String())
					}
				}
			}
		}},
		{
			"nodens_topology_fallback", "1 while no endpoint was ever known and the ClusterIP or the fallback is asked.", route,
			eachTopology(func(t *topology.Status) float64 { return oneIf(t.Fallback) }),
		},
		{
			"nodens_topology_restored", "1 while the endpoints are those that were kept on disk.", route,
			eachTopology(func(t *topology.Status) float64 { return oneIf(t.Restored) }),
		},
		{
			"nodens_topology_zone_known", "1 while the zone of this node is known.", route,
			eachTopology(func(t *topology.Status) float64 { return oneIf(t.ZoneFrom != topology.ZoneUnknown) }),
		},
		{"nodens_topology_ignored", "What is ignored in the slices known now.", []string{"route", "kind"}, func(s *snapshot, e emitter) {
			for i := range s.Routes {
				if r := &s.Routes[i]; r.Topology != nil {
					for _, k := range topology.Kinds() {
						e.gauge(float64(r.Topology.Ignored[k]), r.name(), k.String())
					}
				}
			}
		}},
		{"nodens_topology_api_total", "What passed between us and the API server.", []string{"route", "what"}, readAPI},
		{"nodens_topology_api_received_bytes_total", "Bytes of the API server's replies, for all routes of the connection.", route, func(s *snapshot, e emitter) {
			for i := range s.Routes {
				if r := &s.Routes[i]; r.API != nil {
					e.count(r.Received, r.name())
				}
			}
		}},
	}
	return append(rows, keptMetrics()...)
}

// keptMetrics are about the endpoints kept on disk.
func keptMetrics() []metric {
	return []metric{
		{"nodens_snapshot_writes_total", "Times the endpoints were to be kept on disk.", []string{"route", "result"}, func(s *snapshot, e emitter) {
			for i := range s.Routes {
				if r := &s.Routes[i]; r.Kept != nil {
					e.count(r.Kept.Saves, r.name(), "saved")
					e.count(r.Kept.Failed, r.name(), "failed")
				}
			}
		}},
		{"nodens_snapshot_refused", "1 for why the endpoints kept on disk were not used at the start.", []string{"route", "reason"}, func(s *snapshot, e emitter) {
			for i := range s.Routes {
				if r := &s.Routes[i]; r.Kept != nil {
					for _, reason := range topology.Refusals() {
						e.gauge(oneIf(r.Kept.Refused == reason), r.name(), string(reason))
					}
				}
			}
		}},
	}
}

func eachAPI(value func(r *routeSnapshot) float64) func(*snapshot, emitter) {
	return func(s *snapshot, e emitter) {
		for i := range s.Routes {
			if r := &s.Routes[i]; r.API != nil {
				e.gauge(value(r), r.name())
			}
		}
	}
}

func readAPI(s *snapshot, e emitter) {
	for i := range s.Routes {
		r := &s.Routes[i]
		if r.API == nil {
			continue
		}
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
}
