package main

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// TestLoopIsFound has the server of a route forward everything to the daemon.
func TestLoopIsFound(t *testing.T) {
	back, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := make(chan string, 1)
	server := &dns.Server{PacketConn: back, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		to := <-address
		address <- to
		if reply, _, err := (&dns.Client{Timeout: time.Second}).Exchange(q, to); err == nil {
			_ = w.WriteMsg(reply)
		}
	})}
	go func() { _ = server.ActivateAndServe() }()
	t.Cleanup(func() { _ = server.Shutdown() })
	looping := netip.MustParseAddrPort(back.LocalAddr().String())

	h := serve(t, fmt.Sprintf("listen: [127.0.0.1:0]\nroutes:\n- {zones: [.], servers: [%q]}\n", looping))
	address <- h.current.Load().listens[0].address().String()
	await(t, "the loop is found", func() bool { return h.snapshot().Routes[0].Servers.Targets[0].Looped })
	if all := h.logs.FilterMessageSnippet("back to nodens").All(); len(all) != 1 {
		t.Errorf("logged %d times", len(all))
	}
	r := h.report()
	if s := r.Routes[0].Servers[0]; s.Healthy || !strings.Contains(s.Why, "back to nodens") {
		t.Errorf("server %+v", s)
	}
}
