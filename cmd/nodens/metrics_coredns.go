package main

import (
	"slices"
	"strings"

	"github.com/nodens-dns/nodens/forwarder"
	"github.com/nodens-dns/nodens/forwarder/cache"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// corednsMetrics have the names, labels and buckets that node-cache uses, so
// that dashboards and alerts made for it go on working. There is one cache for
// all zones: what only it knows (entries, evictions, prefetches) carries every
// zone in the label zones; hits and misses are counted for each zone.
func corednsMetrics() []metric {
	return append([]metric{
		{
			"coredns_build_info", "Version of nodens, always 1.",
			[]string{"version", "revision", "goversion"},
			func(s *snapshot, e emitter) { e.gauge(1, s.Build.Version, s.Build.Revision, s.Build.Go) },
		},
		{
			"coredns_panics_total", "Panics survived; nodens survives none.", nil,
			func(s *snapshot, e emitter) { e.count(0) },
		},
		{"coredns_plugin_enabled", "What every zone has.", []string{"server", "zone", "view", "name"}, readEnabled},
		{
			"coredns_reload_failed_total", "Configurations that were not taken over.", nil,
			func(s *snapshot, e emitter) { e.count(s.Reload.Failed) },
		},
		{
			"coredns_reload_version_info", "Configuration in force, always 1.",
			[]string{"hash", "value"},
			func(s *snapshot, e emitter) { e.gauge(1, "sha512", s.Reload.Hash) },
		},
		setupMetric(),
		{"coredns_forward_max_concurrent_rejects_total", "Queries not sent because a route had too many in flight.", nil, readRejects},
		{"coredns_proxy_request_duration_seconds", "Time a server took to reply.", []string{"proxy_name", "to", "rcode"}, eachServer(readProxies)},
	}, slices.Concat(corednsRuleMetrics(), corednsServerMetrics(), corednsQueryMetrics(), corednsCacheMetrics(), legacyMetrics())...)
}

func corednsQueryMetrics() []metric {
	zone := []string{"server", "zone", "view"}
	zoneProto := append(slices.Clone(zone), "proto")
	return []metric{
		{"coredns_dns_requests_total", "Queries answered.", append(slices.Clone(zoneProto), "family", "type"), eachZone(readRequests)},
		{
			"coredns_dns_request_duration_seconds", "Time from reading a query to answering it; for answers from memory that of their whole batch.", zone,
			eachZone(func(z *zoneSnapshot, e emitter) {
				e.histogram(timeBounds(), z.Duration.Buckets[:], float64(z.Duration.Sum)/1e9, z.server, z.Zone, "")
			}),
		},
		{
			"coredns_dns_request_size_bytes", "Size of queries.", zoneProto,
			eachZone(func(z *zoneSnapshot, e emitter) { emitSizes(z, e, &z.RequestSize) }),
		},
		{
			"coredns_dns_response_size_bytes", "Size of replies.", zoneProto,
			eachZone(func(z *zoneSnapshot, e emitter) { emitSizes(z, e, &z.ResponseSize) }),
		},
		{
			"coredns_dns_do_requests_total", "Queries with the DO bit.", zone,
			eachZone(func(z *zoneSnapshot, e emitter) { e.count(z.DO, z.server, z.Zone, "") }),
		},
		{"coredns_dns_responses_total", "Replies by code and by who wrote them.", append(slices.Clone(zone), "rcode", "plugin"), eachZone(readResponses)},
	}
}

func corednsCacheMetrics() []metric {
	zone := []string{"server", "zones", "view"}
	byType := []string{"server", "type", "zones", "view"}
	return []metric{
		{
			"coredns_cache_entries", "Answers kept.", byType,
			func(s *snapshot, e emitter) { emitKinds(s, e.gauge, entriesOf) },
		},
		{
			"coredns_cache_evictions_total", "Answers dropped for room.", byType,
			func(s *snapshot, e emitter) {
				emitKinds(s, func(n float64, labels ...string) { e.count(uint64(n), labels...) }, evictionsOf)
			},
		},
		{
			"coredns_cache_requests_total", "Queries that were looked up.", zone,
			eachRouted(func(z *zoneSnapshot, e emitter) { e.count(z.hits()+z.misses(), z.server, z.Zone, "") }),
		},
		{
			"coredns_cache_hits_total", "Queries answered from memory.", byType,
			eachRouted(func(z *zoneSnapshot, e emitter) {
				success, denial := z.hitsByType()
				e.count(success, z.server, "success", z.Zone, "")
				e.count(denial, z.server, "denial", z.Zone, "")
			}),
		},
		{
			"coredns_cache_misses_total", "Queries not answered from memory.", zone,
			eachRouted(func(z *zoneSnapshot, e emitter) { e.count(z.misses(), z.server, z.Zone, "") }),
		},
		{
			"coredns_cache_drops_total", "Servers' replies that were not to be kept.", zone,
			func(s *snapshot, e emitter) { emitForAll(s, e, s.Forwarder.Unkept) },
		},
		{"coredns_cache_prefetch_total", "Answers asked for again before their end.", zone, readPrefetches},
		{
			"coredns_cache_served_stale_total", "Queries answered with an expired answer.", zone,
			eachRouted(func(z *zoneSnapshot, e emitter) {
				e.count(sumOf(z.Responses[forwarder.FromStale][:]), z.server, z.Zone, "")
			}),
		},
	}
}

// zoneSnapshot is what was counted for one listen address and zone.
type zoneSnapshot struct {
	*forwarder.ZoneCounts
	server string
}

// eachZone calls read for every listen address and zone that had queries.
func eachZone(read func(z *zoneSnapshot, e emitter)) func(*snapshot, emitter) {
	return func(s *snapshot, e emitter) {
		for i := range s.Forwarder.Zones {
			z := zoneSnapshot{ZoneCounts: &s.Forwarder.Zones[i]}
			if z.Listener >= len(s.Listens) || sumOf(z.RequestSize[0].Buckets[:])+sumOf(z.RequestSize[1].Buckets[:]) == 0 {
				continue
			}
			z.server = s.Listens[z.Listener].server()
			read(&z, e)
		}
	}
}

// eachRouted is eachZone without the zones that are answered locally.
func eachRouted(read func(z *zoneSnapshot, e emitter)) func(*snapshot, emitter) {
	return func(s *snapshot, e emitter) {
		routed := s.zones()
		eachZone(func(z *zoneSnapshot, e emitter) {
			if slices.Contains(routed, z.Zone) {
				read(z, e)
			}
		})(s, e)
	}
}

// zones are those of all routes.
func (s *snapshot) zones() []string {
	var zones []string
	for i := range s.Routes {
		zones = append(zones, s.Routes[i].Config.Zones...)
	}
	return zones
}

func (z *zoneSnapshot) hits() uint64 {
	return sumOf(z.Responses[forwarder.FromCache][:]) + sumOf(z.Responses[forwarder.FromStale][:])
}

func (z *zoneSnapshot) misses() uint64 {
	return sumOf(z.Responses[forwarder.FromServers][:]) + sumOf(z.Responses[forwarder.FromFailure][:])
}

// hitsByType counts as CoreDNS: an answer without a record of the type is a denial.
func (z *zoneSnapshot) hitsByType() (success, denial uint64) {
	for _, source := range []forwarder.Source{forwarder.FromCache, forwarder.FromStale} {
		success += z.Responses[source][0]
		denial += sumOf(z.Responses[source][1:])
	}
	return success, denial
}

func readRequests(z *zoneSnapshot, e emitter) {
	for proto := range z.Requests {
		for family := range z.Requests[proto] {
			for i, n := range typesOf(&z.Requests[proto][family]) {
				if n > 0 {
					e.count(n, z.server, z.Zone, "", protoName(proto), familyName(family), forwarder.TypeNames[i])
				}
			}
		}
	}
}

// typesOf folds the types that node-cache has no label for into the last one.
func typesOf(counts *[forwarder.Types]uint64) [forwarder.Types]uint64 {
	folded := *counts
	for i, name := range forwarder.TypeNames {
		if name == "SVCB" {
			folded[forwarder.TypeOther] += folded[i]
			folded[i] = 0
		}
	}
	return folded
}

func readResponses(z *zoneSnapshot, e emitter) {
	var byWriter [forwarder.RCodes]map[string]uint64
	for source := range z.Responses {
		for rcode, n := range z.Responses[source] {
			if n == 0 {
				continue
			}
			if rcode == forwarder.NoData {
				rcode = int(wire.NoError)
			}
			if byWriter[rcode] == nil {
				byWriter[rcode] = map[string]uint64{}
			}
			byWriter[rcode][writerName(forwarder.Source(source))] += n
		}
	}
	for rcode, writers := range byWriter {
		for _, writer := range sortedKeys(writers) {
			e.count(writers[writer], z.server, z.Zone, "", rcodeName(rcode), writer)
		}
	}
}

func emitSizes(z *zoneSnapshot, e emitter, sizes *[2]forwarder.Histogram[[forwarder.SizeBuckets]uint64]) {
	for proto := range sizes {
		h := &sizes[proto]
		if sumOf(h.Buckets[:]) > 0 {
			e.histogram(forwarder.SizeBounds[:], h.Buckets[:], float64(h.Sum), z.server, z.Zone, "", protoName(proto))
		}
	}
}

func readEnabled(s *snapshot, e emitter) {
	for i := range s.Listens {
		for j := range s.Routes {
			names := enabledNames(&s.Routes[j].Config)
			for _, zone := range s.Routes[j].Config.Zones {
				for _, name := range names {
					e.gauge(1, s.Listens[i].server(), zone, "", name)
				}
			}
		}
	}
}

// enabledNames are what CoreDNS would have in a server block for the route.
func enabledNames(r *RouteConfig) []string {
	names := []string{"cache", "errors", "forward", "loop", "prometheus"}
	if r.RulesOnly {
		names = without(names, []string{"forward"})
	}
	for _, rule := range []struct {
		name  string
		given bool
	}{
		{"dns64", r.Rules.DNS64.Prefix.IsValid()},
		{"hosts", r.Rules.Hosts.given()},
		{"rewrite", len(r.Rules.Rewrite) > 0},
		{"template", len(r.Rules.Answers) > 0 || r.Rules.FilterAAAA},
	} {
		if rule.given {
			names = append(names, rule.name)
		}
	}
	return names
}

// readPrefetches has one number for all zones.
func readPrefetches(s *snapshot, e emitter) {
	emitForAll(s, e, s.Forwarder.Prefetched)
}

// emitForAll sends a number that all zones share.
func emitForAll(s *snapshot, e emitter, n uint64) {
	if len(s.Listens) > 0 {
		e.count(n, s.Listens[0].server(), strings.Join(s.zones(), ","), "")
	}
}

func readRejects(s *snapshot, e emitter) {
	var sum uint64
	for _, r := range s.Forwarder.Routes {
		sum += r.Shed
	}
	e.count(sum)
}

func entriesOf(c *cache.Stats, k cache.Kind) float64   { return float64(c.Entries[k]) }
func evictionsOf(c *cache.Stats, k cache.Kind) float64 { return float64(c.Evictions[k]) }
