package guard

import (
	"net/netip"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/nodens-dns/nodens/deploy/hostnet"
	"github.com/nodens-dns/nodens/forwarder/listener"
)

const (
	repairEvery    = 10 * time.Second // without a hint of the kernel
	retryEvery     = time.Second      // after a failure
	watchStarts    = 400 * time.Millisecond
	leftoversEvery = 10 * time.Second
)

// leftovers is what is known of those of node-cache.
type leftovers struct {
	looked time.Duration
	// reason is why they are in force, "" = there are none.
	reason string
}

// repair makes the host look as it should. The kernel hints at changes of ours and of
// others alike, so mostly there is nothing to do.
func (l *loop) repair() {
	if !l.owner {
		return
	}
	first := l.repaired == 0
	l.repaired = max(l.now(), 1)
	report, err := l.cfg.Host.Apply(l.state)
	if len(report.Changed) > 0 && err == nil {
		l.counts.Repairs++
		l.log.Info("the host was changed to what it should be", zap.Strings("was", brief(report.Changed)),
			zap.String("link", report.Link), zap.String("kind", report.Kind), zap.Int("forgotten", report.Forgotten))
	}
	if first {
		for _, note := range report.Notes {
			l.log.Warn("the host is odd", zap.String("note", note))
		}
	}
	problem := ""
	if err != nil {
		problem = err.Error()
		l.counts.Failures++
		l.cfg.Failed(err)
	}
	if problem != l.problem {
		if err != nil {
			l.log.Error("the host does not look as it should; what is there stays, and it is tried again every second", zap.Error(err))
		}
		l.problem = problem
		for _, s := range l.sessions {
			l.tell(s)
		}
	}
	if first || l.now()-l.leftovers.looked >= leftoversEvery {
		l.removeLeftovers()
	}
}

// brief is the first few of a list that may be long.
func brief(list []string) []string { return list[:min(len(list), 8)] }

// removeLeftovers deletes what node-cache left. While node-cache still serves addresses
// of its own, removing its link would take them away from those who ask there.
func (l *loop) removeLeftovers() {
	l.leftovers.looked = l.now()
	if a, ok := l.nodeCacheServes(); ok {
		if l.leftovers.reason == "" {
			l.log.Warn("node-cache still serves an address of its own: its rules and its link stay, and disable the fallback, until it ends", zap.Stringer("address", a))
		}
		l.leftovers.reason = "node-cache still serves " + a.String()
		return
	}
	report, err := l.cfg.Host.RemoveLeftovers(l.state)
	l.leftovers.reason = ""
	switch {
	case err != nil:
		l.leftovers.reason = "leftovers of node-cache cannot be removed: " + err.Error()
		l.counts.Failures++
		l.cfg.Failed(err)
	case len(report.Notes) > 0:
		l.leftovers.reason = report.Notes[0]
	}
	if len(report.Changed) > 0 {
		l.counts.Leftovers += uint64(len(report.Changed))
		l.log.Info("leftovers of node-cache were removed", zap.Strings("leftovers", brief(report.Changed)))
	}
}

// nodeCacheServes finds an address on the link of node-cache that is not ours and that
// somebody listens at.
func (l *loop) nodeCacheServes() (netip.Addr, bool) {
	if l.state.Link == hostnet.NodeCacheLink {
		return netip.Addr{}, false
	}
	found, err := l.cfg.Host.Read(hostnet.State{Mode: hostnet.LinkLocal, Link: hostnet.NodeCacheLink, Own: l.state.Own})
	if err != nil {
		return netip.Addr{}, false
	}
	for _, a := range found.Link.Addrs {
		if !l.ours(a) && listenedAt(netip.AddrPortFrom(a, l.state.Port)) {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// listenedAt reports whether a socket is bound to exactly this address over UDP.
func listenedAt(address netip.AddrPort) bool {
	return slices.ContainsFunc(listener.Holders(listener.ProtoUDP, address), func(h listener.Holder) bool { return !h.Wildcard })
}

func (l *loop) ours(a netip.Addr) bool {
	for _, p := range l.places {
		if p.addr == a {
			return true
		}
	}
	return false
}
