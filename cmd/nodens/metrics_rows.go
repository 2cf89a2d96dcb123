package main

import (
	"strconv"

	"github.com/nodens-dns/nodens/forwarder/listener"
	"github.com/nodens-dns/nodens/forwarder/upstream"
	"github.com/nodens-dns/nodens/topology"
)

// The functions of this file make rows that have one value, or one for each
// route or tier.

// count is a counter without labels.
func count(name, help string, of func(s *snapshot) uint64) metric {
	return metric{name, help, nil, func(s *snapshot, e emitter) { e.count(of(s)) }}
}

// gauge is a gauge without labels.
func gauge(name, help string, of func(s *snapshot) float64) metric {
	return metric{name, help, nil, func(s *snapshot, e emitter) { e.gauge(of(s)) }}
}

// ofRoute is a counter of each route.
func ofRoute(name, help string, of func(r *routeSnapshot) uint64) metric {
	return metric{name, help, []string{"route"}, func(s *snapshot, e emitter) {
		for i := range s.Routes {
			e.count(of(&s.Routes[i]), s.Routes[i].name())
		}
	}}
}

// ofTopology is a gauge of each route with a topology.
func ofTopology(name, help string, of func(t *topology.Status) float64) metric {
	return metric{name, help, []string{"route"}, func(s *snapshot, e emitter) {
		for i := range s.Routes {
			if r := &s.Routes[i]; r.Topology != nil {
				e.gauge(of(r.Topology), r.name())
			}
		}
	}}
}

// ofTier is a counter of each tier of each route.
func ofTier(name, help string, of func(u *upstream.Status) []uint64) metric {
	return metric{name, help, []string{"route", "tier"}, eachTier(func(r *routeSnapshot, tier int, name string, e emitter) {
		e.count(of(&r.Servers)[tier], r.name(), name)
	})}
}

// ofSocket is a value of each UDP socket of each listen address, by its number there.
func ofSocket(name, help string, read func(e emitter, s listener.SocketStats, labels ...string)) metric {
	return metric{name, help, []string{"listen", "socket"}, func(s *snapshot, e emitter) {
		for i := range s.Listens {
			for number, socket := range s.Listens[i].UDP.Sockets {
				read(e, socket, s.Listens[i].Address.String(), strconv.Itoa(number))
			}
		}
	}}
}

// eachTier calls read for the tiers that the route has: one for plain servers,
// four with a topology.
func eachTier(read func(r *routeSnapshot, tier int, name string, e emitter)) func(*snapshot, emitter) {
	return func(s *snapshot, e emitter) {
		for i := range s.Routes {
			r := &s.Routes[i]
			for tier := range r.Servers.Served {
				if !r.external() || tier == upstream.ClusterTier {
					read(r, tier, r.tierName(tier), e)
				}
			}
		}
	}
}
