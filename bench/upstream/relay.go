package upstream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Impair is what a Relay does to the packets of one direction. The zero value
// passes them on at once. Shares are probabilities per packet, 0 to 1.
type Impair struct {
	// Loss is the share that disappears (UDP only).
	Loss float64
	// Duplicate is the share that is sent twice (UDP only).
	Duplicate float64
	// Reorder is the share that is held ReorderBy longer, so that later
	// packets overtake it (UDP only).
	Reorder float64
	// ReorderBy is how long. Default 5 ms.
	ReorderBy time.Duration
	// Delay is added to every packet, and to every chunk of a TCP stream.
	Delay time.Duration
	// Jitter adds an evenly drawn time below it. It can reorder packets, never
	// a stream.
	Jitter time.Duration
}

func (i Impair) validate() error {
	for _, share := range []float64{i.Loss, i.Duplicate, i.Reorder} {
		if share < 0 || share > 1 {
			return fmt.Errorf("upstream: a relay's share is %v, want 0 to 1", share)
		}
	}
	if min(i.Delay, i.Jitter, i.ReorderBy) < 0 {
		return errors.New("upstream: a relay's delay, jitter or reordering time is below 0")
	}
	return nil
}

// hold draws how long one packet is held.
func (i *Impair) hold(rng *rand.Rand) time.Duration {
	d := i.Delay
	if i.Jitter > 0 {
		d += time.Duration(rng.Int64N(int64(i.Jitter)))
	}
	if i.Reorder > 0 && rng.Float64() < i.Reorder {
		if i.ReorderBy == 0 {
			return d + 5*time.Millisecond
		}
		return d + i.ReorderBy
	}
	return d
}

// RelayConfig describes a relay.
type RelayConfig struct {
	// Listen is where clients send to. Required; port 0 as for a server.
	Listen netip.AddrPort
	// Target is the server behind it. Required.
	Target netip.AddrPort
	// MaxSessions bounds the client addresses with an open session, 1 to
	// 100 000; packets of more are dropped. Default 4096.
	MaxSessions int
	// Idle ends a session without packets. Default 30 s.
	Idle time.Duration
	// Seed is for the draws. Default 1.
	Seed uint64
	// ToServer and ToClient are the impairments to start with.
	ToServer, ToClient Impair
}

// Relay passes UDP packets and TCP streams between clients and one server, and
// impairs them on the way. Its methods may be called from any goroutine.
type Relay struct {
	cfg      RelayConfig
	life     *lifetime // sockets, delayed packets and streams, as a server has
	impair   atomic.Pointer[[2]Impair]
	draws    sync.Mutex // guards rng
	rng      *rand.Rand
	mu       sync.Mutex // guards sessions and closed
	sessions map[netip.AddrPort]*net.UDPConn
	closed   bool
	passed   atomic.Uint64
	lost     atomic.Uint64
}

const (
	toServer = 0
	toClient = 1
)

// NewRelay binds the sockets and starts to relay.
func NewRelay(cfg RelayConfig) (*Relay, error) {
	if !cfg.Listen.IsValid() || !cfg.Target.IsValid() {
		return nil, errors.New("upstream: a relay needs Listen and Target")
	}
	if cfg.MaxSessions == 0 {
		cfg.MaxSessions = 4096
	}
	if cfg.Idle == 0 {
		cfg.Idle = 30 * time.Second
	}
	start := time.Now()
	life, err := bind(cfg.Listen, 1, func() time.Duration { return time.Since(start) })
	if err != nil {
		return nil, fmt.Errorf("upstream: relay: listen on %v: %w", cfg.Listen, err)
	}
	r := &Relay{
		cfg:      cfg,
		life:     life,
		rng:      rand.New(rand.NewPCG(cfg.Seed, 2)),
		sessions: make(map[netip.AddrPort]*net.UDPConn),
	}
	if err := r.Set(cfg.ToServer, cfg.ToClient); err != nil {
		life.closeSockets()
		return nil, err
	}
	life.running.Go(life.later.run)
	life.running.Go(r.readClients)
	life.running.Go(r.accept)
	return r, nil
}

// Set replaces the impairments of both directions.
func (r *Relay) Set(server, client Impair) error {
	if err := errors.Join(server.validate(), client.validate()); err != nil {
		return err
	}
	r.impair.Store(&[2]Impair{server, client})
	return nil
}

// Addr is where clients send to.
func (r *Relay) Addr() netip.AddrPort { return r.life.addr }

// Passed counts the packets passed on, both directions.
func (r *Relay) Passed() uint64 { return r.passed.Load() }

// Lost counts the packets lost on purpose, both directions.
func (r *Relay) Lost() uint64 { return r.lost.Load() }

// Run relays until ctx ends, then closes.
func (r *Relay) Run(ctx context.Context) error {
	<-ctx.Done()
	r.Close()
	return nil
}

// Close ends the relay and waits for its goroutines.
func (r *Relay) Close() {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return
	}
	r.closed = true
	for _, conn := range r.sessions {
		conn.Close()
	}
	r.mu.Unlock()
	r.life.end(false)
}

// readClients takes what clients send until the socket is closed.
func (r *Relay) readClients() {
	conn := r.life.packets[0]
	buf := make([]byte, 65535)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		if session := r.session(from); session != nil {
			r.pass(toServer, held{packet: session}, buf[:n])
		}
	}
}

// session finds or opens the socket that stands for a client, nil if there may
// be no more.
func (r *Relay) session(client netip.AddrPort) *net.UDPConn {
	r.mu.Lock()
	defer r.mu.Unlock()
	if conn, ok := r.sessions[client]; ok {
		return conn
	}
	if r.closed || len(r.sessions) >= r.cfg.MaxSessions {
		return nil
	}
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(r.cfg.Target))
	if err != nil {
		return nil
	}
	_ = conn.SetReadBuffer(4 << 20) // as much of it as the kernel allows
	r.sessions[client] = conn
	r.life.running.Go(func() { r.readServer(conn, client) })
	return conn
}

// readServer takes what the server sends to one client until nothing comes for
// Idle, or the socket is closed.
func (r *Relay) readServer(conn *net.UDPConn, client netip.AddrPort) {
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.sessions, client)
		conn.Close()
	}()
	buf := make([]byte, 65535)
	for {
		_ = conn.SetReadDeadline(time.Now().Add(r.cfg.Idle))
		n, err := conn.Read(buf)
		var late net.Error
		if errors.Is(err, net.ErrClosed) || errors.As(err, &late) && late.Timeout() {
			return
		}
		if err != nil {
			continue // the server's port is closed for now
		}
		r.pass(toClient, held{packet: r.life.packets[0], to: client}, buf[:n])
	}
}

// pass sends one packet on its way, or loses it.
func (r *Relay) pass(direction int, h held, msg []byte) {
	lost, twice, hold := r.draw(direction)
	if lost {
		r.lost.Add(1)
		return
	}
	r.passed.Add(1)
	if twice {
		h.msg = msg
		h.send()
		h.msg = nil
	}
	if hold == 0 {
		h.msg = msg
		h.send()
		return
	}
	h.due = r.life.later.now() + hold
	if !r.life.later.add(h, msg) {
		r.lost.Add(1)
	}
}

func (r *Relay) draw(direction int) (lost, twice bool, hold time.Duration) {
	i := r.impair.Load()[direction]
	if i == (Impair{}) {
		return false, false, 0
	}
	r.draws.Lock()
	defer r.draws.Unlock()
	return r.rng.Float64() < i.Loss, r.rng.Float64() < i.Duplicate, i.hold(r.rng)
}
