package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/nodens-dns/nodens/forwarder"
	"github.com/nodens-dns/nodens/forwarder/upstream"
	"github.com/nodens-dns/nodens/topology"
)

// report is what people see of a snapshot, as a page, as text and as JSON.
type report struct {
	Version  string    `json:"version"`
	Revision string    `json:"revision,omitempty"`
	Go       string    `json:"go"`
	Node     string    `json:"node"`
	Zone     string    `json:"zone"`
	ZoneFrom string    `json:"zoneFrom,omitempty"` // who told it
	At       time.Time `json:"at"`
	Started  time.Time `json:"started"`
	Counted  time.Time `json:"counted"` // since when queries are counted
	PID      int       `json:"pid"`
	Ready    bool      `json:"ready"`
	Why      string    `json:"why,omitempty"` // not ready

	Config  configReport   `json:"config"`
	Rates   ratesReport    `json:"rates"`
	Cache   cacheReport    `json:"cache"`
	Host    *hostReport    `json:"host,omitempty"`
	Routes  []routeReport  `json:"routes"`
	Listens []listenReport `json:"listens"`
	Memory  memoryReport   `json:"memory"`
	Clients *clientsReport `json:"clients,omitempty"`
}

type configReport struct {
	Path   string    `json:"path"`
	Hash   string    `json:"hash"` // SHA-512 of the file in force
	Loaded time.Time `json:"loaded"`
	Failed uint64    `json:"failed"`                    // reloads
	Error  string    `json:"error,omitempty"`           // why the file as it is now is not in force
	Waits  []string  `json:"waitsForRestart,omitempty"` // settings that are only read at a start
	Notes  []string  `json:"notes,omitempty"`           // what a Corefile says that is done in another way
}

// ratesReport is about the last minute, or less after a start.
type ratesReport struct {
	Seconds  float64            `json:"seconds"`
	Queries  float64            `json:"queriesPerSecond"`
	HitRatio float64            `json:"hitRatio"`
	BySource map[string]float64 `json:"bySourcePerSecond"`
	Total    map[string]uint64  `json:"total"` // since counting began
	// TotalHitRatio is since then too.
	TotalHitRatio float64 `json:"totalHitRatio"`
}

type cacheReport struct {
	Bytes     int64  `json:"bytes"`
	Limit     int64  `json:"limit"`
	Entries   int64  `json:"entries"`
	Evictions uint64 `json:"evictions"`
}

type routeReport struct {
	Zones    []string       `json:"zones"`
	From     string         `json:"from"` // where its servers come from
	Notes    []string       `json:"notes,omitempty"`
	InFlight int64          `json:"inFlight"`
	Limit    int            `json:"limit"`
	Served   []tierShare    `json:"served"`
	Servers  []serverReport `json:"servers"`
}

// tierShare is how many replies came from a tier.
type tierShare struct {
	Tier    string  `json:"tier"`
	Replies uint64  `json:"replies"`
	Share   float64 `json:"share"`
	// Of the tier since the start: see the metrics with their names.
	Hedges     uint64 `json:"hedges"`
	Spills     uint64 `json:"spills"`
	Suspicions uint64 `json:"suspicions"`
	Ejections  uint64 `json:"ejections"`
	Panics     uint64 `json:"panics"`
	Events     string `json:"-"` // these in words
}

type serverReport struct {
	Tier    string `json:"tier"`
	Address string `json:"address"`
	Pod     string `json:"pod,omitempty"`
	State   string `json:"state"`
	// Node, Zone and Conditions are what the EndpointSlice says of it.
	Node       string   `json:"node,omitempty"`
	Zone       string   `json:"zone,omitempty"`
	Conditions []string `json:"conditions,omitempty"`

	Healthy  bool    `json:"healthy"`
	Why      string  `json:"why"` // of its tier and its health
	InFlight int     `json:"inFlight"`
	Bears    int     `json:"bears"`           // in flight, from which others go to the next tier
	RTT      float64 `json:"rttMilliseconds"` // 0 before the first reply
	Sent     uint64  `json:"sent"`
	Forced   uint64  `json:"forced"` // queries put to it while it was avoided, for want of others
	Failed   uint64  `json:"failed"`
}

