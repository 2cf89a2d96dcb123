package upstream_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/forwarder/upstream"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// request is one query that a scripted server saw.
type request struct {
	msg    []byte
	tcp    bool
	from   netip.AddrPort
	number int // of its transport, from 0
	send   func(msg []byte)
	stream *net.TCPConn
}

func (r *request) id() uint16 { return binary.BigEndian.Uint16(r.msg) }

// reply sends a reply with the code and, without an error, one address.
func (r *request) reply(t testing.TB, code int, change ...func(*dns.Msg)) {
	r.send(makeReply(t, r.msg, code, change...))
}

func makeReply(t testing.TB, query []byte, code int, change ...func(*dns.Msg)) []byte {
	t.Helper()
	var q dns.Msg
	if err := q.Unpack(query); err != nil {
		t.Errorf("the server got a broken query: %v", err)
		return nil
	}
	m := new(dns.Msg).SetRcode(&q, code)
	if code == dns.RcodeSuccess {
		m.Answer = append(m.Answer, &dns.A{
			Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 30},
			A:   net.IPv4(192, 0, 2, 1),
		})
	}
	for _, f := range change {
		f(m)
	}
	out, err := m.Pack()
	if err != nil {
		t.Errorf("packing a reply: %v", err)
	}
	return out
}

func truncated(m *dns.Msg) { m.Truncated, m.Answer = true, nil }

// server is a scripted server on loopback. Its script runs once per query, in a
// goroutine of its own.
type server struct {
	t      testing.TB
	addr   netip.AddrPort
	udp    *net.UDPConn
	tcp    *net.TCPListener
	script func(*request)
	work   sync.WaitGroup

	mu   sync.Mutex
	seen []*request
	open map[*net.TCPConn]struct{}
	dead bool
}

func serve(t testing.TB, script func(*request)) *server {
	t.Helper()
	return serveAt(t, space.Free(t), script)
}

func serveAt(t testing.TB, at netip.AddrPort, script func(*request)) *server {
	t.Helper()
	s := &server{t: t, script: script, open: map[*net.TCPConn]struct{}{}}
	for range 20 {
		udp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
		if err != nil {
			t.Fatal(err)
		}
		addr := udp.LocalAddr().(*net.UDPAddr).AddrPort()
		tcp, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(addr))
		if err != nil {
			_ = udp.Close()
			continue
		}
		s.addr, s.udp, s.tcp = addr, udp, tcp
		break
	}
	if s.udp == nil {
		t.Fatal("found no port that is free for UDP and TCP")
	}
	s.work.Go(s.serveUDP)
	s.work.Go(s.serveTCP)
	t.Cleanup(s.stop)
	return s
}

// stop closes everything and waits.
func (s *server) stop() {
	_ = s.udp.Close()
	_ = s.tcp.Close()
	s.mu.Lock()
	s.dead = true
	for c := range s.open {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.work.Wait()
}

func (s *server) member() upstream.Member { return upstream.Member{UDP: s.addr, TCP: s.addr} }

func (s *server) serveUDP() {
	buf := make([]byte, 65535)
	for {
		n, from, err := s.udp.ReadFromUDPAddrPort(buf)
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue // an ICMP error
		}
		r := &request{msg: append([]byte(nil), buf[:n]...), from: from}
		r.send = func(msg []byte) { _, _ = s.udp.WriteToUDPAddrPort(msg, from) }
		s.note(r)
		s.work.Go(func() { s.script(r) })
	}
}

func (s *server) serveTCP() {
	for {
		c, err := s.tcp.AcceptTCP()
		if err != nil {
			return
		}
		s.mu.Lock()
		if s.dead {
			_ = c.Close()
		}
		s.open[c] = struct{}{}
		s.mu.Unlock()
		s.work.Go(func() { s.serveStream(c) })
	}
}

