package main

import (
	"github.com/nodens-dns/nodens/forwarder"
	"github.com/nodens-dns/nodens/forwarder/listener"
	"github.com/nodens-dns/nodens/forwarder/upstream"
	"github.com/nodens-dns/nodens/topology"
)

// ownMetrics are those that node-cache has no name for. No label grows with
// the traffic; listen is a listen address and route the first zone of a route.
func ownMetrics() []metric {
	rows := []metric{
		gauge("nodens_ready", "1 while ready.", func(s *snapshot) float64 { return oneIf(s.NotReady == "") }),
		gauge("nodens_config_loaded_timestamp_seconds", "When the configuration in force was taken over.", func(s *snapshot) float64 { return float64(s.Reload.Good.UnixMilli()) / 1e3 }),
		gauge("nodens_config_stale", "1 while the configuration file is not the one in force.", func(s *snapshot) float64 { return oneIf(s.Reload.Err != nil) }),
		gauge("nodens_config_restart_needed", "1 while the configuration in force has settings that wait for a restart; the log and nodens status name them.", func(s *snapshot) float64 { return oneIf(len(s.Waits) > 0) }),
		gauge("nodens_gc_percent", "Growth of the heap between two collections, negative when off.", func(s *snapshot) float64 { return float64(s.Memory.GCPercent) }),
		gauge("nodens_memory_limit_bytes", "Soft limit of the process, 0 for none.", func(s *snapshot) float64 { return float64(s.Memory.Limit) }),
		count("nodens_admin_bind_failures_total", "Times the admin address could not be had.", func(s *snapshot) uint64 { return s.AdminFailures }),
		{"nodens_guard_connected", "1 while there is a connection to the guard.", nil, func(s *snapshot, e emitter) {
			if s.Guard != nil {
				e.gauge(oneIf(s.Guard.Connected))
			}
		}},
		{"nodens_in_flight", "Work in progress, against nodens_in_flight_limit.", []string{"what", "of"}, readInFlight},
		{"nodens_in_flight_limit", "Bounds of the work in progress.", []string{"what", "of"}, readLimits},
	}
	rows = append(rows, ownQueryMetrics()...)
	rows = append(rows, ownServerMetrics()...)
	rows = append(rows, ownTopologyMetrics()...)
	rows = append(rows, ownWatchMetrics()...)
	return append(rows, ownKubernetesMetrics()...)
}

