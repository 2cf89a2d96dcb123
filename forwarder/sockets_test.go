package forwarder_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder"
	"github.com/nodens-dns/nodens/forwarder/dnstest"
	"github.com/nodens-dns/nodens/forwarder/listener"
)

// onSockets lets a rig's forwarder answer what a listener reads.
type onSockets struct{ *rig }

func (s onSockets) peer(p listener.Peer) forwarder.Peer {
	return forwarder.Peer{Client: p.Client, Received: p.Received, Listener: p.Listener, Stripe: p.Stripe, Proto: forwarder.Proto(p.Proto)}
}

func (s onSockets) Lookup(dst, query []byte, from listener.Peer) ([]byte, listener.Verdict) {
	reply, v := s.rig.Lookup(dst, query, s.peer(from))
	return reply, listener.Verdict(v)
}

func (s onSockets) Resolve(ctx context.Context, dst, query []byte, from listener.Peer) ([]byte, listener.Verdict) {
	reply, v := s.rig.Resolve(ctx, dst, query, s.peer(from))
	return reply, listener.Verdict(v)
}

func (s onSockets) Done(from listener.Peer, took time.Duration) { s.rig.Done(s.peer(from), took) }

// listen serves a rig on one loopback port until the test ends.
func listen(t *testing.T, r *rig) (udp, tcp netip.AddrPort) {
	t.Helper()
	u, c := bindBoth(t, r)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = u.Run(ctx) })
	wg.Go(func() { _ = c.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	return u.Addr(), c.Addr()
}

// bindBoth finds a port that is free for both transports.
func bindBoth(t *testing.T, r *rig) (*listener.UDP, *listener.TCP) {
	t.Helper()
	for range 20 {
		u, err := listener.ListenUDP(listener.UDPConfig{Addr: netip.MustParseAddrPort("127.0.0.1:0"), Handler: onSockets{r}, Now: r.clock.Now})
		if err != nil {
			t.Fatal(err)
		}
		if c, err := listener.ListenTCP(listener.TCPConfig{Addr: u.Addr(), Handler: onSockets{r}, Now: r.clock.Now}); err == nil {
			return u, c
		}
		_ = u.Close()
	}
	t.Fatal("found no loopback port that is free for UDP and TCP")
	return nil, nil
}

func dial(t *testing.T, network string, addr netip.AddrPort) net.Conn {
	t.Helper()
	c, err := net.Dial(network, addr.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return c
}

// TestHostilePacketsOnSockets sends every packet over UDP and TCP, each followed
// by a sound query: what must not be answered is not, and the query is.
func TestHostilePacketsOnSockets(t *testing.T) {
	r := newRig(t, dnstest.Addresses(1))
	udp, tcp := listen(t, r)
	after := dnstest.Question("after.test.", dns.TypeA)
	after.Id = 0xABCD
	sound := dnstest.Pack(t, after)
	r.ask(sound, forwarder.UDP) // from now on a hit: no reply can overtake another
	for _, p := range dnstest.HostilePackets() {
		t.Run(p.Name, func(t *testing.T) {
			c := dial(t, "udp", udp)
			// An empty datagram is one too; one over MaxDatagram is not read.
			for _, packet := range [][]byte{p.Bytes[:min(len(p.Bytes), listener.MaxDatagram)], sound} {
				if _, err := c.Write(packet); err != nil {
					t.Fatal(err)
				}
			}
			buf := make([]byte, 4096)
			for range replies(p) {
				n, err := c.Read(buf)
				if err != nil {
					t.Fatalf("UDP: %v", err)
				}
				checkReply(t, p, dnstest.Unpack(t, buf[:n]))
			}

			c = dial(t, "tcp", tcp)
			for _, packet := range [][]byte{p.Bytes, sound} {
				_, _ = c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(packet))), packet...))
			}
			if p.Outcome == dnstest.Ignored {
				if n, err := c.Read(buf); n != 0 || err == nil {
					t.Errorf("TCP: %d bytes in place of the end", n)
				}
				return
			}
			for range replies(p) {
				checkReply(t, p, dnstest.Unpack(t, readFrame(t, c)))
			}
		})
	}
}

// replies is how many come for a packet and the query behind it.
func replies(p dnstest.Packet) int {
	if p.Outcome == dnstest.Ignored {
		return 1
	}
	return 2
}

// checkReply takes the reply to a packet or to the query behind it.
func checkReply(t *testing.T, p dnstest.Packet, m *dns.Msg) {
	t.Helper()
	if m.Id != 0xABCD {
		checkOutcome(t, p, m)
		return
	}
	if len(m.Answer) != 1 || m.Question[0].Name != "after.test." {
		t.Errorf("the query behind it got %v", m)
	}
}

func readFrame(t *testing.T, c net.Conn) []byte {
	t.Helper()
	var size [2]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		t.Fatalf("TCP: %v", err)
	}
	msg := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(c, msg); err != nil {
		t.Fatalf("TCP: %v", err)
	}
	return msg
}
