package guard

import (
	"context"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
)

// ClientConfig is how a Client is made.
type ClientConfig struct {
	// Socket is the path of the guard's socket. Default: DefaultSocket.
	Socket string
	// Instance names this run of serve, without blanks. Required.
	Instance string
	// Version is told to the guard, for its status. Default: none.
	Version string
	// Log gets the beginning and the end of connections. Default: silent.
	Log *zap.Logger
}

// ClientStatus is what serve knows of its guard.
type ClientStatus struct {
	Connected bool
	// Version is the guard's.
	Version string
	// State is what it said last.
	State SessionState
}

// Client is serve's side of the connection to its guard. It is made again whenever it
// ends; the guard is then told everything anew. Its methods never wait unless they say
// so, and may be called at any time.
type Client struct {
	cfg      ClientConfig
	wake     chan struct{} // something is to be told
	welcomed chan struct{} // closed at the first welcome

	mu      sync.Mutex // guards all below
	sockets []Socket   // of UDP
	tcp     []Socket
	table   *Table
	kept    map[string][]byte
	leaving bool
	todo    todo
	stored  []kept // as the guard had it at the first welcome
	status  ClientStatus
	left    chan struct{} // closed when the guard counts on us no more
}

// todo is what the guard has not been told.
type todo struct {
	sockets, table, leaving bool
	kept                    map[string]bool
}

// The waits between the tries to connect. A guard that starts with us is there after a
// moment, and until it knows the servers the kernel has none to fall back to.
const (
	connectSoon  = 10 * time.Millisecond
	connectAgain = 100 * time.Millisecond
	connectSlow  = time.Second
	soonTries    = 100
	quickTries   = 150
)

// connectWait is the wait after so many failures in a row.
func connectWait(failures int) time.Duration {
	switch {
	case failures <= soonTries:
		return connectSoon
	case failures <= quickTries:
		return connectAgain
	}
	return connectSlow
}

// NewClient makes a Client; it connects inside Run.
func NewClient(cfg ClientConfig) *Client {
	if cfg.Socket == "" {
		cfg.Socket = DefaultSocket
	}
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	return &Client{
		cfg: cfg, wake: make(chan struct{}, 1), welcomed: make(chan struct{}), left: make(chan struct{}),
		kept: map[string][]byte{}, todo: todo{kept: map[string]bool{}},
	}
}

// Sockets tells the sockets that probes may expect to answer, from now on.
func (c *Client) Sockets(udp, tcp []Socket) {
	c.tell(func() { c.sockets, c.tcp, c.todo.sockets = slices.Clone(udp), slices.Clone(tcp), true })
}

// Publish tells the servers for the fallback. A table without any is not told: the
// guard goes on with the last.
func (c *Client) Publish(t Table) {
	if t.empty() {
		return
	}
	c.tell(func() { c.table, c.todo.table = &t, true })
}

// Keep gives bytes to be kept over a reboot, under a name. They are not changed later.
func (c *Client) Keep(name string, data []byte) {
	c.tell(func() { c.kept[name], c.todo.kept[name] = data, true })
}

// Kept is what the guard kept under a name; nil when there is nothing, or ctx ends
// before the guard has answered. It waits.
func (c *Client) Kept(ctx context.Context, name string) []byte {
	select {
	case <-c.welcomed:
	case <-ctx.Done():
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.stored {
		if k.Name == name {
			return k.Data
		}
	}
	return nil
}

// Leave tells that this instance is about to go, and waits until the guard counts on it
// no more, or ctx ends, or there is no guard.
func (c *Client) Leave(ctx context.Context) {
	c.tell(func() { c.leaving, c.todo.leaving = true, true })
	if !c.Status().Connected {
		return
	}
	select {
	case <-c.left:
	case <-ctx.Done():
	}
}

// Status may be called at any time.
func (c *Client) Status() ClientStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status
}

func (c *Client) tell(change func()) {
	c.mu.Lock()
	change()
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Run keeps the connection until ctx ends, and returns nil. The guard takes the end for
// the death of this instance, so it should be the last of it to end. Call it once.
func (c *Client) Run(ctx context.Context) error {
	failures := 0
	for ctx.Err() == nil {
		connected, err := c.connect(ctx)
		if ctx.Err() != nil {
			break
		}
		if connected {
			failures = 0
		}
		if failures++; failures == 1 || failures == quickTries {
			c.cfg.Log.Warn("there is no connection to the guard: DNS is served all the same, and it is tried again",
				zap.String("socket", c.cfg.Socket), zap.Error(err))
		}
		select {
		case <-ctx.Done():
		case <-time.After(connectWait(failures)):
		}
	}
	return nil
}

// connect is one connection, from its beginning to its end.
func (c *Client) connect(ctx context.Context) (connected bool, err error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unixpacket", c.cfg.Socket)
	if err != nil {
		return false, err
	}
	p := &pipe{conn: conn.(*net.UnixConn)}
	if err := p.send(&message{Hello: &hello{c.cfg.Instance, c.cfg.Version}}, patiently); err != nil {
		_ = conn.Close() // the error that led here is the one to tell
		return false, err
	}
	c.startOver()
	heard := make(chan error, 1)
	go func() { heard <- c.hear(p) }()
	running := true
	for running && err == nil {
		err = c.say(p)
		if err != nil {
			break
		}
		select {
		case <-ctx.Done():
			running = false
		case <-c.wake:
		case err = <-heard:
			heard = nil
		}
	}
	_ = conn.Close() // ends the reader
	if heard != nil {
		<-heard
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	connected, c.status = c.status.Connected, ClientStatus{}
	return connected, err
}

// startOver puts everything that is known on the list of what is to be told.
func (c *Client) startOver() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.todo = todo{sockets: c.sockets != nil, table: c.table != nil, leaving: c.leaving, kept: map[string]bool{}}
	for name := range c.kept {
		c.todo.kept[name] = true
	}
}

// say tells what is to be told. Leaving comes first: somebody waits for it.
func (c *Client) say(p *pipe) error {
	c.mu.Lock()
	do, list := c.todo, []message{}
	if do.leaving {
		list = append(list, message{Leaving: true})
	}
	if do.sockets {
		udp, tcp := c.sockets, c.tcp // which are replaced, never changed
		list = append(list, message{Sockets: &udp, TCP: &tcp})
	}
	if do.table {
		list = append(list, message{Table: c.table})
	}
	for _, name := range slices.Sorted(maps.Keys(do.kept)) {
		list = append(list, message{Kept: &kept{name, c.kept[name]}})
	}
	c.todo = todo{kept: map[string]bool{}}
	c.mu.Unlock()
	for i := range list {
		if err := p.send(&list[i], patiently); err != nil {
			return err
		}
	}
	return nil
}

// hear takes in what the guard says until the connection ends.
func (c *Client) hear(p *pipe) error {
	for {
		m, err := p.receive()
		if err != nil {
			return err
		}
		c.take(m)
	}
}

func (c *Client) take(m *message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := m.Welcome; w != nil {
		c.status.Connected, c.status.Version = true, w.Version
		select {
		case <-c.welcomed:
		default:
			c.stored = w.Kept
			close(c.welcomed)
			c.cfg.Log.Info("the guard is connected", zap.String("version", w.Version))
		}
	}
	if m.State == nil {
		return
	}
	c.status.State = *m.State
	if m.State.Left {
		select {
		case <-c.left:
		default:
			close(c.left)
		}
	}
}
