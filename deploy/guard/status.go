package guard

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/nodens-dns/nodens/deploy/hostnet"
)

// Status is how things stand, at most a quarter of a second ago.
type Status struct {
	// Owner says that this guard owns the node.
	Owner bool
	Mode  hostnet.Mode
	// Problem is why the host does not look as it should; "" = it does, or another
	// guard sees to it.
	Problem string
	// Fallback is why there is no fallback; "" = it is ready.
	Fallback string
	// File is what is wrong with the file of endpoints; "" = nothing.
	File string
	// Following says that the guard follows the servers of the fallback itself.
	Following bool
	Places    []PlaceStatus
	Sessions  []SessionStatus
	// Targets are the servers of the fallback over UDP and TCP.
	Targets hostnet.Fallback
	Counts  Counts
}

// PlaceStatus is one listen address.
type PlaceStatus struct {
	Addr netip.Addr
	// Alive says that packets born here find serve, Stuck that a socket of it does
	// not answer, Bypass that queries go past it.
	Alive, Stuck, Bypass bool
}

// SessionStatus is one instance that is connected.
type SessionStatus struct {
	Instance, Version string
	Sockets           int
	Leaving           bool
}

// Counts only ever grow.
type Counts struct {
	Rounds     uint64 // of probes
	Answers    uint64 // to probes
	Bypasses   uint64 // times that queries of a place began to go past serve
	Deaths     uint64 // of instances that did not say that they leave
	Repairs    uint64 // times that the host was changed
	Failures   uint64 // times that it could not be
	Leftovers  uint64 // of node-cache, removed
	HoldErrors uint64 // changes of the sets that failed
}

// Status may be called at any time.
func (g *Guard) Status() Status { return *g.status.Load() }

// Fallen is what no socket of serve took, by the counters of the kernel.
func (g *Guard) Fallen() (hostnet.Counts, error) {
	found, err := g.cfg.Host.Read(g.cfg.State)
	return found.Counts, err
}

// describe is called by the loop.
func (l *loop) describe() *Status {
	s := &Status{
		Owner: l.owner, Mode: l.state.Mode, Problem: l.problem, Fallback: l.noFallback(), File: l.store.trouble(),
		Following: l.following.stop != nil, Targets: l.state.Fallback, Counts: l.counts,
	}
	for _, p := range l.places {
		s.Places = append(s.Places, PlaceStatus{p.addr, p.alive, p.stuck, p.bypass})
	}
	for _, one := range l.sessions {
		s.Sessions = append(s.Sessions, SessionStatus{one.hello.Instance, one.hello.Version, len(one.sockets) + len(one.tcp), one.leaving})
	}
	return s
}

// noFallback says why queries are lost while serve is away; "" = they are not.
func (l *loop) noFallback() string {
	switch {
	case !l.owner:
		return "another guard owns this node"
	case l.problem != "":
		return l.problem
	case l.leftovers.reason != "":
		return l.leftovers.reason
	}
	for _, p := range l.places {
		if l.isService(p.addr) {
			continue // kube-proxy has them
		}
		if protocol, ok := l.lacks(p.addr); ok {
			return fmt.Sprintf("no server is known for %s queries to %v: they come from a route with a topology", protocol, p.addr)
		}
	}
	if l.behind.known && !l.behind.good {
		return "none of the servers answers"
	}
	return ""
}

// lacks names a protocol for which an address has no target.
func (l *loop) lacks(a netip.Addr) (protocol string, ok bool) {
	near := func(t netip.AddrPort) bool { return t.Addr().Is4() == a.Is4() }
	switch {
	case !slices.ContainsFunc(l.state.Fallback.UDP, near):
		return "UDP", true
	case !slices.ContainsFunc(l.state.Fallback.TCP, near):
		return "TCP", true
	}
	return "", false
}
