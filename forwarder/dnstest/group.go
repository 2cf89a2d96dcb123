package dnstest

import (
	"context"
	"errors"
	"sync"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

// ErrSilence is what a Group says when its script is silent.
var ErrSilence = errors.New("dnstest: no server answered")

// Group is the servers of a route as one function, without a socket. It is safe
// for concurrent use.
type Group struct {
	mu     sync.Mutex
	answer Answer
	raw    func(query []byte) []byte
	gate   chan struct{}
	asked  int
	forget bool
	seen   []*dns.Msg
}

// NewGroup makes a group that answers by a.
func NewGroup(a Answer) *Group { return &Group{answer: a} }

// Script changes how the group answers from now on.
func (g *Group) Script(a Answer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answer, g.raw = a, nil
}

// ScriptBytes has the group answer with bytes from now on; nil is silence.
func (g *Group) ScriptBytes(raw func(query []byte) []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.raw = raw
}

// Hold lets every question wait from now on, until release is called.
func (g *Group) Hold() (release func()) {
	gate := make(chan struct{})
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gate = gate
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.gate == gate {
			g.gate = nil
		}
		close(gate)
	})
}

// Seen are the queries so far, as a server would have got them, but for those
// after Forget.
func (g *Group) Seen() []*dns.Msg {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]*dns.Msg(nil), g.seen...)
}

// Forget keeps only the number of queries from now on, for a test that asks
// millions.
func (g *Group) Forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forget = true
}

// Asked is the number of queries so far.
func (g *Group) Asked() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.asked
}

// Exchange asks the script.
func (g *Group) Exchange(ctx context.Context, dst []byte, q *wire.Query) (wire.Reply, error) {
	query := wire.AppendQuery(nil, q, 7, 1232)
	m := new(dns.Msg)
	if err := m.Unpack(query); err != nil {
		return wire.Reply{}, err
	}
	g.mu.Lock()
	g.asked++
	if !g.forget {
		g.seen = append(g.seen, m)
	}
	gate := g.gate
	g.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return wire.Reply{}, ctx.Err()
		}
	}
	g.mu.Lock()
	answer, raw := g.answer, g.raw
	g.mu.Unlock()
	if raw != nil {
		return parsed(append(dst[:0], raw(query)...))
	}
	r := answer(m)
	if r == nil {
		return wire.Reply{}, ErrSilence
	}
	b, err := r.PackBuffer(dst[:cap(dst)])
	if err != nil {
		return wire.Reply{}, err
	}
	return parsed(b)
}

func parsed(msg []byte) (wire.Reply, error) {
	if len(msg) == 0 {
		return wire.Reply{}, ErrSilence
	}
	return wire.ParseReply(msg)
}
