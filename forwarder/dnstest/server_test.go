package dnstest_test

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/dnstest"
)

// TestServer plays every script to a plain client.
func TestServer(t *testing.T) {
	good := dnstest.Addresses(2)
	timeout := func(err error) bool {
		var e net.Error
		return errors.As(err, &e) && e.Timeout()
	}
	ended := func(err error) bool { return errors.Is(err, io.EOF) }
	broken := func(err error) bool { return err != nil && !timeout(err) && !ended(err) }
	tests := []struct {
		name     string
		script   dnstest.Script
		udp, tcp func(error) bool // nil: an answer
	}{
		{"says", dnstest.Say(good), nil, nil},
		{"late", dnstest.After(10*time.Millisecond, dnstest.Say(good)), nil, nil},
		{"silent", dnstest.Drop, timeout, timeout},
		{"too late", dnstest.After(time.Hour, dnstest.Say(good)), timeout, timeout},
		{"half", dnstest.Half(good), broken, timeout},
		{"elsewhere", dnstest.ByTransport(dnstest.FromElsewhere(good), dnstest.Drop), timeout, timeout},
		{"hangs up", dnstest.Hangup, timeout, ended},
		{"breaks", dnstest.Reset, timeout, broken},
		{"in turn", dnstest.InTurn(dnstest.Say(good), dnstest.Drop), nil, nil},
		{"garbage first", dnstest.Both(dnstest.SayBytes(func([]byte) []byte { return []byte("x") }, good), dnstest.Say(good)), broken, broken},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := dnstest.Serve(t, tt.script)
			for network, want := range map[string]func(error) bool{"udp": tt.udp, "tcp": tt.tcp} {
				c := dns.Client{Net: network, Timeout: 100 * time.Millisecond}
				m, _, err := c.Exchange(dnstest.Question("a.test.", dns.TypeA), s.Addr().String())
				switch {
				case want == nil && (err != nil || len(m.Answer) != 2):
					t.Errorf("%s: %v, %v", network, m, err)
				case want != nil && !want(err):
					t.Errorf("%s: error %v", network, err)
				}
			}
			seen := s.Seen()
			if len(seen) != 2 || seen[0].Number != 0 || seen[1].Number != 0 || seen[0].TCP == seen[1].TCP || seen[0].Query().Question[0].Name != "a.test." {
				t.Errorf("the log: %+v", seen)
			}
		})
	}
}
