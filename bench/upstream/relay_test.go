package upstream_test

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/bench/upstream"
)

func newRelay(t *testing.T, server, client upstream.Impair) *upstream.Relay {
	t.Helper()
	r, err := upstream.NewRelay(upstream.RelayConfig{
		Listen:   netip.MustParseAddrPort("127.0.0.1:0"),
		Target:   newServer(t, upstream.Faults{}).Addr(),
		ToServer: server,
		ToClient: client,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// send sends n queries with IDs from 1 and gives the IDs of the replies in the
// order they came, when so many came and no more follow.
func send(t *testing.T, addr netip.AddrPort, n, least int) (ids []int) {
	t.Helper()
	conn, err := net.Dial("udp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for i := 1; i <= n; i++ {
		query := []byte("\x00\x00\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x01")
		query[0], query[1] = byte(i>>8), byte(i)
		if _, err := conn.Write(query); err != nil {
			t.Fatal(err)
		}
	}
	buf := make([]byte, 512)
	for {
		wait := long
		if len(ids) >= least {
			wait = 250 * time.Millisecond
		}
		_ = conn.SetReadDeadline(time.Now().Add(wait))
		if _, err := conn.Read(buf); err != nil {
			return ids
		}
		ids = append(ids, int(buf[0])<<8|int(buf[1]))
	}
}

func TestRelayImpairs(t *testing.T) {
	const n = 100 // replies to it fit a receive buffer of any size
	for name, c := range map[string]struct {
		server, client upstream.Impair
		low, high      int // replies
		ordered        bool
	}{
		"nothing":              {low: n, high: n, ordered: true},
		"delay":                {server: upstream.Impair{Delay: 30 * time.Millisecond}, low: n, high: n, ordered: true},
		"loss to the server":   {server: upstream.Impair{Loss: 0.5}, low: 25, high: 75, ordered: true},
		"loss to the client":   {client: upstream.Impair{Loss: 0.5}, low: 25, high: 75, ordered: true},
		"each packet twice":    {server: upstream.Impair{Duplicate: 1}, low: 2 * n, high: 2 * n},
		"half of it reordered": {client: upstream.Impair{Reorder: 0.5, ReorderBy: 20 * time.Millisecond}, low: n, high: n},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRelay(t, c.server, c.client)
			start := time.Now()
			ids := send(t, r.Addr(), n, c.low)
			if len(ids) < c.low || len(ids) > c.high {
				t.Errorf("%d replies, want %d to %d; %d packets lost", len(ids), c.low, c.high, r.Lost())
			}
			ordered := true
			for i := 1; i < len(ids); i++ {
				ordered = ordered && ids[i-1] < ids[i]
			}
			if ordered != c.ordered {
				t.Errorf("ordered is %v", ordered)
			}
			if took := time.Since(start); took < c.server.Delay {
				t.Errorf("all came within %v", took)
			}
		})
	}
}

func TestRelayCarriesTCP(t *testing.T) {
	r := newRelay(t, upstream.Impair{Delay: 20 * time.Millisecond}, upstream.Impair{Delay: 20 * time.Millisecond})
	client := dns.Client{Net: "tcp", Timeout: long}
	start := time.Now()
	reply, _, err := client.Exchange(new(dns.Msg).SetQuestion(service, dns.TypeA), r.Addr().String())
	if err != nil || len(reply.Answer) != 1 {
		t.Fatalf("%v, %v", reply, err)
	}
	if took := time.Since(start); took < 40*time.Millisecond {
		t.Errorf("answered after %v, want 40 ms or more", took)
	}
}
