package dnstest

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// Server is a scripted DNS server on one loopback port, over UDP and TCP.
type Server struct {
	t      testing.TB
	addr   netip.AddrPort
	udp    *net.UDPConn
	tcp    *net.TCPListener
	script Script
	work   sync.WaitGroup
	done   chan struct{} // closed when the test ends

	mu     sync.Mutex
	seen   []*Request
	open   map[*net.TCPConn]struct{}
	closed bool
}

// Serve starts a server that lives until the test ends. Its script runs once
// for each query, in a goroutine of its own.
func Serve(t testing.TB, script Script) *Server {
	t.Helper()
	s := &Server{t: t, script: script, open: map[*net.TCPConn]struct{}{}, done: make(chan struct{})}
	for range 20 {
		if s.bind() {
			s.work.Go(s.serveUDP)
			s.work.Go(s.serveTCP)
			t.Cleanup(s.stop)
			return s
		}
	}
	t.Fatal("found no loopback port that is free for UDP and TCP")
	return nil
}

// bind takes one port for both transports; false when only one had it.
func (s *Server) bind() bool {
	udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		s.t.Fatal(err)
	}
	addr := udp.LocalAddr().(*net.UDPAddr).AddrPort()
	tcp, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(addr))
	if err != nil {
		_ = udp.Close()
		return false
	}
	s.addr, s.udp, s.tcp = addr, udp, tcp
	return true
}

// Addr is where the server listens.
func (s *Server) Addr() netip.AddrPort { return s.addr }

// Seen are the queries so far, in the order they came.
func (s *Server) Seen() []*Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*Request(nil), s.seen...)
}

// SeenFor is how many of them asked for a name.
func (s *Server) SeenFor(name string) (n int) {
	for _, r := range s.Seen() {
		if strings.EqualFold(r.Query().Question[0].Name, name) {
			n++
		}
	}
	return n
}

// stop closes everything and waits.
func (s *Server) stop() {
	close(s.done)
	_ = s.udp.Close()
	_ = s.tcp.Close()
	s.mu.Lock()
	s.closed = true
	for c := range s.open {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.work.Wait()
}

func (s *Server) serveUDP() {
	buf := make([]byte, 65535)
	for {
		n, from, err := s.udp.ReadFromUDPAddrPort(buf)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			continue // an ICMP error of a client that went away
		}
		r := s.note(&Request{Msg: append([]byte(nil), buf[:n]...), From: from, server: s})
		s.work.Go(func() { s.script(r) })
	}
}

func (s *Server) serveTCP() {
	for {
		c, err := s.tcp.AcceptTCP()
		if err != nil {
			return
		}
		s.mu.Lock()
		if s.closed {
			_ = c.Close()
		}
		s.open[c] = struct{}{}
		s.mu.Unlock()
		s.work.Go(func() { s.serveStream(c) })
	}
}

// serveStream reads queries until the client closes, then waits for the scripts.
func (s *Server) serveStream(c *net.TCPConn) {
	var writing sync.Mutex
	var scripts sync.WaitGroup
	defer func() {
		scripts.Wait()
		_ = c.Close()
		s.mu.Lock()
		delete(s.open, c)
		s.mu.Unlock()
	}()
	for {
		msg, err := readFrame(c)
		if err != nil {
			return
		}
		from := c.RemoteAddr().(*net.TCPAddr).AddrPort()
		r := s.note(&Request{Msg: msg, TCP: true, From: from, server: s, stream: c, writing: &writing})
		scripts.Go(func() { s.script(r) })
	}
}

func readFrame(c io.Reader) ([]byte, error) {
	var size [2]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return nil, err
	}
	msg := make([]byte, binary.BigEndian.Uint16(size[:]))
	_, err := io.ReadFull(c, msg)
	return msg, err
}

// note logs a request and numbers it.
func (s *Server) note(r *Request) *Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.seen {
		if o.TCP == r.TCP {
			r.Number++
		}
	}
	s.seen = append(s.seen, r)
	return r
}

// Request is one query that a server got, and the way back.
type Request struct {
	Msg    []byte
	TCP    bool
	From   netip.AddrPort
	Number int // among those of its transport, from 0

	server  *Server
	stream  *net.TCPConn
	writing *sync.Mutex
}

// Query is the query as a message.
func (r *Request) Query() *dns.Msg { return Unpack(r.server.t, r.Msg) }

// Send sends a message back.
func (r *Request) Send(msg []byte) {
	if !r.TCP {
		_, _ = r.server.udp.WriteToUDPAddrPort(msg, r.From)
		return
	}
	r.writing.Lock()
	defer r.writing.Unlock()
	_, _ = r.stream.Write(frame(msg))
}

func frame(msg []byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(msg))), msg...)
}

// Wait waits; false when the test ended before.
func (r *Request) Wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.server.done:
		return false
	}
}
