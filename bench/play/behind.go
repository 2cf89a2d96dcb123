package play

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/nodens-dns/nodens/bench/names"
	"github.com/nodens-dns/nodens/bench/scenarios"
	"github.com/nodens-dns/nodens/bench/upstream"
)

// behind is the servers that the server under test asks, and the file that
// stands for what the Kubernetes API says of them.
type behind struct {
	file    string // of EndpointSlices; "" for none
	servers []*backend
}

// backend is one server with its conditions in the API.
type backend struct {
	*upstream.Server
	number int
	shown  upstream.Endpoint
	gone   bool // not shown at all
}

// startBehind starts the servers, without faults.
func startBehind(zone *names.Zone, s *scenarios.Scenario, at []netip.AddrPort, file string) (*behind, error) {
	b := &behind{file: file}
	var errs []error
	for i := range s.Servers {
		cfg := upstream.Config{Name: fmt.Sprintf("server %d", i+1), Zone: zone, Sockets: 2}
		// An address of its own for each, as pods have.
		cfg.Addr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, byte(11 + i)}), 0)
		if len(at) > 0 {
			cfg.Addr = at[i]
		}
		server, err := upstream.New(cfg)
		if err != nil {
			return b, errors.Join(append(errs, err)...)
		}
		b.servers = append(b.servers, &backend{Server: server, number: i + 1, shown: newEndpoint(i)})
		errs = append(errs, server.Start())
	}
	return b, errors.Join(append(errs, b.publish())...)
}

// spoil sets the faults of all servers.
func (b *behind) spoil(f upstream.Faults) error {
	var errs []error
	for _, s := range b.servers {
		errs = append(errs, s.Set(f))
	}
	return errors.Join(errs...)
}

func (b *behind) close() {
	for _, s := range b.servers {
		s.Close()
	}
}

func (b *behind) addresses() []netip.AddrPort {
	var all []netip.AddrPort
	for _, s := range b.servers {
		all = append(all, s.Addr())
	}
	return all
}

func (b *behind) queries() []uint64 {
	var all []uint64
	for _, s := range b.servers {
		all = append(all, s.Counts().Queries())
	}
	return all
}

// do does what an event says to the servers it names.
func (b *behind) do(e scenarios.Event) error {
	for _, s := range b.servers {
		if e.Server != 0 && e.Server != s.number {
			continue
		}
		if err := s.do(e); err != nil {
			return err
		}
	}
	return b.publish()
}

func (s *backend) do(e scenarios.Event) error {
	switch e.Do {
	case scenarios.SetFaults:
		return s.Set(e.Faults)
	case scenarios.Terminate:
		s.shown.Ready, s.shown.Terminating = false, true
	case scenarios.Remove:
		s.Drain(context.Background(), 0)
		s.gone = true
	case scenarios.Kill:
		s.Server.Kill()
	case scenarios.Unready:
		s.shown.Ready, s.shown.Serving = false, false
	case scenarios.Start:
		s.gone, s.shown.Ready, s.shown.Serving, s.shown.Terminating = false, true, true, false
		if !s.Up() {
			return s.Server.Start()
		}
	case scenarios.Surge, scenarios.StopStart, scenarios.KillStart:
	}
	return nil
}

// newEndpoint places the servers on the node n1 of the zone za, in the same zone, and
// in another zone.
func newEndpoint(i int) upstream.Endpoint {
	return upstream.Endpoint{
		Pod: fmt.Sprintf("coredns-%d", i+1), Node: fmt.Sprintf("n%d", i+1), Zone: [...]string{"za", "za", "zb"}[i],
		Ready: true, Serving: true,
	}
}

// publish shows the endpoints as they are now.
func (b *behind) publish() error {
	if b.file == "" {
		return nil
	}
	var shown []upstream.Endpoint
	for _, s := range b.servers {
		if !s.gone {
			s.shown.Addr = s.Addr()
			shown = append(shown, s.shown)
		}
	}
	if err := upstream.Publish(b.file, shown); err != nil {
		return fmt.Errorf("play: %w", err)
	}
	return nil
}
