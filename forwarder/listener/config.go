package listener

import (
	"net/netip"
	"time"
)

// UDPConfig describes one UDP address. Zero means the default.
type UDPConfig struct {
	// Addr is the address to listen on. An unspecified address (0.0.0.0 or ::)
	// stands for all addresses of its family; replies leave from the one that
	// was asked. Port 0 lets the kernel choose.
	Addr netip.AddrPort
	// Listener is copied into Peer.Listener.
	Listener uint8
	// Stripe is Peer.Stripe of the first socket; socket i has Stripe+i.
	Stripe uint8
	// Sockets is the number of sockets that share the address, 1 to 32,
	// default 1. Each has a loop; more of them cost CPU at the rates of a node.
	Sockets int
	// Handler answers. It must not be nil.
	Handler Handler
	// Now is the time since an epoch of the caller's choosing. Default: since
	// ListenUDP was called.
	Now func() time.Duration
	// MaxInFlight bounds the misses being resolved, over all sockets. A miss
	// beyond it is dropped and counted. Default 1024.
	MaxInFlight int
	// ReceiveBuffer is the receive buffer asked for each socket, in bytes as
	// SO_RCVBUF counts them. Default 4 MiB. SocketStats tells what was got.
	ReceiveBuffer int
	// DrainQuiet is how long a socket that was handed over must stay silent
	// before its queue counts as empty. Default 30 ms.
	DrainQuiet time.Duration
	// Grace is how long the end of Run waits for misses in flight before
	// their context is cancelled. Default 5 s.
	Grace time.Duration
}

// TCPConfig describes one TCP address. Zero means the default.
type TCPConfig struct {
	// Addr is the address to listen on. Port 0 lets the kernel choose.
	Addr netip.AddrPort
	// Listener is copied into Peer.Listener.
	Listener uint8
	// Stripe is copied into Peer.Stripe.
	Stripe uint8
	// Handler answers. It must not be nil.
	Handler Handler
	// Now is the time since an epoch of the caller's choosing. Default: since
	// ListenTCP was called.
	Now func() time.Duration
	// MaxConnections bounds the open connections. For one beyond it another is
	// evicted and counted: one that has not asked yet, else an idle one, else
	// the one that was served longest. A connection takes 5 KB beside its misses,
	// and 150 KB and 128 KB of the kernel's at worst, when its client sends long
	// queries and takes no long replies, which WriteTimeout ends. Default 1000.
	MaxConnections int
	// MaxPerClient bounds the open connections of one client address, in the
	// same way: one of the same client is evicted. Default 100.
	MaxPerClient int
	// MaxQueries closes a connection after so many queries were answered on
	// it. Default 0: no bound.
	MaxQueries int
	// MaxInFlight bounds the misses being resolved, over all connections. At
	// the bound, connections wait to read on. Default 1024.
	MaxInFlight int
	// MaxInFlightPerConnection bounds the misses of one connection. At the
	// bound its reader stops reading, so that the client waits. Default 64.
	MaxInFlightPerConnection int
	// MessageTimeout is how long a new connection may take to begin its first
	// query, and how long a query may take from its first byte to its last. It
	// shrinks to a tenth when more than half of MaxConnections are open.
	// Default 3 s.
	MessageTimeout time.Duration
	// IdleTimeout is how long a connection may stay without a query and
	// without one in flight. It shrinks to a tenth when more than half of
	// MaxConnections are open, and to a fiftieth when more than four fifths
	// are. Default 10 s.
	IdleTimeout time.Duration
	// WriteTimeout is how long one write may take before the connection is
	// closed. It shrinks like MessageTimeout. Default 5 s.
	WriteTimeout time.Duration
	// DrainQuiet is how long the queue of new connections, and each
	// connection, must stay silent at the end of Run before it counts as
	// empty. Default 30 ms.
	DrainQuiet time.Duration
	// Grace is how long the end of Run waits for misses in flight before
	// their context is cancelled. Default 5 s.
	Grace time.Duration
}

func (c UDPConfig) withDefaults() UDPConfig {
	c.Addr = unmap(c.Addr)
	c.Sockets = orDefault(c.Sockets, 1)
	c.MaxInFlight = orDefault(c.MaxInFlight, 1024)
	c.ReceiveBuffer = orDefault(c.ReceiveBuffer, 4<<20)
	c.DrainQuiet = orDefault(c.DrainQuiet, 30*time.Millisecond)
	c.Grace = orDefault(c.Grace, 5*time.Second)
	c.Now = orSince(c.Now)
	return c
}

func (c TCPConfig) withDefaults() TCPConfig {
	c.Addr = unmap(c.Addr)
	c.MaxConnections = orDefault(c.MaxConnections, 1000)
	c.MaxPerClient = orDefault(c.MaxPerClient, 100)
	c.MaxInFlight = orDefault(c.MaxInFlight, 1024)
	c.MaxInFlightPerConnection = orDefault(c.MaxInFlightPerConnection, 64)
	c.MessageTimeout = orDefault(c.MessageTimeout, 3*time.Second)
	c.IdleTimeout = orDefault(c.IdleTimeout, 10*time.Second)
	c.WriteTimeout = orDefault(c.WriteTimeout, 5*time.Second)
	c.DrainQuiet = orDefault(c.DrainQuiet, 30*time.Millisecond)
	c.Grace = orDefault(c.Grace, 5*time.Second)
	c.Now = orSince(c.Now)
	return c
}

// unmap gives an IPv4 address its own form.
func unmap(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

func orDefault[T int | time.Duration](v, otherwise T) T {
	if v <= 0 {
		return otherwise
	}
	return v
}

func orSince(now func() time.Duration) func() time.Duration {
	if now != nil {
		return now
	}
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}
