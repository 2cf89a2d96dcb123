package upstream

import (
	"errors"
	"net"
	"sync"
	"time"
)

// accept takes TCP connections until the listener is closed.
func (r *Relay) accept() {
	for {
		client, err := r.life.listener.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(time.Millisecond) // out of file descriptors
			continue
		}
		r.life.running.Go(func() { r.join(client) })
	}
}

// join connects a client with the server until both directions have ended.
// Without a server the client's connection is reset.
func (r *Relay) join(client *net.TCPConn) {
	conn, err := net.DialTimeout("tcp", r.cfg.Target.String(), time.Second)
	if err != nil {
		_ = client.SetLinger(0)
		client.Close()
		return
	}
	ends := [2]*stream{toClient: {conn: client}, toServer: {conn: conn.(*net.TCPConn)}}
	for _, end := range ends {
		if !r.life.streams.add(end, 2*r.cfg.MaxSessions) {
			end.conn.Close()
		}
	}
	var both sync.WaitGroup
	both.Go(func() { r.carry(toServer, ends[toClient], ends[toServer]) })
	both.Go(func() { r.carry(toClient, ends[toServer], ends[toClient]) })
	both.Wait()
	for _, end := range ends {
		end.conn.Close()
		r.life.streams.remove(end)
	}
}

// carry passes chunks of one direction on, in order, until its source ends; the
// end too comes after the delay.
func (r *Relay) carry(direction int, from, to *stream) {
	buf := make([]byte, 16<<10)
	var last time.Duration
	for {
		n, err := from.conn.Read(buf)
		_, _, hold := r.draw(direction)
		due := max(last, r.life.later.now()+hold)
		if n > 0 && hold == 0 && last <= r.life.later.now() {
			to.write(buf[:n])
		} else if n > 0 && !r.life.later.add(held{due: due, stream: to}, buf[:n]) {
			to.conn.Close() // a stream cannot lose a part
		}
		last = due
		if err != nil {
			break
		}
	}
	select {
	case <-time.After(last - r.life.later.now() + 5*time.Millisecond):
	case <-r.life.later.stop:
	}
	_ = to.conn.CloseWrite()
}
