package rules

import (
	"context"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

// Group asks a route's servers.
type Group interface {
	Exchange(ctx context.Context, dst []byte, q *wire.Query) (wire.Reply, error)
}

// Over is a Group that asks the servers of another under the rules. The rules of
// Local are not among them.
func (s *Set) Over(g Group) Group {
	if s.rewrites == nil && s.dns64 == nil {
		return g
	}
	return &over{set: s, group: g}
}

type over struct {
	set   *Set
	group Group
}

// Exchange asks q's question under the name that the rules give it.
func (o *over) Exchange(ctx context.Context, dst []byte, q *wire.Query) (wire.Reply, error) {
	var folded, other [wire.MaxName]byte
	w, name, ok := o.set.rename(other[:0], wire.AppendFolded(folded[:0], q.Name()))
	if !ok {
		return o.ask(ctx, dst, q)
	}
	renamed, err := asked(q, name, q.Type)
	if err != nil {
		return wire.Reply{}, err
	}
	reply, err := o.ask(ctx, dst, &renamed)
	if err != nil {
		return reply, err
	}
	return o.set.back(w, &reply, q)
}

// ask asks under the name that q has now.
func (o *over) ask(ctx context.Context, dst []byte, q *wire.Query) (wire.Reply, error) {
	if o.set.dns64 == nil {
		return o.group.Exchange(ctx, dst, q)
	}
	return o.set.dns64.exchange(ctx, o.group, dst, q)
}

// asked is q with another name and type.
func asked(q *wire.Query, name []byte, t wire.Type) (wire.Query, error) {
	other, fault := wire.ParseQuery(wire.AppendQueryFor(nil, q, name, t))
	if fault != wire.Sound {
		return other, errUnsound
	}
	return other, nil
}

const errUnsound wire.Error = "a rule makes a question that nobody can be asked"
