package upstream_test

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/bench/names"
	"github.com/nodens-dns/nodens/bench/upstream"
)

const (
	service = "cart-api-0.cart-team-0.svc.cluster.local."
	nowhere = "nope.cart-team-0.svc.cluster.local."
	outside = "www.cart-0.example."
)

func newServer(t *testing.T, faults upstream.Faults) *upstream.Server {
	t.Helper()
	zone, err := names.NewZone(names.Config{Services: 8, External: 8, Namespaces: 1})
	if err != nil {
		t.Fatal(err)
	}
	s, err := upstream.New(upstream.Config{Zone: zone, Faults: faults, Sockets: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// long is a time that no reply takes, however slow the machine.
const long = time.Minute

// ask sends one query; a client of another's code judges the server.
func ask(t *testing.T, s *upstream.Server, network, name string, qtype uint16) (*dns.Msg, error) {
	t.Helper()
	return askFor(t, long, s, network, name, qtype)
}

// askFor waits only so long.
func askFor(t *testing.T, wait time.Duration, s *upstream.Server, network, name string, qtype uint16) (*dns.Msg, error) {
	t.Helper()
	client := dns.Client{Net: network, Timeout: wait}
	query := new(dns.Msg).SetQuestion(name, qtype)
	query.SetEdns0(1232, true)
	reply, _, err := client.Exchange(query, s.Addr().String())
	return reply, err
}

func TestAnswers(t *testing.T) {
	s := newServer(t, upstream.Faults{})
	for name, c := range map[string]struct {
		ask   string
		qtype uint16
		rcode int
		want  string // the one record, of the answer or of the authority section
	}{
		"service":    {service, dns.TypeA, 0, service + "\t30\tIN\tA\t10.96.0.1"},
		"case":       {"CART-api-0.Cart-team-0.svc.cluster.LOCAL.", dns.TypeA, 0, "CART-api-0.Cart-team-0.svc.cluster.LOCAL.\t30\tIN\tA\t10.96.0.1"},
		"NODATA":     {service, dns.TypeAAAA, 0, "cluster.local.\t5\tIN\tSOA\tns.dns.cluster.local. hostmaster.cluster.local. 1 7200 1800 86400 5"},
		"NXDOMAIN":   {nowhere, dns.TypeA, 3, "cluster.local.\t5\tIN\tSOA\tns.dns.cluster.local. hostmaster.cluster.local. 1 7200 1800 86400 5"},
		"outside":    {outside, dns.TypeAAAA, 0, outside + "\t60\tIN\tAAAA\t2001:db8:4::1"},
		"no outside": {"x.example.", dns.TypeA, 3, "example.\t5\tIN\tSOA\tns.dns.example. hostmaster.example. 1 7200 1800 86400 5"},
		"root":       {".", dns.TypeNS, 3, ".\t5\tIN\tSOA\tns.dns. hostmaster. 1 7200 1800 86400 5"},
	} {
		for _, network := range []string{"udp", "tcp"} {
			t.Run(name+" "+network, func(t *testing.T) {
				reply, err := ask(t, s, network, c.ask, c.qtype)
				if err != nil {
					t.Fatal(err)
				}
				records := append(reply.Answer, reply.Ns...)
				if reply.Rcode != c.rcode || len(records) != 1 || records[0].String() != c.want {
					t.Errorf("want %s with\n%s\ngot %v", dns.RcodeToString[c.rcode], c.want, reply)
				}
				if opt := reply.IsEdns0(); opt == nil || !opt.Do() || !reply.RecursionDesired {
					t.Errorf("OPT with DO, and RD, do not come back: %v", reply)
				}
			})
		}
	}
	if c := s.Counts(); c.UDP != 7 || c.TCP != 7 || c.Class[names.Service] != 6 || c.Queries() != 14 {
		t.Errorf("counted %+v", c)
	}
}

func TestOddQueries(t *testing.T) {
	s := newServer(t, upstream.Faults{})
	for name, c := range map[string]struct {
		query string
		rcode int // -1: silence
	}{
		"too short":        {"\x00\x01\x01\x00", -1},
		"a reply":          {"\x00\x01\x81\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x01", -1},
		"other opcode":     {"\x00\x01\x28\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x01", dns.RcodeNotImplemented},
		"no question":      {"\x00\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00", dns.RcodeFormatError},
		"cut question":     {"\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x05abc", dns.RcodeFormatError},
		"compressed name":  {"\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\xc0\x0c\x00\x01\x00\x01", dns.RcodeFormatError},
		"class of another": {"\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x03", dns.RcodeRefused},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("udp", s.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := conn.Write([]byte(c.query)); err != nil {
				t.Fatal(err)
			}
			wait := long
			if c.rcode < 0 {
				wait = 200 * time.Millisecond
			}
			_ = conn.SetReadDeadline(time.Now().Add(wait))
			buf := make([]byte, 512)
			n, err := conn.Read(buf)
			if silent := err != nil; silent != (c.rcode < 0) {
				t.Fatalf("read: %v", err)
			}
			if err == nil && (n < 12 || int(buf[3]&15) != c.rcode || buf[1] != 1) {
				t.Errorf("reply is %x, want rcode %d", buf[:n], c.rcode)
			}
		})
	}
}

func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		faults upstream.Faults
		rcode  int // -1: no reply
		tc     bool
	}{
		"blackhole": {faults: upstream.Faults{Blackhole: true}, rcode: -1},
		"all lost":  {faults: upstream.Faults{Loss: 1}, rcode: -1},
		"servfail":  {faults: upstream.Faults{ServFail: 1}, rcode: dns.RcodeServerFailure},
		"refused":   {faults: upstream.Faults{Refused: 1}, rcode: dns.RcodeRefused},
		"nxdomain":  {faults: upstream.Faults{NXDomain: 1}, rcode: dns.RcodeNameError},
		"truncated": {faults: upstream.Faults{Truncate: 1}, rcode: 0, tc: true},
		"healed":    {rcode: 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, upstream.Faults{Loss: 0.5})
			if err := s.Set(c.faults); err != nil {
				t.Fatal(err)
			}
			wait := long
			if c.rcode < 0 {
				wait = 300 * time.Millisecond
			}
			reply, err := askFor(t, wait, s, "udp", service, dns.TypeA)
			if (err != nil) != (c.rcode < 0) {
				t.Fatalf("reply %v, error %v", reply, err)
			}
			if err == nil && (reply.Rcode != c.rcode || reply.Truncated != c.tc) {
				t.Errorf("reply is %v", reply)
			}
			if !c.tc {
				return
			}
			if reply, err = ask(t, s, "tcp", service, dns.TypeA); err != nil || reply.Truncated || len(reply.Answer) != 1 {
				t.Errorf("over TCP: %v, %v", reply, err)
			}
		})
	}
	s := newServer(t, upstream.Faults{})
	if err := s.Set(upstream.Faults{Loss: 1.1}); err == nil {
		t.Error("a share above 1 is accepted")
	}
}

