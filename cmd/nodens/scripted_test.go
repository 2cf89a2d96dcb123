package main

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// scripted is a DNS server on a port of 127.0.0.N, over UDP and TCP. Names tell it
// what to answer: nx... does not exist, big... has many addresses, every other
// has address 192.0.2.N with the server's own N, or 198.51.100.N once it changed.
type scripted struct {
	address netip.AddrPort
	own     byte
	delay   time.Duration
	asked   atomic.Int64
	edns    atomic.Int64
	silent  atomic.Bool
	// changed tells what is from memory and what is not. To count questions does
	// not: on a slow machine one is put again.
	changed atomic.Bool
	names   sync.Map // that were asked for
}

func (s *scripted) sawName(name string) bool {
	_, saw := s.names.Load(name)
	return saw
}

func newScripted(t *testing.T, own byte, delay time.Duration) *scripted {
	t.Helper()
	return newScriptedAt(t, fmt.Sprintf("127.0.0.%d:0", own), own, delay)
}

func newScriptedAt(t *testing.T, address string, own byte, delay time.Duration) *scripted {
	t.Helper()
	packets, listener := bindBoth(t, address)
	s := &scripted{address: netip.MustParseAddrPort(packets.LocalAddr().String()), own: own, delay: delay}
	for _, server := range []*dns.Server{{PacketConn: packets, Handler: s}, {Listener: listener, Handler: s}} {
		up := make(chan struct{})
		server.NotifyStartedFunc = func() { close(up) }
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = server.ActivateAndServe()
		}()
		<-up
		t.Cleanup(func() {
			_ = server.Shutdown()
			<-done
		})
	}
	return s
}

// bindBoth binds a port that is free over UDP and TCP.
func bindBoth(t *testing.T, address string) (net.PacketConn, net.Listener) {
	t.Helper()
	for range portTries {
		packets, err := net.ListenPacket("udp", address)
		if err != nil {
			t.Fatal(err)
		}
		if listener, err := net.Listen("tcp", packets.LocalAddr().String()); err == nil {
			return packets, listener
		}
		packets.Close()
	}
	t.Fatalf("no port of %s is free over UDP and TCP", address)
	return nil, nil
}

func (s *scripted) ServeDNS(w dns.ResponseWriter, query *dns.Msg) {
	s.asked.Add(1)
	s.names.Store(strings.ToLower(query.Question[0].Name), true)
	if s.silent.Load() {
		return
	}
	time.Sleep(s.delay)
	reply := new(dns.Msg).SetReply(query)
	if opt := query.IsEdns0(); opt != nil {
		s.edns.Add(1)
		reply.SetEdns0(1232, opt.Do())
	}
	name, count := query.Question[0].Name, 1
	switch lower := strings.ToLower(name); {
	case strings.HasPrefix(lower, "nx"):
		reply.Rcode, count = dns.RcodeNameError, 0
		soa, _ := dns.NewRR("example. 60 IN SOA ns.example. h.example. 1 1 1 1 60")
		reply.Ns = append(reply.Ns, soa)
	case strings.HasPrefix(lower, "big"):
		count = 200
	}
	network := net.IPv4(192, 0, 2, 0).To4()
	if s.changed.Load() {
		network = net.IPv4(198, 51, 100, 0).To4()
	}
	for i := range count {
		reply.Answer = append(reply.Answer, &dns.A{
			Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60},
			A:   net.IPv4(network[0], network[1], network[2]+byte(i), s.own),
		})
	}
	if w.RemoteAddr().Network() == "udp" {
		size := 512
		if opt := query.IsEdns0(); opt != nil {
			size = int(opt.UDPSize())
		}
		reply.Truncate(size)
	}
	_ = w.WriteMsg(reply)
}

// ask puts one question and returns the reply.
func ask(t *testing.T, proto string, to netip.AddrPort, name string, edns uint16) *dns.Msg {
	t.Helper()
	query := new(dns.Msg).SetQuestion(name, dns.TypeA)
	if edns > 0 {
		query.SetEdns0(edns, false)
	}
	client := &dns.Client{Net: proto, Timeout: patience}
	reply, _, err := client.Exchange(query, to.String())
	if err != nil {
		t.Fatalf("%s over %s at %s: %v", name, proto, to, err)
	}
	return reply
}

// answerOf is the reply in a few words.
func answerOf(reply *dns.Msg) string {
	text := dns.RcodeToString[reply.Rcode]
	if reply.Truncated {
		text += " TC"
	}
	if len(reply.Answer) == 1 {
		if a, ok := reply.Answer[0].(*dns.A); ok {
			text += " " + a.A.String()
		}
	} else if len(reply.Answer) > 1 {
		text += fmt.Sprintf(" %d answers", len(reply.Answer))
	}
	return text
}
