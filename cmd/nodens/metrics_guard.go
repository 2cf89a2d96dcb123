package main

import (
	"strconv"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nodens-dns/nodens/deploy/guard"
	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// guardSnapshot is all that a guard tells.
type guardSnapshot struct {
	Status guard.Status
	// Fallen is what the kernel counted, nil when it could not be read.
	Fallen *hostnet.Counts
	Build  build
}

func snapshotGuard(g *guard.Guard) guardSnapshot {
	s := guardSnapshot{Status: g.Status(), Build: thisBuild()}
	if fallen, err := g.Fallen(); err == nil {
		s.Fallen = &fallen
	}
	return s
}

// guardInside shows the guard of this process in the daemon's scrapes, since nobody
// scrapes its own address there. While it does not run it shows nothing.
type guardInside struct {
	*collector[guardSnapshot]
	guard *atomic.Pointer[guard.Guard]
}

func newGuardInside(g *atomic.Pointer[guard.Guard]) guardInside {
	return guardInside{newCollector[guardSnapshot](nil, guardMetrics()), g}
}

// Collect implements [prometheus.Collector].
func (c guardInside) Collect(to chan<- prometheus.Metric) {
	if g := c.guard.Load(); g != nil {
		s := snapshotGuard(g)
		c.show(&s, to)
	}
}

// guardMetrics are the guard's own. address is a listen address.
func guardMetrics() []metricOf[guardSnapshot] {
	rows := []metricOf[guardSnapshot]{
		{"nodens_guard_info", "1, with the version of the guard.", []string{"version"}, func(s *guardSnapshot, e emitter) { e.gauge(1, s.Build.Version) }},
		{"nodens_guard_owner", "1 while this guard owns the node, 0 while it waits for another.", nil, func(s *guardSnapshot, e emitter) { e.gauge(oneIf(s.Status.Owner)) }},
		{"nodens_guard_sessions", "Instances of serve that are connected.", nil, func(s *guardSnapshot, e emitter) { e.gauge(float64(len(s.Status.Sessions))) }},
		{"nodens_guard_following", "1 while the guard follows the servers of the fallback itself, because no serve tells them.", nil, func(s *guardSnapshot, e emitter) { e.gauge(oneIf(s.Status.Following)) }},
		{"nodens_guard_endpoints_file_bad", "1 while the servers of the fallback cannot be read or kept on disk.", nil, func(s *guardSnapshot, e emitter) { e.gauge(oneIf(s.Status.File != "")) }},
		{"nodens_interception_active", "1 while link, addresses and rules are as they should be, so that queries find serve.", []string{"mode"}, func(s *guardSnapshot, e emitter) {
			e.gauge(oneIf(s.Status.Owner && s.Status.Problem == ""), s.Status.Mode.String())
		}},
		{"nodens_fallback_ready", "1 while queries are answered without serve.", nil, func(s *guardSnapshot, e emitter) { e.gauge(oneIf(s.Status.Fallback == "")) }},
		{"nodens_fallback_targets", "Servers that the kernel sends queries to while serve is away.", []string{"proto", "family"}, readTargets},
		{"nodens_fallback_packets_total", "Packets that no socket of serve took: of UDP each, of TCP the first of a connection.", []string{"proto", "family"}, readFallen},
	}
	rows = append(rows, guardPlaceMetrics()...)
	return append(rows, guardCountMetrics()...)
}

func guardPlaceMetrics() []metricOf[guardSnapshot] {
	each := func(is func(p *guard.PlaceStatus) bool) func(*guardSnapshot, emitter) {
		return func(s *guardSnapshot, e emitter) {
			for i := range s.Status.Places {
				e.gauge(oneIf(is(&s.Status.Places[i])), s.Status.Places[i].Addr.String())
			}
		}
	}
	address := []string{"address"}
	return []metricOf[guardSnapshot]{
		{"nodens_alive", "1 while queries born on this node find serve.", address, each(func(p *guard.PlaceStatus) bool { return p.Alive })},
		{"nodens_stuck", "1 while a socket of serve does not answer.", address, each(func(p *guard.PlaceStatus) bool { return p.Stuck })},
		{"nodens_bypass_active", "1 while queries go past serve.", address, each(func(p *guard.PlaceStatus) bool { return p.Bypass })},
	}
}

func guardCountMetrics() []metricOf[guardSnapshot] {
	count := func(of func(c *guard.Counts) uint64) func(*guardSnapshot, emitter) {
		return func(s *guardSnapshot, e emitter) { e.count(of(&s.Status.Counts)) }
	}
	return []metricOf[guardSnapshot]{
		{"nodens_guard_probe_rounds_total", "Rounds of probes.", nil, count(func(c *guard.Counts) uint64 { return c.Rounds })},
		{"nodens_guard_probe_answers_total", "Answers to probes.", nil, count(func(c *guard.Counts) uint64 { return c.Answers })},
		{"nodens_guard_bypasses_total", "Times that the queries of an address began to go past serve.", nil, count(func(c *guard.Counts) uint64 { return c.Bypasses })},
		{"nodens_guard_deaths_total", "Instances of serve that ended without saying so.", nil, count(func(c *guard.Counts) uint64 { return c.Deaths })},
		{"nodens_guard_repairs_total", "Times that link, addresses or rules were changed to what they should be.", nil, count(func(c *guard.Counts) uint64 { return c.Repairs })},
		{"nodens_guard_failures_total", "Times that they could not be.", nil, count(func(c *guard.Counts) uint64 { return c.Failures })},
		{"nodens_guard_leftovers_removed_total", "Rules and links of node-cache that were removed.", nil, count(func(c *guard.Counts) uint64 { return c.Leftovers })},
		{"nodens_guard_set_errors_total", "Changes of the sets alive and bypass that failed.", nil, count(func(c *guard.Counts) uint64 { return c.HoldErrors })},
	}
}

// readTargets counts the servers of each protocol and family; families as node-cache
// writes them.
func readTargets(s *guardSnapshot, e emitter) {
	for family := 1; family <= 2; family++ {
		udp, tcp := 0, 0
		for _, t := range s.Status.Targets.UDP {
			if t.Addr().Is4() == (family == 1) {
				udp++
			}
		}
		for _, t := range s.Status.Targets.TCP {
			if t.Addr().Is4() == (family == 1) {
				tcp++
			}
		}
		e.gauge(float64(udp), "udp", strconv.Itoa(family))
		e.gauge(float64(tcp), "tcp", strconv.Itoa(family))
	}
}

func readFallen(s *guardSnapshot, e emitter) {
	if s.Fallen == nil {
		return
	}
	e.count(s.Fallen.UDP4.Packets, "udp", "1")
	e.count(s.Fallen.TCP4.Packets, "tcp", "1")
	e.count(s.Fallen.UDP6.Packets, "udp", "2")
	e.count(s.Fallen.TCP6.Packets, "tcp", "2")
}
