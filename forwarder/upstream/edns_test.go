package upstream_test

import (
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/upstream"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// hasOPT reports whether a query speaks EDNS.
func hasOPT(r *request) bool { return r.msg[11] == 1 }

func TestEDNSFallback(t *testing.T) {
	tests := map[string]func(t *testing.T, r *request){
		"FORMERR": func(t *testing.T, r *request) { r.reply(t, dns.RcodeFormatError) },
		"NOTIMP":  func(t *testing.T, r *request) { r.reply(t, dns.RcodeNotImplemented) },
		"BADVERS": func(t *testing.T, r *request) {
			r.reply(t, dns.RcodeBadVers, func(m *dns.Msg) { m.SetEdns0(1232, false) })
		},
		"FORMERR without a question": func(_ *testing.T, r *request) {
			r.send([]byte{r.msg[0], r.msg[1], 0x80, 1, 0, 0, 0, 0, 0, 0, 0, 0})
		},
	}
	for name, reject := range tests {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(r *request) {
				if hasOPT(r) {
					reject(t, r)
				} else {
					r.reply(t, 0)
				}
			})
			clk := newClock()
			cfg := inOrder
			cfg.Now = clk.now
			g := group(t, cfg, plain(s))
			for _, step := range []struct {
				asked int           // queries seen in the end
				wait  time.Duration // after the step
			}{
				{2, 0}, // with EDNS, then without
				{3, 50 * time.Second},
				{4, 11 * time.Second}, // still remembered
				{6, 0},                // EDNS is tried again
				{7, 0},
			} {
				if _, took := mustAnswer(t, g, "a.test", wire.NoError); took > soon {
					t.Errorf("took %v", took)
				}
				if n := s.count(); n != step.asked {
					t.Errorf("asked %d times, want %d", n, step.asked)
				}
				clk.move(step.wait)
			}
			if n := g.Status().EDNSFallbacks; n != 2 {
				t.Errorf("%d fallbacks", n)
			}
		})
	}
}

// TestOneFormErrIsNotRemembered has a server that speaks EDNS reject one name.
func TestOneFormErrIsNotRemembered(t *testing.T) {
	s := serve(t, func(r *request) {
		if r.number < 2 {
			r.reply(t, dns.RcodeFormatError)
		} else {
			r.reply(t, 0)
		}
	})
	g := group(t, inOrder, plain(s))
	mustAnswer(t, g, "bad.test", wire.FormErr)
	mustAnswer(t, g, "good.test", wire.NoError)
	seen := s.requests(false)
	if len(seen) != 3 || !hasOPT(seen[0]) || hasOPT(seen[1]) || !hasOPT(seen[2]) {
		t.Errorf("%d queries", len(seen))
	}
	if g.Status().Targets[0].Plain {
		t.Error("the server counts as one without EDNS")
	}
}

func TestQueryHasOurSize(t *testing.T) {
	s := serve(t, good(t))
	g := group(t, upstream.Config{UDPSize: 1400}, plain(s))
	mustAnswer(t, g, "a.test", wire.NoError)
	var m dns.Msg
	if err := m.Unpack(s.requests(false)[0].msg); err != nil {
		t.Fatal(err)
	}
	if o := m.IsEdns0(); o == nil || o.UDPSize() != 1400 {
		t.Errorf("OPT %v", o)
	}
}