func ownQueryMetrics() []metric {
	return []metric{
		{"nodens_replies_total", "Replies by where they came from: hit, stale, miss, local or failure.", []string{"zone", "source"}, readSources},
		{"nodens_dropped_total", "Messages and connections that got no reply.", []string{"listen", "proto", "reason"}, readDropped},
		count("nodens_not_queries_total", "Messages that asked nothing, such as replies.", func(s *snapshot) uint64 { return s.Forwarder.Dropped }),
		{"nodens_turned_away_total", "Queries of clients that may not ask (denied), or asked more than their share (limited).", []string{"why"}, readTurned},
		gauge("nodens_clients", "Clients with a bucket that is not full or a miss in flight, while clients have bounds.", func(s *snapshot) float64 { return float64(s.Forwarder.Access.Clients) }),
		gauge("nodens_clients_limit", "Clients that can be known at one time.", func(s *snapshot) float64 { return float64(s.Forwarder.Access.Most) }),
		count("nodens_shared_total", "Queries answered by the reply to an identical one.", func(s *snapshot) uint64 { return s.Forwarder.Shared }),
		count("nodens_surplus_total", "Queries dropped because too many were waiting for the same answer, or for those of one route.", func(s *snapshot) uint64 { return s.Forwarder.Surplus }),
		count("nodens_unkept_total", "Servers' replies that were not to be kept.", func(s *snapshot) uint64 { return s.Forwarder.Unkept }),
		count("nodens_renewals_total", "Answers asked for again in the background, before their end or after.", func(s *snapshot) uint64 { return s.Forwarder.Renewed }),
		count("nodens_prefetches_total", "Those of nodens_renewals_total that were before the answer's end.", func(s *snapshot) uint64 { return s.Forwarder.Prefetched }),
		count("nodens_prefetches_shed_total", "Answers not asked for before their end because the route was half full.", func(s *snapshot) uint64 { return s.Forwarder.Unfetched }),
		count("nodens_search_prefetches_total", "Names of search lists that were asked for before the client did.", func(s *snapshot) uint64 { return s.Forwarder.Ahead }),
		count("nodens_search_prefetches_shed_total", "Names of search lists not asked for ahead because their route was half full or did not answer.", func(s *snapshot) uint64 { return s.Forwarder.HeldBack }),
		count("nodens_implied_denials_total", "Names denied because of the denial of another name.", func(s *snapshot) uint64 { return s.Forwarder.Implied }),
		{"nodens_tcp_connections_total", "Connections accepted, also those of the guard's probes.", []string{"listen"}, func(s *snapshot, e emitter) {
			for i := range s.Listens {
				e.count(s.Listens[i].TCP.Accepted, s.Listens[i].Address.String())
			}
		}},
		{"nodens_listen_waiting", "1 while another user's process has the port, over UDP or TCP.", []string{"listen"}, func(s *snapshot, e emitter) {
			for i := range s.Listens {
				e.gauge(oneIf(s.Listens[i].Waiting), s.Listens[i].Address.String())
			}
		}},
		{"nodens_listen_bind_failures_total", "Times that a listen address waited for could not be had.", []string{"listen"}, func(s *snapshot, e emitter) {
			for i := range s.Listens {
				e.count(s.Listens[i].WaitedFor, s.Listens[i].Address.String())
			}
		}},
		ofSocket("nodens_udp_receive_buffer_bytes", "Receive buffer that the kernel granted a UDP socket.", func(e emitter, s listener.SocketStats, labels ...string) {
			e.gauge(float64(s.ReceiveBuffer), labels...)
		}),
		ofSocket("nodens_udp_overflows_total", "Datagrams that the kernel dropped because the receive buffer of a UDP socket was full.", func(e emitter, s listener.SocketStats, labels ...string) {
			e.count(s.Overflowed, labels...)
		}),
		gauge("nodens_cache_bytes", "Memory of the answers kept.", func(s *snapshot) float64 { return float64(s.Cache.Bytes) }),
		gauge("nodens_cache_limit_bytes", "Bound of nodens_cache_bytes.", func(s *snapshot) float64 { return float64(s.Cache.Limit) }),
		count("nodens_cache_shrinks_total", "Times that the bound was lowered because the memory that the cgroup allows was nearly used up.", func(s *snapshot) uint64 { return s.Shrinks }),
		count("nodens_cache_collisions_total", "Look-ups that met another key with the same hash.", func(s *snapshot) uint64 { return s.Cache.Collisions }),
	}
}

