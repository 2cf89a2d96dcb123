package play

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"

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
	number                            int
	gone, ready, serving, terminating bool
}

func startBehind(zone *names.Zone, s *scenarios.Scenario, at []netip.AddrPort, file string) (*behind, error) {
	b := &behind{file: file}
	var errs []error
	for i := range s.Servers {
		cfg := upstream.Config{Name: fmt.Sprintf("server %d", i+1), Zone: zone, Faults: s.Faults, Sockets: 2}
		// An address of its own for each, as pods have.
		cfg.Addr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, byte(11 + i)}), 0)
		if len(at) > 0 {
			cfg.Addr = at[i]
		}
		server, err := upstream.New(cfg)
		if err != nil {
			return b, errors.Join(append(errs, err)...)
		}
		b.servers = append(b.servers, &backend{Server: server, number: i + 1, ready: true, serving: true})
		errs = append(errs, server.Start())
	}
	return b, errors.Join(append(errs, b.publish())...)
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
		s.ready, s.terminating = false, true
	case scenarios.Remove:
		s.Drain(context.Background(), 0)
		s.gone = true
	case scenarios.Kill:
		s.Server.Kill()
	case scenarios.Unready:
		s.ready, s.serving = false, false
	case scenarios.Start:
		s.gone, s.ready, s.serving, s.terminating = false, true, true, false
		if !s.Up() {
			return s.Server.Start()
		}
	case scenarios.Surge, scenarios.StopStart, scenarios.KillStart:
	}
	return nil
}

// publish writes the slices as the EndpointSlice controller would, one for each
// server, since a slice has one port for all of its endpoints.
func (b *behind) publish() error {
	if b.file == "" {
		return nil
	}
	var text strings.Builder
	for _, s := range b.servers {
		if !s.gone {
			s.slice(&text)
		}
	}
	next := b.file + ".next"
	if err := os.WriteFile(next, []byte(text.String()), 0o644); err != nil {
		return fmt.Errorf("play: write the endpoints: %w", err)
	}
	return os.Rename(next, b.file)
}

// slice places the servers on the node n1 of the zone za, in the same zone, and
// in another zone.
func (s *backend) slice(b *strings.Builder) {
	at := s.Addr()
	zone := [...]string{"za", "za", "zb"}[s.number-1]
	fmt.Fprintf(b, `---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: kube-dns-%[1]d, namespace: kube-system, labels: {kubernetes.io/service-name: kube-dns}}
addressType: IPv4
ports:
- {name: dns, protocol: UDP, port: %[2]d}
- {name: dns-tcp, protocol: TCP, port: %[2]d}
endpoints:
- addresses: [%[3]s]
  nodeName: n%[1]d
  zone: %[4]s
  conditions: {ready: %[5]t, serving: %[6]t, terminating: %[7]t}
  targetRef: {kind: Pod, namespace: kube-system, name: coredns-%[1]d, uid: coredns-%[1]d}
`, s.number, at.Port(), at.Addr(), zone, s.ready, s.serving, s.terminating)
}
