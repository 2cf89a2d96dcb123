package main

import "github.com/nodens-dns/nodens/forwarder"

// corednsRuleMetrics are about what rules answer.
func corednsRuleMetrics() []metric {
	return []metric{
		{"coredns_hosts_entries", "Names in the hosts of all routes.", nil, readHostNames},
		{
			"coredns_hosts_reload_timestamp_seconds", "Last time that the hosts of a route were taken over, in seconds since 1970.", nil,
			readHostsTime,
		},
		{
			"coredns_template_matches_total", "Questions given a fixed answer, or none for IPv6 addresses, by the zone of the rule.",
			[]string{"server", "zone", "view", "class", "type"},
			readMatches,
		},
		{
			"coredns_dns64_requests_translated_total", "Queries answered with IPv6 addresses made of IPv4 ones.",
			[]string{"server"},
			readTranslated,
		},
	}
}

// hostsOf adds up the hosts of all routes; at is 0 when none has any.
func hostsOf(s *snapshot) (names int, at int64) {
	for i := range s.Routes {
		names += s.Routes[i].Hosts
		at = max(at, s.Routes[i].HostsAt)
	}
	return names, at
}

func readHostNames(s *snapshot, e emitter) {
	if names, at := hostsOf(s); at != 0 {
		e.gauge(float64(names))
	}
}

func readHostsTime(s *snapshot, e emitter) {
	if _, at := hostsOf(s); at != 0 {
		e.gauge(float64(at))
	}
}

func readMatches(s *snapshot, e emitter) {
	for _, m := range s.Forwarder.Matches {
		if m.Listener >= len(s.Listens) {
			continue
		}
		for i, n := range m.Types {
			if n > 0 {
				e.count(n, s.Listens[m.Listener].server(), m.Zone, "", "IN", forwarder.TypeNames[i])
			}
		}
	}
}

// readTranslated adds up the zones of each listen address.
func readTranslated(s *snapshot, e emitter) {
	made := make([]uint64, len(s.Listens))
	eachZone(func(z *zoneSnapshot, _ emitter) { made[z.Listener] += z.Made })(s, e)
	for i, n := range made {
		if n > 0 {
			e.count(n, s.Listens[i].server())
		}
	}
}
