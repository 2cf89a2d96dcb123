package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nodens-dns/nodens/forwarder/listener"
)

// stripes is the number of loops of one listen address: its UDP sockets and
// TCP.
func stripes(l LimitsConfig) int { return l.UDPSockets + 1 }

// listenSpec is everything a listen address is made of.
type listenSpec struct {
	address netip.AddrPort
	index   int
	limits  LimitsConfig
	grace   time.Duration
}

// listen is one listen address: bound, then running. What the process of another
// user holds is bound when that lets go, see waiting.go.
type listen struct {
	spec    listenSpec
	handler listener.Handler
	base
	udp     atomic.Pointer[listener.UDP] // nil while it waits
	tcp     atomic.Pointer[listener.TCP] // likewise
	started []*running

	bound    func()        // is called when what it waited for is there; nil: it may not wait
	failures atomic.Uint64 // times it could not be had
}

// portTries is how often the kernel is asked for a port that is free over UDP and
// TCP.
const portTries = 10

// newListen binds a listen address over UDP and TCP. With port 0 the kernel
// chooses one port for both.
func newListen(spec listenSpec, bound func(), h listener.Handler, b base) (l *listen, err error) {
	for range portTries {
		l = &listen{spec: spec, handler: h, base: b, bound: bound}
		err = l.bind()
		if err == nil || spec.address.Port() != 0 || !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	return l, err
}

// bind binds both, or what is not to be waited for. After an error neither is.
func (l *listen) bind() error {
	for _, bind := range []func() error{l.bindUDP, l.bindTCP} {
		if err := bind(); err != nil && !l.waitsAfter(err) {
			return errors.Join(err, l.close())
		}
	}
	return nil
}

func (l *listen) bindUDP() error {
	spec, limits := l.spec, l.spec.limits
	var u *listener.UDP
	err := withLowPorts(func() (err error) {
		u, err = listener.ListenUDP(listener.UDPConfig{
			Addr: spec.address, Listener: uint8(spec.index), Stripe: spec.stripe(), Sockets: limits.UDPSockets,
			Handler: l.handler, Now: l.now, MaxInFlight: limits.MissesInFlight,
			ReceiveBuffer: int(limits.UDPReceiveBuffer), Grace: spec.grace,
		})
		return err
	})
	if err != nil {
		return listenError(spec.address, "UDP", err)
	}
	l.udp.Store(u)
	return nil
}

func (l *listen) bindTCP() error {
	spec, limits := l.spec, l.spec.limits
	var t *listener.TCP
	err := withLowPorts(func() (err error) {
		t, err = listener.ListenTCP(listener.TCPConfig{
			Addr: l.address(), Listener: uint8(spec.index), Stripe: spec.stripe() + uint8(limits.UDPSockets),
			Handler: l.handler, Now: l.now, MaxConnections: limits.TCPConnections,
			MaxPerClient: min(limits.TCPConnectionsPerClient, limits.TCPConnections),
			MaxInFlight:  limits.MissesInFlight, MaxInFlightPerConnection: limits.TCPQueriesPerConnection,
			IdleTimeout: limits.TCPIdle, Grace: spec.grace,
		})
		return err
	})
	if err != nil {
		return listenError(spec.address, "TCP", err)
	}
	l.tcp.Store(t)
	return nil
}

// stripe is that of the first loop of the address.
func (s listenSpec) stripe() uint8 { return uint8(s.index * stripes(s.limits)) }

// address is where it listens, with the port that the kernel chose if it did.
func (l *listen) address() netip.AddrPort {
	if u := l.udp.Load(); u != nil {
		return u.Addr()
	}
	return l.spec.address
}

// close gives back what never ran.
func (l *listen) close() error {
	var errs []error
	if u := l.udp.Load(); u != nil {
		errs = append(errs, u.Close())
	}
	if t := l.tcp.Load(); t != nil {
		errs = append(errs, t.Close())
	}
	return errors.Join(errs...)
}

// tasks are the two loops of the address.
func (l *listen) tasks() []task {
	name := l.address().String()
	return []task{{"UDP " + name, l.runUDP}, {"TCP " + name, l.runTCP}}
}

func (l *listen) runUDP(ctx context.Context) error {
	if !l.await(ctx, l.bindUDP, func() bool { return l.udp.Load() != nil }) {
		return nil
	}
	return l.udp.Load().Run(ctx)
}

func (l *listen) runTCP(ctx context.Context) error {
	if !l.await(ctx, l.bindTCP, func() bool { return l.tcp.Load() != nil }) {
		return nil
	}
	return l.tcp.Load().Run(ctx)
}

// snapshot is what is counted at the address.
func (l *listen) snapshot() listenSnapshot {
	s := listenSnapshot{Address: l.address(), WaitedFor: l.failures.Load()}
	u, t := l.udp.Load(), l.tcp.Load()
	if u != nil {
		s.UDP = u.Stats()
	}
	if t != nil {
		s.TCP = t.Stats()
	}
	s.Waiting = u == nil || t == nil
	return s
}

// listenError says in one sentence what keeps an address from being served,
// and what to do.
func listenError(address netip.AddrPort, proto string, err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		err = errno // the rest names the address once more
	}
	do := "choose another address in listen"
	switch errno {
	case syscall.EADDRINUSE:
		do = fmt.Sprintf("stop the program that has it ('ss -lntup sport = :%d' names it), run as its user to share it, or choose another address in listen", address.Port())
	case syscall.EACCES, syscall.EPERM:
		do = "ports below 1024 need the capability NET_BIND_SERVICE: grant it or choose a higher port in listen"
	case syscall.EADDRNOTAVAIL:
		do = "this machine has no such address: add it to an interface or correct listen"
	case syscall.EAFNOSUPPORT:
		do = "this machine lacks the address family: remove the address from listen"
	}
	return fmt.Errorf("cannot listen on %s over %s: %w; %s", address, proto, err, do)
}
