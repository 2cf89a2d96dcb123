package dnstap_test

import (
	"context"
	"net"
	"net/netip"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	format "github.com/dnstap/golang-dnstap"
	"google.golang.org/protobuf/proto"

	"github.com/nodens-dns/nodens/forwarder/dnstap"
)

// collector takes connections at a path and hands on what is told there.
func collector(t *testing.T, path string) (told chan *format.Dnstap, stop func()) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	told = make(chan *format.Dnstap, 100)
	done := make(chan struct{})
	var conn atomic.Pointer[net.Conn]
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		conn.Store(&c)
		in, err := format.NewReader(c, &format.ReaderOptions{Bidirectional: true})
		if err != nil {
			return
		}
		buf := make([]byte, 4096)
		for {
			n, err := in.ReadFrame(buf)
			if err != nil {
				return
			}
			m := new(format.Dnstap)
			if err := proto.Unmarshal(buf[:n], m); err != nil {
				t.Error(err)
			}
			told <- m
		}
	}()
	return told, func() {
		_ = l.Close()
		if c := conn.Load(); c != nil {
			_ = (*c).Close()
		}
		<-done
	}
}

func next(t *testing.T, told chan *format.Dnstap) *format.Dnstap {
	t.Helper()
	select {
	case m := <-told:
		return m
	case <-time.After(20 * time.Second):
		t.Fatal("nothing is told")
		return nil
	}
}

func exchange(query string) *dnstap.Exchange {
	return &dnstap.Exchange{
		Query: []byte(query), Reply: []byte("reply to " + query), TCP: true,
		Client: netip.MustParseAddrPort("[2001:db8::1]:4000"), Server: netip.MustParseAddrPort("169.254.20.10:53"),
		Asked: 2 * time.Second, Told: 3 * time.Second,
	}
}

// TestSender: what is noted arrives whole, also when the collector comes late and
// when it comes back.
func TestSender(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tap.sock")
	var troubles atomic.Int32
	s := dnstap.New(dnstap.Config{
		Network: "unix", Address: path, Identity: "node-1", Version: "nodens", Queue: 10,
		Epoch: time.Unix(1000, 500), Trouble: func(error) { troubles.Add(1) },
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	e := exchange("one")
	s.Note(e)
	e.Query[0], e.Reply[0] = 'x', 'x' // the memory is used again
	told, stop := collector(t, path)
	query, reply := next(t, told), next(t, told)
	q, r := query.Message, reply.Message
	if q.GetType() != format.Message_CLIENT_QUERY || string(q.QueryMessage) != "one" || string(query.Identity) != "node-1" || string(query.Version) != "nodens" {
		t.Errorf("query %v", query)
	}
	if r.GetType() != format.Message_CLIENT_RESPONSE || string(r.ResponseMessage) != "reply to one" || r.GetResponseTimeSec() != 1003 || r.GetResponseTimeNsec() != 500 {
		t.Errorf("reply %v", reply)
	}
	if r.GetQueryTimeSec() != 1002 || r.GetSocketFamily() != format.SocketFamily_INET6 || r.GetSocketProtocol() != format.SocketProtocol_TCP ||
		net.IP(r.QueryAddress).String() != "2001:db8::1" || r.GetQueryPort() != 4000 || net.IP(r.ResponseAddress).String() != "169.254.20.10" || r.GetResponsePort() != 53 {
		t.Errorf("reply %v", reply)
	}
	stop()
	told, stop = collector(t, path)
	defer stop()
	for again := exchange("two"); len(told) == 0; time.Sleep(50 * time.Millisecond) {
		s.Note(again) // the first ones are lost with the connection
	}
	if m := next(t, told).Message; m.GetType() != format.Message_CLIENT_QUERY || string(m.QueryMessage) != "two" {
		t.Errorf("after the collector came back: %v", m)
	}
	cancel()
	if err := <-ended; err != nil || troubles.Load() == 0 || s.Stats().Sent < 2 {
		t.Errorf("the end: %v, %d troubles, %+v", err, troubles.Load(), s.Stats())
	}
}

// TestQueueIsBounded: nobody waits for a collector.
func TestQueueIsBounded(t *testing.T) {
	s := dnstap.New(dnstap.Config{Network: "unix", Address: "/nowhere", Queue: 3})
	for range 10 {
		s.Note(exchange("one"))
	}
	if got := s.Stats(); got.Dropped != 7 || got.Sent != 0 {
		t.Errorf("%+v, want 7 of 10 dropped", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Run(ctx); err != nil {
		t.Errorf("the end: %v", err)
	}
}