func ownServerMetrics() []metric {
	route := []string{"route"}
	return []metric{
		ofTier("nodens_upstream_suspicions_total", "Servers that were silent three times in a row: others were asked until they replied or were ejected.", func(u *upstream.Status) []uint64 { return u.Suspicions[:] }),
		ofTier("nodens_upstream_ejections_total", "Servers that were avoided from then on because they failed.", func(u *upstream.Status) []uint64 { return u.Ejections[:] }),
		ofTier("nodens_upstream_hedges_total", "Copies put to a second server before the first was late, by the tier of the first.", func(u *upstream.Status) []uint64 { return u.Hedges[:] }),
		ofTier("nodens_upstream_spills_total", "Queries that a nearer tier had too much to do for, by the tier they went to.", func(u *upstream.Status) []uint64 { return u.Spills[:] }),
		ofTier("nodens_upstream_panics_total", "Queries put to servers to be avoided because too few others are left.", func(u *upstream.Status) []uint64 { return u.Panics[:] }),
		ofTier("nodens_upstream_replies_total", "Servers' replies by the tier they came from.", func(u *upstream.Status) []uint64 { return u.Served[:] }),
		ofRoute("nodens_upstream_exchanges_total", "Queries that servers were asked.", func(r *routeSnapshot) uint64 { return r.Servers.Exchanges }),
		ofRoute("nodens_upstream_attempts_total", "Questions put to servers for them.", func(r *routeSnapshot) uint64 { return r.Servers.Attempts }),
		ofRoute("nodens_upstream_retries_total", "Attempts after the first.", func(r *routeSnapshot) uint64 { return r.Servers.Retries }),
		ofRoute("nodens_upstream_probes_total", "Questions put to see how a server is.", func(r *routeSnapshot) uint64 { return r.Servers.Probes }),
		ofRoute("nodens_upstream_loops_total", "Names asked to find loops that came back.", func(r *routeSnapshot) uint64 { return r.Servers.Looped }),
		ofRoute("nodens_upstream_held_total", "Times that a query had to wait: every server is to be avoided, or the packet rate is reached.", func(r *routeSnapshot) uint64 { return r.Servers.Held }),
		ofRoute("nodens_upstream_exhausted_total", "Queries that no server answered.", func(r *routeSnapshot) uint64 { return r.Servers.Exhausted }),
		ofRoute("nodens_upstream_tcp_fallbacks_total", "Truncated replies asked again over TCP.", func(r *routeSnapshot) uint64 { return r.Servers.TCPFallbacks }),
		ofRoute("nodens_upstream_edns_fallbacks_total", "Questions put again without EDNS.", func(r *routeSnapshot) uint64 { return r.Servers.EDNSFallbacks }),
		{"nodens_upstream_shed_total", "Queries not sent because the route had too many in flight.", route, func(s *snapshot, e emitter) {
			for _, r := range s.Forwarder.Routes {
				e.count(r.Shed, r.Zone)
			}
		}},
		{"nodens_upstream_ignored_total", "What arrived from a server and was not taken.", []string{"route", "to", "reason"}, readIgnored},
		{"nodens_upstream_sockets", "Sockets open.", route, func(s *snapshot, e emitter) {
			for i := range s.Routes {
				e.gauge(float64(s.Routes[i].Servers.Open), s.Routes[i].name())
			}
		}},
		{"nodens_upstream_out", "Servers that are avoided: they failed, or no probe has succeeded yet.", []string{"route", "tier"}, eachTier(readOut)},
		{"nodens_upstream_failures_total", "Attempts that failed.", []string{"route", "to", "reason"}, readFailures},
	}
}

func ownTopologyMetrics() []metric {
	route := []string{"route"}
	return []metric{
		{"nodens_endpoints", "Servers by tier.", []string{"route", "tier"}, eachTier(readEndpoints)},
		ofTopology("nodens_topology_source_age_seconds", "Time since the endpoints' source said anything.", func(t *topology.Status) float64 { return t.SourceAge.Seconds() }),
		ofTopology("nodens_topology_table_age_seconds", "Time since the set of servers changed.", func(t *topology.Status) float64 { return t.TableAge.Seconds() }),
		ofTopology("nodens_topology_empty", "1 while no endpoint is known and former ones are used.", func(t *topology.Status) float64 { return oneIf(t.Empty) }),
		{"nodens_topology_file_bad", "1 while the endpoints' file cannot be used.", route, func(s *snapshot, e emitter) {
			for i := range s.Routes {
				if r := &s.Routes[i]; r.File != nil {
					e.gauge(oneIf(r.File.LastError != ""), r.name())
				}
			}
		}},
	}
}

func readTurned(s *snapshot, e emitter) {
	e.count(s.Forwarder.Denied, "denied")
	e.count(s.Forwarder.Limited, "limited")
}

