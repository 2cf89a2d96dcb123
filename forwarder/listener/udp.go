package listener

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
)

// maxSockets bounds UDPConfig.Sockets, so that stripes stay few.
const maxSockets = 32

// UDP answers the datagrams of one address.
type UDP struct {
	cfg      UDPConfig
	sockets  []*socket
	counters []udpCounters // one stripe for each socket
	packets  *pool
	inFlight slots
	misses   resolvers
	life     lifetime

	// The last values of the sockets, read before they are closed.
	mu     sync.Mutex
	closed bool
	last   []SocketStats
}

// ListenUDP binds the sockets of cfg. Nothing is read before Run. The error
// says which address failed and wraps the reason, a syscall.Errno.
func ListenUDP(cfg UDPConfig) (*UDP, error) {
	cfg = cfg.withDefaults()
	if cfg.Sockets > maxSockets {
		return nil, fmt.Errorf("listen udp %v: %d sockets: at most %d are allowed", cfg.Addr, cfg.Sockets, maxSockets)
	}
	u := &UDP{
		cfg:      cfg,
		counters: make([]udpCounters, cfg.Sockets),
		packets:  newPool((cfg.Sockets + 1) * batchSize),
		inFlight: newSlots(cfg.MaxInFlight),
	}
	addr := cfg.Addr
	for range cfg.Sockets {
		s, err := openSocket(addr, cfg.ReceiveBuffer)
		if err != nil {
			return nil, errors.Join(err, u.Close())
		}
		addr = s.addr // the port that the kernel chose, if it did
		u.sockets = append(u.sockets, s)
	}
	return u, nil
}

// Run answers queries until ctx ends. It then hands over, answers what was
// received, waits for the misses in flight, and closes the sockets. It can run
// once. The error tells of a socket that failed; nil is the normal end.
func (u *UDP) Run(ctx context.Context) error {
	if err := u.life.begin(); err != nil {
		return fmt.Errorf("run udp %v: %w", u.cfg.Addr, err)
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	resolving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()

	errs := make([]error, len(u.sockets))
	loops := make([]*loop, len(u.sockets))
	var tasks sync.WaitGroup
	for i, s := range u.sockets {
		loops[i] = newLoop(resolving, u, i, s)
		tasks.Go(func() {
			defer stop() // one failed socket ends them all
			errs[i] = loops[i].run()
		})
	}
	<-running.Done()
	for _, l := range loops {
		l.stop()
	}
	tasks.Wait()
	waitOrCancel(u.misses.end, u.cfg.Grace, cancel)
	return errors.Join(append(errs, u.closeSockets())...)
}

// Addr returns the address the sockets are bound to, with the port that the
// kernel chose if UDPConfig.Addr left it open.
func (u *UDP) Addr() netip.AddrPort { return u.sockets[0].addr }

// Stats returns the counters. It may be called at any time.
func (u *UDP) Stats() UDPStats {
	s := UDPStats{InFlight: u.inFlight.inUse()}
	for i := range u.counters {
		u.counters[i].addTo(&s)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.closed {
		u.observe()
	}
	s.Sockets = slices.Clone(u.last)
	for _, one := range u.last {
		s.Overflowed += one.Overflowed
	}
	return s
}

// observe reads what the kernel knows about the sockets. The caller holds mu.
func (u *UDP) observe() {
	u.last = u.last[:0]
	for _, s := range u.sockets {
		u.last = append(u.last, SocketStats{ReceiveBuffer: s.buffer(), Overflowed: uint64(s.overflowed())})
	}
}

// Close releases the sockets of a UDP that was never run. Once Run was called
// it does nothing, because Run closes them.
func (u *UDP) Close() error {
	if u.life.begin() != nil {
		return nil
	}
	return u.closeSockets()
}

func (u *UDP) closeSockets() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.observe()
	u.closed = true
	var errs []error
	for _, s := range u.sockets {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}

// lifetime lets a listener begin once, to run or to be closed.
type lifetime struct {
	mu    sync.Mutex
	begun bool
}

func (l *lifetime) begin() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.begun {
		return fmt.Errorf("it ran before or was closed: %w", net.ErrClosed)
	}
	l.begun = true
	return nil
}
