package play

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"time"

	"github.com/nodens-dns/nodens/bench/peers"
	"github.com/nodens-dns/nodens/bench/scenarios"
)

// beside is how long a successor runs before the old server is told to end.
const beside = time.Second

// target is the server under test.
type target struct {
	cfg     *Config
	addr    netip.AddrPort
	setup   peers.Setup
	process *peers.Process // nil: it runs without us
}

// start starts the server under test, if it is ours to start.
func (t *target) start(b *behind, dir, endpoints string) error {
	if t.cfg.Server == nil {
		t.addr = t.cfg.Target
		return nil
	}
	listen, err := freePort()
	if err != nil {
		return err
	}
	admin, err := freePort()
	if err != nil {
		return err
	}
	t.addr = listen
	t.setup = peers.Setup{
		Listen: listen, Admin: admin, Upstreams: b.addresses(), Endpoints: endpoints, Dir: dir,
		Entries: max(100_000, 3*t.cfg.Scenario.Names.Services),
	}
	t.process, err = t.cfg.Server.Start(t.setup, t.cfg.ServerCPUs)
	return err
}

func (t *target) stop() {
	if t.process != nil {
		t.process.Stop()
	}
}

// pid is the process to account for, 0 if there is none.
func (t *target) pid() int {
	if t.process != nil {
		return t.process.PID()
	}
	return t.cfg.PID
}

func (t *target) allocations() (uint64, bool) {
	if t.process == nil || t.cfg.Server.Allocations == nil {
		return 0, false
	}
	return t.cfg.Server.Allocations(t.setup)
}

// restart does what an event says to the server under test.
func (t *target) restart(e scenarios.Event) error {
	old := t.process
	switch e.Do {
	case scenarios.Surge:
		return t.surge()
	case scenarios.KillStart:
		old.Kill()
	default:
		old.Stop()
	}
	time.Sleep(e.Gap)
	var err error
	t.process, err = t.cfg.Server.Start(t.setup, t.cfg.ServerCPUs)
	return err
}

// surge starts a successor on the same address before the old server ends.
func (t *target) surge() error {
	next, err := t.cfg.Server.Start(t.setup, t.cfg.ServerCPUs)
	if err != nil {
		return err
	}
	select {
	case <-next.Ended():
		return fmt.Errorf("a second server beside the first: %w", next.Failed())
	case <-time.After(beside):
	}
	t.process.Stop()
	t.process = next
	return nil
}

// freePort is a port of 127.0.0.1 that is free for UDP and TCP, below those
// that the kernel gives to clients.
func freePort() (netip.AddrPort, error) {
	for range 64 {
		addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(10240+rand.IntN(22000)))
		packets, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(addr))
		if err != nil {
			continue
		}
		listener, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(addr))
		_ = packets.Close()
		if err != nil {
			continue
		}
		_ = listener.Close()
		return addr, nil
	}
	return netip.AddrPort{}, errors.New("play: no free port of 127.0.0.1 found")
}