func (s *server) serveStream(c *net.TCPConn) {
	var writing sync.Mutex
	var scripts sync.WaitGroup
	defer func() {
		scripts.Wait()
		_ = c.Close()
	}()
	for {
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		msg := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(c, msg); err != nil {
			return
		}
		r := &request{msg: msg, tcp: true, from: c.RemoteAddr().(*net.TCPAddr).AddrPort(), stream: c}
		r.send = func(msg []byte) {
			writing.Lock()
			defer writing.Unlock()
			_, _ = c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(msg))), msg...))
		}
		s.note(r)
		scripts.Go(func() { s.script(r) })
	}
}

func (s *server) note(r *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.seen {
		if o.tcp == r.tcp {
			r.number++
		}
	}
	s.seen = append(s.seen, r)
}

// requests is what was seen, over one transport.
func (s *server) requests(tcp bool) (out []*request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.seen {
		if r.tcp == tcp {
			out = append(out, r)
		}
	}
	return out
}

func (s *server) count() int { return len(s.requests(false)) + len(s.requests(true)) }

// silent answers nothing.
func silent(*request) {}

// good answers everything.
func good(t testing.TB) func(*request) {
	return func(r *request) { r.reply(t, dns.RcodeSuccess) }
}

func coded(t testing.TB, code int) func(*request) {
	return func(r *request) { r.reply(t, code) }
}

// clock is a time that the test moves, on top of the real one.
type clock struct {
	start time.Time
	mu    sync.Mutex
	extra time.Duration
}

func newClock() *clock { return &clock{start: time.Now()} }

func (c *clock) now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.start) + c.extra
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.extra += d
}

// group makes a group that is closed at the end of the test, after which no
// goroutine of it may be left.
func group(t testing.TB, cfg upstream.Config, table upstream.Table) *upstream.Group {
	t.Helper()
	g := upstream.New(cfg)
	g.Update(table)
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		checkLeaks(t)
		if open := g.Status().Open; open != 0 {
			t.Errorf("%d sockets are open after Close", open)
		}
	})
	return g
}

// checkLeaks fails when a goroutine of the package is left.
func checkLeaks(t testing.TB) {
	t.Helper()
	buf := make([]byte, 1<<20)
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		stacks := string(buf[:runtime.Stack(buf, true)])
		if !strings.Contains(stacks, "forwarder/upstream.(*") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("goroutines are left after Close:\n%s", stacks)
		}
	}
}

// plain puts servers into one tier, in order.
func plain(servers ...*server) upstream.Table {
	var table upstream.Table
	for _, s := range servers {
		table.Tiers[upstream.ClusterTier] = append(table.Tiers[upstream.ClusterTier], s.member())
	}
	return table
}

// query builds a client's query.
func query(t testing.TB, name string) *wire.Query {
	t.Helper()
	m := new(dns.Msg).SetQuestion(dns.Fqdn(name), dns.TypeA)
	msg, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	q, fault := wire.ParseQuery(msg)
	if fault != wire.Sound {
		t.Fatalf("fault %d", fault)
	}
	return &q
}

func ask(t testing.TB, g *upstream.Group, name string) (wire.Reply, time.Duration, error) {
	t.Helper()
	start := time.Now()
	r, err := g.Exchange(context.Background(), nil, query(t, name))
	return r, time.Since(start), err
}

// mustAnswer asks and demands a reply with the name's own question and the code.
func mustAnswer(t testing.TB, g *upstream.Group, name string, code wire.RCode) (wire.Reply, time.Duration) {
	t.Helper()
	r, took, err := ask(t, g, name)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return r, took
	}
	if r.RCode != code {
		t.Errorf("%s: rcode %d, want %d", name, r.RCode, code)
	}
	var m dns.Msg
	if err := m.Unpack(r.Msg); err != nil {
		t.Errorf("%s: %v", name, err)
	} else if got := m.Question[0].Name; got != dns.Fqdn(name) {
		t.Errorf("%s: the reply is for %s", name, got)
	}
	return r, took
}

// waitFor waits until the condition holds.
func waitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}
