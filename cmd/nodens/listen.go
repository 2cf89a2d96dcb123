package main

import (
	"errors"
	"fmt"
	"net/netip"
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

// listen is one listen address: bound, then running.
type listen struct {
	spec    listenSpec
	udp     *listener.UDP
	tcp     *listener.TCP
	started []*running
}

// portTries is how often the kernel is asked for a port that is free over UDP and
// TCP.
const portTries = 10

// newListen binds a listen address over UDP and TCP. With port 0 the kernel
// chooses one port for both.
func newListen(spec listenSpec, h listener.Handler, b base) (l *listen, err error) {
	for range portTries {
		l, err = bindListen(spec, h, b)
		if err == nil || spec.address.Port() != 0 || !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	return l, err
}

func bindListen(spec listenSpec, h listener.Handler, b base) (*listen, error) {
	l, limits := &listen{spec: spec}, spec.limits
	first := uint8(spec.index * stripes(limits))
	var err error
	l.udp, err = listener.ListenUDP(listener.UDPConfig{
		Addr: spec.address, Listener: uint8(spec.index), Stripe: first, Sockets: limits.UDPSockets,
		Handler: h, Now: b.now, MaxInFlight: limits.MissesInFlight,
		ReceiveBuffer: int(limits.UDPReceiveBuffer), Grace: spec.grace,
	})
	if err != nil {
		return nil, listenError(spec.address, "UDP", err)
	}
	l.tcp, err = listener.ListenTCP(listener.TCPConfig{
		Addr: l.udp.Addr(), Listener: uint8(spec.index), Stripe: first + uint8(limits.UDPSockets),
		Handler: h, Now: b.now, MaxConnections: limits.TCPConnections,
		MaxPerClient: min(limits.TCPConnectionsPerClient, limits.TCPConnections),
		MaxInFlight:  limits.MissesInFlight, MaxInFlightPerConnection: limits.TCPQueriesPerConnection,
		IdleTimeout: limits.TCPIdle, Grace: spec.grace,
	})
	if err != nil {
		return nil, errors.Join(listenError(spec.address, "TCP", err), l.udp.Close())
	}
	return l, nil
}

// tasks are the two loops of the address.
func (l *listen) tasks() []task {
	name := l.udp.Addr().String()
	return []task{{"UDP " + name, l.udp.Run}, {"TCP " + name, l.tcp.Run}}
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
