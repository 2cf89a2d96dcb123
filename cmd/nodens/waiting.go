package main

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/nodens-dns/nodens/forwarder/listener"
)

// Sockets of one user can share an address, those of two cannot. A node that
// changes from one DNS program to another under another user therefore has a
// moment without either, which the kernel fallback covers. The one that comes
// waits for the port, and is ready meanwhile: a rollout ends the other only then.

// portRetry is how often an address is tried that somebody holds.
const portRetry = 5 * time.Millisecond

// waitingForPort is the reason that goes with readiness.
const waitingForPort = "waiting-for-port"

// waitsAfter tells whether an address that could not be bound is to be waited
// for. A process of our own user would have shared it, or never lets go.
func (l *listen) waitsAfter(err error) bool {
	if l.bound == nil || !errors.Is(err, syscall.EADDRINUSE) {
		return false
	}
	for _, proto := range []listener.Proto{listener.ProtoUDP, listener.ProtoTCP} {
		for _, h := range listener.Holders(proto, l.spec.address) {
			if h.UID != os.Geteuid() {
				l.log.Warn("another user's process has the address: it is tried every few milliseconds and served once it is free; nodens is ready meanwhile, so that an upgrade can go on",
					zap.Stringer("listen", l.spec.address), zap.Int("uid", h.UID), zap.Error(err))
				return true
			}
		}
	}
	return false
}

// await binds what is not bound, however long that takes. It is false if ctx
// ended first.
func (l *listen) await(ctx context.Context, bind func() error, bound func() bool) bool {
	if bound() {
		return true
	}
	ticker := time.NewTicker(portRetry)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
		if bind() == nil {
			l.log.Info("the address is free and is served now", zap.Stringer("listen", l.spec.address))
			l.bound()
			return true
		}
		l.failures.Add(1)
	}
}

// waiting tells whether a part of the address is not bound yet.
func (l *listen) waiting() bool { return l.udp.Load() == nil || l.tcp.Load() == nil }

// waitingFor is the addresses that are waited for.
func (g *generation) waitingFor() []string {
	var list []string
	for _, l := range g.listens {
		if l.waiting() {
			list = append(list, l.spec.address.String())
		}
	}
	return list
}

// mayWaitFor tells whether an address may be waited for: at the start, or if it
// is already. A new configuration is taken over whole or not at all.
func (g *generation) mayWaitFor(address netip.AddrPort) bool {
	return len(g.listens) == 0 || slices.Contains(g.waitingFor(), address.String())
}
