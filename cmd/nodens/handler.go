package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/nodens-dns/nodens/forwarder"
	"github.com/nodens-dns/nodens/forwarder/listener"
	"github.com/nodens-dns/nodens/forwarder/upstream"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// handler gives the queries of all listeners to the forwarder of the moment.
// A reload puts another forwarder there; a query ends with the one it met.
type handler struct {
	current atomic.Pointer[forwarder.Forwarder]
	// looped hears of names that were asked to find loops.
	looped func(name []byte) bool
	// collector is told of every query.
	collector *tapping
	base      *base
}

var _ listener.Handler = (*handler)(nil)

// Lookup implements [listener.Handler].
func (h *handler) Lookup(dst, query []byte, from listener.Peer) ([]byte, listener.Verdict) {
	reply, verdict := h.current.Load().Lookup(dst, query, peer(from))
	if s := h.collector.sender.Load(); s != nil && verdict != forwarder.Miss {
		h.collector.note(s, query, reply, from, h.base)
	}
	return reply, listener.Verdict(verdict)
}

// Resolve implements [listener.Handler].
func (h *handler) Resolve(ctx context.Context, dst, query []byte, from listener.Peer) ([]byte, listener.Verdict) {
	if q, _ := wire.ParseQuery(query); q.HasQuestion() && upstream.IsLoopName(q.Name()) && h.looped(q.Name()) {
		return wire.AppendError(dst[:0], &q, wire.ServFail, wire.MinUDPSize, wire.NoEDE), listener.Answered
	}
	reply, verdict := h.current.Load().Resolve(ctx, dst, query, peer(from))
	if s := h.collector.sender.Load(); s != nil {
		h.collector.note(s, query, reply, from, h.base)
	}
	return reply, listener.Verdict(verdict)
}

// Done implements [listener.Handler].
func (h *handler) Done(from listener.Peer, took time.Duration) {
	h.current.Load().Done(peer(from), took)
}

func peer(p listener.Peer) forwarder.Peer {
	return forwarder.Peer{
		Client: p.Client, Received: p.Received, Listener: p.Listener, Stripe: p.Stripe, Proto: forwarder.Proto(p.Proto),
	}
}