type listenReport struct {
	Address     string   `json:"address"`
	UDP         uint64   `json:"udpQueries"` // of clients, answered
	TCP         uint64   `json:"tcpQueries"`
	UDPMisses   int      `json:"udpMisses"` // in flight
	TCPMisses   int      `json:"tcpMisses"`
	MissesLimit int      `json:"missesLimit"` // of each
	Connections int      `json:"connections"`
	ConnsLimit  int      `json:"connectionsLimit"`
	Dropped     uint64   `json:"dropped"`
	Reasons     []string `json:"reasons,omitempty"` // of the drops
	Waiting     string   `json:"waiting,omitempty"` // why it is not served yet
}

type memoryReport struct {
	GCPercent int   `json:"gcPercent"`
	Limit     int64 `json:"limit"` // soft limit in bytes, 0 for none
}

// newReport puts a snapshot into words. before is what was counted a minute
// ago.
func newReport(s *snapshot, now, before totals) report {
	r := report{
		Version: s.Build.Version, Revision: s.Build.Revision, Go: s.Build.Go,
		Node: s.Config.Node.Name, Zone: s.Config.Node.Zone,
		At: s.At, Started: s.Started, Counted: s.counted(), PID: s.PID, Ready: s.NotReady == "", Why: s.NotReady,
		Config: configReport{Path: s.Config.Path, Hash: s.Reload.Hash, Loaded: s.Reload.Good, Failed: s.Reload.Failed, Waits: s.Waits, Notes: s.Config.Notes},
		Rates:  newRates(now, before),
		Cache:  cacheReport{Bytes: s.Cache.Bytes, Limit: s.Cache.Limit},
		Memory: memoryReport(s.Memory), Clients: s.clientsReport(), Host: s.hostReport(),
	}
	if s.Reload.Err != nil {
		r.Config.Error = s.Reload.Err.Error()
	}
	for kind := range s.Cache.Entries {
		r.Cache.Entries += s.Cache.Entries[kind]
		r.Cache.Evictions += s.Cache.Evictions[kind]
	}
	for i := range s.Routes {
		r.Routes = append(r.Routes, s.routeReport(i))
		if t := s.Routes[i].Topology; t != nil && t.Self.Zone != "" {
			r.Zone, r.ZoneFrom = t.Self.Zone, t.ZoneFrom.String()
		}
	}
	for i := range s.Listens {
		r.Listens = append(r.Listens, s.listenReport(i))
	}
	return r
}

func newRates(now, before totals) ratesReport {
	window := now.since(before)
	seconds := max(now.at.Sub(before.at).Seconds(), 1e-3)
	r := ratesReport{
		Seconds: seconds, Queries: float64(window.queries()) / seconds, HitRatio: window.hitRatio(),
		BySource: map[string]float64{}, Total: map[string]uint64{}, TotalHitRatio: now.hitRatio(),
	}
	for source := range now.bySource {
		name := sourceName(forwarder.Source(source))
		r.BySource[name] = float64(window.bySource[source]) / seconds
		r.Total[name] = now.bySource[source]
	}
	return r
}

func (s *snapshot) routeReport(i int) routeReport {
	route := &s.Routes[i]
	r := routeReport{Zones: route.Config.Zones, From: route.Config.source(), Notes: route.notes()}
	if i < len(s.Forwarder.Routes) {
		r.InFlight, r.Limit = s.Forwarder.Routes[i].InFlight, s.Forwarder.Routes[i].Max
	}
	total := sumOf(route.Servers.Served[:])
	for tier, n := range route.Servers.Served {
		if route.external() && tier != upstream.ClusterTier {
			continue
		}
		share := tierShare{
			Tier: route.tierName(tier), Replies: n, Share: float64(n) / float64(max(total, 1)),
			Hedges: route.Servers.Hedges[tier], Spills: route.Servers.Spills[tier],
			Suspicions: route.Servers.Suspicions[tier], Ejections: route.Servers.Ejections[tier], Panics: route.Servers.Panics[tier],
		}
		share.Events = share.events()
		r.Served = append(r.Served, share)
	}
	for _, t := range route.Servers.Targets {
		r.Servers = append(r.Servers, route.serverReport(&t, s.Now))
	}
	return r
}

// events are what happened in a tier beside replies.
func (s *tierShare) events() string {
	var parts []string
	for _, event := range []struct {
		n    uint64
		what string
	}{
		{s.Suspicions, "suspicions"},
		{s.Ejections, "ejections"},
		{s.Hedges, "hedges"},
		{s.Spills, "spilled here"},
		{s.Panics, "sent to ejected servers"},
	} {
		if event.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", event.n, event.what))
		}
	}
	return strings.Join(parts, ", ")
}

