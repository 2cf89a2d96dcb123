package main

import (
	"cmp"
	"net/netip"
	"path/filepath"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/nodens-dns/nodens/forwarder/dnstap"
	"github.com/nodens-dns/nodens/forwarder/listener"
)

// tapping is who is told of every query, by dnstap.
type tapping struct {
	outlet
	sender atomic.Pointer[dnstap.Sender] // nil: nobody
	// sent and dropped are those of senders before.
	sent, dropped atomic.Uint64
	listen        atomic.Pointer[[]netip.AddrPort]
}

// apply tells the collector of c from now on.
func (k *tapping) apply(c *Config, d *daemon) {
	listen := c.Listen
	k.listen.Store(&listen)
	if c.Dnstap.Address == "" {
		k.retire(nil)
		k.replace(nil)
		return
	}
	network := "tcp"
	if filepath.IsAbs(c.Dnstap.Address) {
		network = "unix"
	}
	s := dnstap.New(dnstap.Config{
		Network: network, Address: c.Dnstap.Address, Queue: c.Dnstap.Queue, Epoch: d.started,
		Identity: cmp.Or(c.Dnstap.Identity, c.Node.Name), Version: "nodens " + d.build.Version,
		Trouble: func(err error) {
			d.log.Warn("the dnstap collector cannot be reached; queries are answered all the same", zap.Error(err))
		},
	})
	k.retire(s)
	k.replace(&task{"dnstap", s.Run})
}

// retire puts next in the place of the sender that there is.
func (k *tapping) retire(next *dnstap.Sender) {
	if old := k.sender.Swap(next); old != nil {
		was := old.Stats()
		k.sent.Add(was.Sent)
		k.dropped.Add(was.Dropped)
	}
}

// stats adds up all senders.
func (k *tapping) stats() dnstap.Stats {
	sum := dnstap.Stats{Sent: k.sent.Load(), Dropped: k.dropped.Load()}
	if s := k.sender.Load(); s != nil {
		now := s.Stats()
		sum.Sent, sum.Dropped = sum.Sent+now.Sent, sum.Dropped+now.Dropped
	}
	return sum
}

// note tells of a query and its reply, which is empty when there was none.
func (k *tapping) note(s *dnstap.Sender, query, reply []byte, from listener.Peer, b *base) {
	e := dnstap.Exchange{Query: query, Reply: reply, Client: from.Client, TCP: from.Proto == listener.ProtoTCP, Asked: from.Received, Told: b.now()}
	if list := *k.listen.Load(); int(from.Listener) < len(list) {
		e.Server = list[from.Listener]
	}
	s.Note(&e)
}
