package upstream

import (
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
)

// readPackets answers the queries of one UDP socket until it is closed.
func (l *lifetime) readPackets(conn *net.UDPConn, socket int) {
	s := l.server
	st := &s.stripes[socket]
	rng := rand.New(rand.NewPCG(s.cfg.Seed, uint64(socket)))
	in, out := make([]byte, 4096), make([]byte, 0, 4096)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(in)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // an ICMP error about an earlier reply
		}
		if p := s.plan.Load(); p != nil {
			l.faultyPacket(conn, from, p, rng, st, in[:n], out)
			continue
		}
		reply, class := s.answers.reply(out, in[:n], asItIs)
		if reply == nil {
			st.ignored.Add(1)
			continue
		}
		st.queries.Add(1)
		st.class[class].Add(1)
		// A reply that cannot be sent is lost, as on any network.
		_, _ = conn.WriteToUDPAddrPort(reply, from)
	}
}

// faultyPacket is the same under faults.
func (l *lifetime) faultyPacket(conn *net.UDPConn, from netip.AddrPort, p *plan, rng *rand.Rand, st *stripe, query, out []byte) {
	now := l.server.now()
	what, due := p.fate(rng, now)
	reply, class := l.server.answers.reply(out, query, what)
	if reply == nil {
		st.ignored.Add(1)
		return
	}
	st.queries.Add(1)
	st.class[class].Add(1)
	switch {
	case what == drop:
		st.dropped.Add(1)
	case due <= now:
		_, _ = conn.WriteToUDPAddrPort(reply, from)
	case !l.later.add(held{due: due, packet: conn, to: from}, reply):
		st.overflow.Add(1)
	}
}
