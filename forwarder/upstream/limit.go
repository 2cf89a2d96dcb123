package upstream

import (
	"sync/atomic"
	"time"
)

// While every target is out, the probes look whether one is back; queries are
// put only so often, so that the dead are not stormed when they rise. The others
// wait within their budget.
const (
	outInterval = 50 * time.Millisecond // between two packets
	outBurst    = 20
	// A query that waits for a target looks again after some time between these,
	// so that those who waited do not come all at once.
	holdMin, holdMax = 50 * time.Millisecond, 400 * time.Millisecond
	heldMost         = 256 // that wait for servers outside the cluster
	// packetBurst is that of Config.PacketRate, as a part of a second, and
	// leastBurst the same in packets: a low rate has to bear a client that asks
	// for two types at once, and a moment without a processor.
	packetBurst = 20
	leastBurst  = 4
)

// limit bounds packets in time: one for each interval, and a burst that was
// saved up. It is the time at which the next packet would be due if none were
// saved.
type limit struct{ due atomic.Int64 }

// nextDue is the next due time after a packet, if one may go out.
func nextDue(due, now, interval time.Duration, burst int) (next time.Duration, ok bool) {
	due = max(due, now)
	if due-now > time.Duration(burst-1)*interval {
		return due, false
	}
	return due + interval, true
}

func (l *limit) take(now, interval time.Duration, burst int) bool {
	for {
		old := l.due.Load()
		next, ok := nextDue(time.Duration(old), now, interval, burst)
		if !ok {
			return false
		}
		if l.due.CompareAndSwap(old, int64(next)) {
			return true
		}
	}
}

// next is when the next packet may go out, if it is not the case already.
func (l *limit) next(interval time.Duration, burst int) time.Duration {
	return time.Duration(l.due.Load()) - time.Duration(burst-1)*interval
}

// spend takes note of packets that go out whatever the bound is: those after them
// wait for longer.
func (l *limit) spend(now, interval time.Duration, packets int) {
	for {
		old := l.due.Load()
		next := max(time.Duration(old), now) + time.Duration(packets)*interval
		if l.due.CompareAndSwap(old, int64(next)) {
			return
		}
	}
}

// line is queries that wait for a packet, each with a turn of its own, in their order.
// It is the first turn that nobody has.
type line struct{ free atomic.Int64 }

// join gives the next turn: an interval after the one before, and when a packet may go
// out. There is none if that is later than last.
func (l *line) join(packet, interval, last time.Duration) (turn time.Duration, ok bool) {
	for {
		old := l.free.Load()
		turn = max(time.Duration(old), packet)
		if turn > last {
			return 0, false
		}
		if l.free.CompareAndSwap(old, int64(turn+interval)) {
			return turn, true
		}
	}
}

// empty reports whether every turn is over.
func (l *line) empty(now time.Duration) bool { return time.Duration(l.free.Load()) <= now }

// Packets of ours that a question takes.
const (
	packetsUDP = 1
	packetsTCP = 4 // to connect, ask, acknowledge and close
)

// spend takes note of a question beside the attempts: one that is put once more, or
// a probe.
func (g *Group) spend(now time.Duration, packets int) {
	if g.cfg.PacketRate > 0 {
		interval, _ := g.cfg.packetLimit()
		g.packets.spend(now, interval, packets)
	}
}
