package listener

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"
)

// The end of a UDP socket loses nothing that was sent to it. Closing it at
// once would throw away what its queue holds. So it is first connected to a
// peer that never sends: from then on the kernel picks it for no new datagram,
// which goes to another socket of the address instead, a successor's if there
// is one, while the queue stays readable and replies can still be sent to
// anyone. The queue is then read until it stays silent.

// discardPort is the port of the peer that never sends.
const discardPort = 9

// past ends a wait in the poller at once.
var past = time.Unix(1, 0)

// discardPeer is an address that is always reachable from a socket bound to
// addr: the address itself, or loopback for an unspecified one.
func discardPeer(addr netip.Addr) netip.AddrPort {
	switch {
	case !addr.IsUnspecified():
	case addr.Is4():
		addr = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	default:
		addr = netip.IPv6Loopback()
	}
	return netip.AddrPortFrom(addr, discardPort)
}

// drain hands the socket over and answers what it received before.
func (l *loop) drain() error {
	l.draining = true
	var handover error
	if err := l.socket.connect(discardPeer(l.socket.addr.Addr())); err != nil {
		handover = fmt.Errorf("hand over udp %v: %w", l.socket.addr, err)
	}
	// Without the connection new datagrams keep coming: the grace ends that.
	limit := time.Now().Add(l.udp.cfg.Grace)
	pass := func(uintptr) bool { return l.pass() }
	for now := time.Now(); now.Before(limit); now = time.Now() {
		if err := l.socket.wakeAt(now.Add(l.udp.cfg.DrainQuiet)); err != nil {
			return errors.Join(handover, err)
		}
		err := l.socket.raw.Read(pass)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			// It ends so without a look at the queue too, when this goroutine
			// waited that long for a CPU.
			if !l.pass() {
				return handover
			}
			err = nil
		}
		if err = errors.Join(err, l.givenUp()); err != nil {
			return errors.Join(handover, fmt.Errorf("drain udp %v: %w", l.socket.addr, err))
		}
	}
	return handover
}

// waitOrCancel calls wait, which waits for the misses. After grace it cancels their
// context, and waits on: they return soon then.
func waitOrCancel(wait func(), grace time.Duration, cancel context.CancelFunc) {
	timer := time.AfterFunc(grace, cancel)
	defer timer.Stop()
	wait()
}
