package main

import (
	"time"

	"github.com/nodens-dns/nodens/forwarder/upstream"
)

// corednsServerMetrics are about the servers, and about the health checks of
// ourselves.
func corednsServerMetrics() []metric {
	to := []string{"proxy_name", "to"}
	toProto := []string{"proxy_name", "to", "proto"}
	return []metric{
		{
			"coredns_forward_healthcheck_broken_total", "Queries put to servers to be avoided because too few others are left.", nil,
			func(s *snapshot, e emitter) {
				var sum uint64
				for i := range s.Routes {
					sum += sumOf(s.Routes[i].Servers.Panics[:])
				}
				e.count(sum)
			},
		},
		{"coredns_proxy_healthcheck_failures_total", "Questions put to see how a server is that got no reply.", to, eachServer(func(t *serverSums, e emitter) {
			e.count(t.probeFailures, proxyName, t.to)
		})},
		{"coredns_proxy_conn_cache_hits_total", "Questions, without probes, that went over a socket that was open.", toProto, eachServer(func(t *serverSums, e emitter) {
			e.count(t.reused[0], proxyName, t.to, "udp")
			e.count(t.reused[1], proxyName, t.to, "tcp")
		})},
		{"coredns_proxy_conn_cache_misses_total", "Questions, without probes, that a socket was opened for.", toProto, eachServer(func(t *serverSums, e emitter) {
			e.count(t.opened[0], proxyName, t.to, "udp")
			e.count(t.opened[1], proxyName, t.to, "tcp")
		})},
		{
			"coredns_health_request_duration_seconds", "Time that our own health check took.", nil,
			func(s *snapshot, e emitter) {
				e.histogram(healthBounds(), s.Health.Buckets[:], s.Health.Sum.Seconds())
			},
		},
		{
			"coredns_health_request_failures_total", "Our own health checks that failed.", nil,
			func(s *snapshot, e emitter) { e.count(s.Health.Failures) },
		},
	}
}

// legacyMetrics have the names that CoreDNS had before version 1.11 and, the last
// ones, before 1.7. Dashboards and alerts in use still ask for them.
func legacyMetrics() []metric {
	rows := []metric{
		{"coredns_forward_requests_total", "Questions of clients that a server replied to.", []string{"to"}, eachServer(func(t *serverSums, e emitter) {
			e.count(t.replied(), t.to)
		})},
		{"coredns_forward_responses_total", "Replies of a server.", []string{"to", "rcode"}, eachServer(func(t *serverSums, e emitter) {
			t.eachRCode(func(rcode string, h *upstream.Histogram) { e.count(h.Count(), t.to, rcode) })
		})},
		{"coredns_forward_request_duration_seconds", "Time a server took to reply.", []string{"to", "rcode"}, eachServer(func(t *serverSums, e emitter) {
			t.eachRCode(func(rcode string, h *upstream.Histogram) {
				e.histogram(timeBounds(), h.Buckets[:], h.Sum.Seconds(), t.to, rcode)
			})
		})},
		{"coredns_forward_healthcheck_failures_total", "Questions put to see how a server is that got no reply.", []string{"to"}, eachServer(func(t *serverSums, e emitter) {
			e.count(t.probeFailures, t.to)
		})},
		{"coredns_panic_count_total", "Panics survived; nodens survives none.", nil, func(_ *snapshot, e emitter) { e.count(0) }},
		{"coredns_dns_request_count_total", "Queries answered.", []string{"server", "zone", "view", "proto", "family"}, eachZone(readRequestCounts)},
		{"coredns_nodecache_setup_errors", "As coredns_nodecache_setup_errors_total.", []string{"errortype"}, readSetupErrors},
	}
	for i := range rows {
		rows[i].read = ifLegacy(rows[i].read)
	}
	return rows
}

func ifLegacy(read func(*snapshot, emitter)) func(*snapshot, emitter) {
	return func(s *snapshot, e emitter) {
		if s.Config.Admin.LegacyMetrics {
			read(s, e)
		}
	}
}

func readRequestCounts(z *zoneSnapshot, e emitter) {
	for proto := range z.Requests {
		for family := range z.Requests[proto] {
			if n := sumOf(z.Requests[proto][family][:]); n > 0 {
				e.count(n, z.server, z.Zone, "", protoName(proto), familyName(family))
			}
		}
	}
}

func setupMetric() metric {
	return metric{
		"coredns_nodecache_setup_errors_total", "Failures to set up the node's network or to read the ConfigMap kube-dns.",
		[]string{"errortype"},
		readSetupErrors,
	}
}

func readSetupErrors(s *snapshot, e emitter) {
	for i, name := range setupErrorNames() {
		e.count(s.Setup[i], name)
	}
}

// proxyName is what CoreDNS calls whoever asks the servers.
const proxyName = "forward"

// serverSums are the numbers of one server, whichever routes ask it.
type serverSums struct {
	to            string
	reused        [2]uint64 // over UDP and TCP
	opened        [2]uint64
	probeFailures uint64
	replies       [upstream.RCodeClasses]upstream.Histogram
}

// eachServer calls read for every server.
func eachServer(read func(t *serverSums, e emitter)) func(*snapshot, emitter) {
	return func(s *snapshot, e emitter) {
		sums := map[string]*serverSums{}
		for i := range s.Routes {
			for j := range s.Routes[i].Servers.Targets {
				t := &s.Routes[i].Servers.Targets[j]
				to := t.Addr.String()
				if sums[to] == nil {
					sums[to] = &serverSums{to: to}
				}
				sums[to].add(t)
			}
		}
		for _, to := range sortedKeys(sums) {
			read(sums[to], e)
		}
	}
}

func (s *serverSums) add(t *upstream.TargetStatus) {
	s.reused[0] += t.ReusedUDP
	s.reused[1] += t.ReusedTCP
	s.opened[0] += t.OpenedUDP
	s.opened[1] += t.OpenedTCP
	s.probeFailures += t.ProbeFailures
	for class := range s.replies {
		s.replies[class] = added(s.replies[class], &t.Replies[class])
	}
}

func added(sum upstream.Histogram, h *upstream.Histogram) upstream.Histogram {
	for i := range h.Buckets {
		sum.Buckets[i] += h.Buckets[i]
	}
	sum.Sum += h.Sum
	return sum
}

// replied counts the replies to clients' questions. CoreDNS counts a request when its reply
// comes, and no health check.
func (s *serverSums) replied() (n uint64) {
	for class := range s.replies {
		n += s.replies[class].Count()
	}
	return n
}

// eachRCode calls emit for the replies with each response code that there were.
func (s *serverSums) eachRCode(emit func(rcode string, h *upstream.Histogram)) {
	for class := range s.replies {
		if h := &s.replies[class]; h.Count() > 0 {
			emit(className(class), h)
		}
	}
}

func readProxies(t *serverSums, e emitter) {
	t.eachRCode(func(rcode string, h *upstream.Histogram) {
		e.histogram(timeBounds(), h.Buckets[:], h.Sum.Seconds(), proxyName, t.to, rcode)
	})
}

// healthBounds are the buckets of our own health check in seconds.
func healthBounds() []float64 {
	var bounds []float64
	for d := 250 * time.Microsecond; len(bounds) < healthBuckets-1; d *= 10 {
		bounds = append(bounds, d.Seconds())
	}
	return bounds
}
