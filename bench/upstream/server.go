package upstream

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nodens-dns/nodens/bench/names"
)

// Config describes a server.
type Config struct {
	// Name is for messages. Default "upstream".
	Name string
	// Zone is what it answers. Required.
	Zone *names.Zone
	// Addr is where it listens, on UDP and TCP. Port 0 takes a free port below
	// the range of ephemeral ports, so that no client's socket can take it
	// between a kill and a restart. Default 127.0.0.1:0.
	Addr netip.AddrPort
	// Sockets is the number of UDP sockets that share the port, 1 to 64.
	// Default 1.
	Sockets int
	// MaxConns bounds the TCP connections, 1 to 100 000; more are closed at
	// once. Default 4096.
	MaxConns int
	// Idle closes a TCP connection without queries. Default 30 s.
	Idle time.Duration
	// Seed is for the draws of the faults. Default 1.
	Seed uint64
	// Faults are those to start with.
	Faults Faults
}

func (c Config) withDefaults() Config {
	if c.Name == "" {
		c.Name = "upstream"
	}
	if !c.Addr.IsValid() {
		c.Addr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 0)
	}
	if c.Sockets == 0 {
		c.Sockets = 1
	}
	if c.MaxConns == 0 {
		c.MaxConns = 4096
	}
	if c.Idle == 0 {
		c.Idle = 30 * time.Second
	}
	if c.Seed == 0 {
		c.Seed = 1
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.Zone == nil:
		return fmt.Errorf("upstream: %s has no Zone", c.Name)
	case c.Sockets < 1 || c.Sockets > 64:
		return fmt.Errorf("upstream: %s: Sockets is %d, want 1 to 64", c.Name, c.Sockets)
	case c.MaxConns < 1 || c.MaxConns > 100_000:
		return fmt.Errorf("upstream: %s: MaxConns is %d, want 1 to 100 000", c.Name, c.MaxConns)
	}
	return c.Faults.validate()
}

// Server is an authoritative server that can be stopped, killed and started
// again on the same port. Its methods may be called from any goroutine.
type Server struct {
	cfg     Config
	start   time.Time
	answers answerer
	stripes []stripe             // one per UDP socket, the last for TCP
	plan    atomic.Pointer[plan] // nil: no faults

	mu   sync.Mutex
	addr netip.AddrPort
	up   *lifetime // nil while down
}

// New makes a server that is down.
func New(cfg Config) (*Server, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &Server{
		cfg:     cfg,
		start:   time.Now(),
		answers: answerer{cfg.Zone},
		stripes: make([]stripe, cfg.Sockets+1),
		addr:    cfg.Addr,
	}
	return s, s.Set(cfg.Faults)
}

func (s *Server) now() time.Duration { return time.Since(s.start) }

// Set replaces the faults, for every query from now on. Replies already held
// back still go out.
func (s *Server) Set(f Faults) error {
	if err := f.validate(); err != nil {
		return err
	}
	if f == (Faults{}) {
		s.plan.Store(nil)
		return nil
	}
	s.plan.Store(&plan{Faults: f.withDefaults()})
	return nil
}

// Faults gives the faults in force.
func (s *Server) Faults() Faults {
	if p := s.plan.Load(); p != nil {
		return p.Faults
	}
	return Faults{}
}

// Addr is where it listens; its port is known after the first Start.
func (s *Server) Addr() netip.AddrPort {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addr
}

// Up tells whether it has its sockets.
func (s *Server) Up() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.up != nil
}

// Start binds the sockets and serves; after Kill or Drain it is the restart, on
// the same port. It is an error while up.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.up != nil {
		return fmt.Errorf("upstream: %s is already up on %v", s.cfg.Name, s.addr)
	}
	life, err := bind(s.addr, s.cfg.Sockets, s.now)
	if err != nil {
		return fmt.Errorf("upstream: %s: listen on %v: %w", s.cfg.Name, s.addr, err)
	}
	life.server = s
	s.up, s.addr = life, life.addr
	life.serve()
	return nil
}

// Kill closes all sockets at once, as a crash does: TCP connections are reset,
// and the kernel refuses what comes after. It does nothing while down.
func (s *Server) Kill() { s.end(true) }

// Drain goes on answering for the given time, as a lame duck does, then closes
// the sockets. It ends early with ctx.
func (s *Server) Drain(ctx context.Context, keep time.Duration) {
	timer := time.NewTimer(keep)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	s.end(false)
}

// Close closes the sockets. TCP connections end in order.
func (s *Server) Close() { s.end(false) }

func (s *Server) end(reset bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.up != nil {
		s.up.end(reset)
		s.up = nil
	}
}

// Run starts the server and closes it when ctx ends.
func (s *Server) Run(ctx context.Context) error {
	if err := s.Start(); err != nil {
		return err
	}
	<-ctx.Done()
	s.Close()
	return nil
}