// readSources adds up the listen addresses.
func readSources(s *snapshot, e emitter) {
	sums := map[string]*[forwarder.Sources]uint64{}
	for i := range s.Forwarder.Zones {
		z := &s.Forwarder.Zones[i]
		if sums[z.Zone] == nil {
			sums[z.Zone] = &[forwarder.Sources]uint64{}
		}
		for source := range z.Responses {
			sums[z.Zone][source] += sumOf(z.Responses[source][:])
		}
	}
	for _, zone := range sortedKeys(sums) {
		for source, n := range sums[zone] {
			e.count(n, zone, sourceName(forwarder.Source(source)))
		}
	}
}

func readInFlight(s *snapshot, e emitter) {
	for i := range s.Listens {
		l := &s.Listens[i]
		e.gauge(float64(l.UDP.InFlight), "udp_misses", l.Address.String())
		e.gauge(float64(l.TCP.InFlight), "tcp_misses", l.Address.String())
		e.gauge(float64(l.TCP.Connections), "tcp_connections", l.Address.String())
	}
	for _, r := range s.Forwarder.Routes {
		e.gauge(float64(r.InFlight), "upstream", r.Zone)
	}
}

func readLimits(s *snapshot, e emitter) {
	limits := s.Config.Limits
	for i := range s.Listens {
		of := s.Listens[i].Address.String()
		e.gauge(float64(limits.MissesInFlight), "udp_misses", of)
		e.gauge(float64(limits.MissesInFlight), "tcp_misses", of)
		e.gauge(float64(limits.TCPConnections), "tcp_connections", of)
	}
	for _, r := range s.Forwarder.Routes {
		e.gauge(float64(r.Max), "upstream", r.Zone)
	}
}

func readDropped(s *snapshot, e emitter) {
	for i := range s.Listens {
		u, t, of := &s.Listens[i].UDP, &s.Listens[i].TCP, s.Listens[i].Address.String()
		e.count(u.Overflowed, of, "udp", "overflow")
		e.count(u.Full, of, "udp", "full")
		e.count(u.Short, of, "udp", "short")
		e.count(u.Long, of, "udp", "long")
		e.count(u.BadSource, of, "udp", "bad_source")
		e.count(u.SendErrors, of, "udp", "send_error")
		e.count(t.EvictedSilent, of, "tcp", "evicted_silent")
		e.count(t.EvictedIdle, of, "tcp", "evicted_idle")
		e.count(t.EvictedBusy, of, "tcp", "evicted_busy")
		e.count(t.Malformed, of, "tcp", "malformed")
		e.count(t.TimedOut, of, "tcp", "idle")
		e.count(t.Stalled, of, "tcp", "stalled")
	}
}

func readEndpoints(r *routeSnapshot, tier int, name string, e emitter) {
	e.gauge(float64(len(r.targets(tier))), r.name(), name)
}

func readOut(r *routeSnapshot, tier int, name string, e emitter) {
	n := 0.0
	for _, t := range r.targets(tier) {
		n += oneIf(t.Out)
	}
	e.gauge(n, r.name(), name)
}

func readFailures(s *snapshot, e emitter) {
	for i := range s.Routes {
		for _, t := range s.Routes[i].Servers.Targets {
			e.count(t.Timeouts, s.Routes[i].name(), t.Addr.String(), "timeout")
			e.count(t.HardErrors, s.Routes[i].name(), t.Addr.String(), "error")
			if t.Misfits > 0 {
				e.count(t.Misfits, s.Routes[i].name(), t.Addr.String(), "certificate")
			}
		}
	}
}

func readIgnored(s *snapshot, e emitter) {
	for i := range s.Routes {
		for _, t := range s.Routes[i].Servers.Targets {
			for kind, n := range t.Ignored {
				if n > 0 {
					e.count(n, s.Routes[i].name(), t.Addr.String(), ignoredName(kind))
				}
			}
		}
	}
}