func (r *routeSnapshot) serverReport(t *upstream.TargetStatus, now time.Duration) serverReport {
	s := serverReport{
		Tier: r.tierName(t.Tier), Address: t.Addr.String(), Pod: t.Pod, State: t.State.String(), Healthy: !t.Out && !t.Suspect && !t.Looped,
		InFlight: t.InFlight, Bears: t.Bears, RTT: float64(t.SRTT) / float64(time.Millisecond), Sent: t.Sent, Forced: t.Forced, Failed: t.Timeouts + t.HardErrors + t.Misfits,
	}
	if s.Pod == t.Addr.Addr().String() { // nobody named it
		s.Pod = ""
	}
	var why []string
	if p := r.placement(t.Addr); p != nil {
		s.Node, s.Zone, s.Conditions = p.Endpoint.Node, p.Endpoint.Zone, conditionsOf(&p.Endpoint)
	}
	if place := r.whyThere(t); place != "" {
		why = append(why, place)
	}
	if doubt := r.doubts(t, now); doubt != "" {
		why = append(why, doubt)
	}
	if t.Plain {
		why = append(why, "asked without EDNS for a while, which it does not understand")
	}
	if t.Alt {
		why = append(why, "asked at its address of the other family for a while")
	}
	if t.SameCase {
		why = append(why, "asked in the client's letters for a while, because it does not repeat others")
	}
	s.Why = strings.Join(why, "; ")
	return s
}

// conditionsOf are the conditions of an endpoint that are true.
func conditionsOf(e *topology.Endpoint) []string {
	var met []string
	for _, c := range [...]struct {
		is   bool
		name string
	}{{e.Ready, "ready"}, {e.Serving, "serving"}, {e.Terminating, "terminating"}} {
		if c.is {
			met = append(met, c.name)
		}
	}
	return met
}

// Says is what the API says of the server, in a few words; "" without one.
func (s serverReport) Says() string {
	if s.Node == "" && s.Zone == "" && s.Conditions == nil {
		return ""
	}
	return fmt.Sprintf("%s/%s: %s", cmp.Or(s.Node, "?"), cmp.Or(s.Zone, "?"), cmp.Or(strings.Join(s.Conditions, ", "), "no condition"))
}

func (s *snapshot) listenReport(i int) listenReport {
	l, limits := &s.Listens[i], &s.Config.Limits
	r := listenReport{
		Address: l.Address.String(), UDP: s.requests(i, forwarder.UDP), TCP: s.requests(i, forwarder.TCP),
		UDPMisses: l.UDP.InFlight, TCPMisses: l.TCP.InFlight, MissesLimit: limits.MissesInFlight,
		Connections: l.TCP.Connections, ConnsLimit: limits.TCPConnections,
	}
	if l.Waiting {
		r.Waiting = waitingForPort
	}
	for _, drop := range []struct {
		n    uint64
		what string
	}{
		{l.UDP.Overflowed, "receive buffer full"},
		{l.UDP.Full, "too many misses in flight"},
		{l.UDP.Short + l.UDP.Long, "no DNS query by its length"},
		{l.UDP.BadSource, "impossible source port"},
		{l.UDP.SendErrors, "reply not taken by the kernel"},
		{l.TCP.EvictedSilent + l.TCP.EvictedIdle + l.TCP.EvictedBusy, "TCP connections closed to make room"},
		{l.TCP.Malformed, "TCP connections that did not speak DNS"},
		{l.TCP.Stalled, "TCP connections that took no replies"},
	} {
		if drop.n > 0 {
			r.Dropped += drop.n
			r.Reasons = append(r.Reasons, fmt.Sprintf("%d %s", drop.n, drop.what))
		}
	}
	return r
}

// requests are the queries of clients that were answered at a listen address. The
// guard's probes are not among them, which its sockets count as well.
func (s *snapshot) requests(listen int, over forwarder.Proto) (n uint64) {
	for i := range s.Forwarder.Zones {
		if z := &s.Forwarder.Zones[i]; z.Listener == listen {
			for family := range z.Requests[over] {
				n += sumOf(z.Requests[over][family][:])
			}
		}
	}
	return n
}

// Since is the time for which queries are counted, in words. Another set of zones
// or listen addresses begins anew.
func (r report) Since() string {
	if r.Counted.Sub(r.Started) < time.Second {
		return "since the start"
	}
	return "in " + humanTime(r.At.Sub(r.Counted)) + ", since zones or listen addresses changed"
}

// roundTime leaves as much of a time as people read.
func roundTime(d time.Duration) time.Duration {
	switch {
	case d >= time.Minute:
		return d.Round(time.Second)
	case d >= time.Second:
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}
