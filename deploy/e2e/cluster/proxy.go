package cluster

import (
	"net"
	"sync"
	"sync/atomic"
)

// Proxy passes TCP connections on, and fails as networks do.
type Proxy struct {
	to       string
	listener net.Listener
	running  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	down   bool
	open   map[*passage]bool
}

// passage is one connection and its continuation.
type passage struct {
	near, far net.Conn
	frozen    atomic.Bool
}

// NewProxy listens on loopback and passes what comes on to an address.
func NewProxy(to string) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return NewProxyOn(listener, to), nil
}

// NewProxyOn takes the connections of a listener, which may be in another network, and
// closes it.
func NewProxyOn(listener net.Listener, to string) *Proxy {
	p := &Proxy{to: to, listener: listener, open: make(map[*passage]bool)}
	p.running.Go(p.accept)
	return p
}

// Address is host and port to connect to.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Freeze lets every packet of the open connections vanish, in both directions
// and for good: nobody is told. New connections work.
func (p *Proxy) Freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for one := range p.open {
		one.freeze()
	}
}

// Down resets the open connections and every new one, until Up.
func (p *Proxy) Down() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = true
	for one := range p.open {
		one.close()
	}
}

// Up ends Down.
func (p *Proxy) Up() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = false
}

// Close ends everything.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	_ = p.listener.Close()
	for one := range p.open {
		one.close()
	}
	p.mu.Unlock()
	p.running.Wait()
}

func (p *Proxy) accept() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.running.Go(func() { p.pass(near) })
	}
}

// pass carries one connection until it ends.
func (p *Proxy) pass(near net.Conn) {
	one := &passage{near: near}
	if !p.begin(one) {
		return
	}
	defer p.end(one)
	p.running.Go(func() { one.carry(one.near, one.far) })
	one.carry(one.far, one.near)
}

// begin connects, unless the proxy is down.
func (p *Proxy) begin(one *passage) bool {
	far, err := net.Dial("tcp", p.to)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil || p.down || p.closed {
		_ = one.near.Close()
		if err == nil {
			_ = far.Close()
		}
		return false
	}
	one.far = far
	p.open[one] = true
	return true
}

func (p *Proxy) end(one *passage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one.close()
	delete(p.open, one)
}

// freeze makes carry drop what it reads.
func (one *passage) freeze() { one.frozen.Store(true) }

// close ends both halves.
func (one *passage) close() {
	_ = one.near.Close()
	_ = one.far.Close()
}

// carry copies in one direction until either end closes. A frozen passage is
// read on, so that neither end notices by its full window.
func (one *passage) carry(from, to net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			break
		}
		if one.frozen.Load() {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			break
		}
	}
	one.close()
}