func TestDelayHoldsReplies(t *testing.T) {
	s := newServer(t, upstream.Faults{Delay: 60 * time.Millisecond, Jitter: 10 * time.Millisecond})
	for _, network := range []string{"udp", "tcp"} {
		start := time.Now()
		if _, err := ask(t, s, network, service, dns.TypeA); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < 60*time.Millisecond {
			t.Errorf("%s: answered after %v, want 60 ms or more", network, took)
		}
	}
}

// A server of 200 queries per second with room for ten answers the eleventh
// reply 50 ms after the first, and not the ones that found no room.
func TestCapacity(t *testing.T) {
	s := newServer(t, upstream.Faults{Rate: 200, Queue: 10})
	conn, err := net.Dial("udp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	start := time.Now()
	for range 30 {
		if _, err := conn.Write([]byte("\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x01")); err != nil {
			t.Fatal(err)
		}
	}
	more := int(time.Since(start) / (5 * time.Millisecond)) // it went on while we sent
	buf := make([]byte, 512)
	got := 0
	for end := start.Add(long); s.Counts().Dropped+uint64(got) < 30 && time.Now().Before(end); {
		_ = conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		if _, err := conn.Read(buf); err != nil {
			continue
		}
		got++
		if due := time.Duration(got) * 5 * time.Millisecond; time.Since(start) < due {
			t.Fatalf("reply %d came after %v, want %v or more", got, time.Since(start), due)
		}
	}
	if got < 10 || got > 15+more {
		t.Errorf("%d of 30 were answered, want about 11", got)
	}
	if c := s.Counts(); c.Dropped+uint64(got) != 30 {
		t.Errorf("%d dropped and %d answered of 30", c.Dropped, got)
	}
}

func TestKillAndRestart(t *testing.T) {
	s := newServer(t, upstream.Faults{})
	addr := s.Addr()
	open, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	if _, err := ask(t, s, "tcp", service, dns.TypeA); err != nil { // accepted after open, so open is too
		t.Fatal(err)
	}
	s.Kill()
	if _, err := ask(t, s, "udp", service, dns.TypeA); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("UDP query to a killed server: %v, want connection refused", err)
	}
	if _, err := open.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read from a connection of a killed server: %v, want connection reset", err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	if s.Addr() != addr {
		t.Errorf("restarted on %v, was on %v", s.Addr(), addr)
	}
	for _, network := range []string{"udp", "tcp"} {
		if _, err := ask(t, s, network, service, dns.TypeA); err != nil {
			t.Errorf("after the restart: %s: %v", network, err)
		}
	}
	if err := s.Start(); err == nil {
		t.Error("a second start is accepted")
	}
}

func TestDrainAnswersThenStops(t *testing.T) {
	s := newServer(t, upstream.Faults{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Drain(context.Background(), 2*time.Second)
	}()
	if _, err := ask(t, s, "udp", service, dns.TypeA); err != nil {
		t.Errorf("while draining: %v", err)
	}
	<-done
	if _, err := ask(t, s, "udp", service, dns.TypeA); err == nil {
		t.Error("answered after the drain")
	}
}
