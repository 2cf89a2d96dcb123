package upstream_test

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/upstream"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

var external = upstream.Config{
	External: true, Policy: upstream.Sequential, RetryMin: patient.RetryMin, RetryMax: patient.RetryMax,
	Budget: patient.Budget, PacketRate: patient.PacketRate,
}

const longName = "abcdefghijklmnopqrstuvwxyz.abcdefghijklmnopqrstuvwxyz.test"

// asked are the names of the queries that a server saw over one transport.
func asked(t *testing.T, s *server, tcp bool) (names []string) {
	t.Helper()
	for _, r := range s.requests(tcp) {
		var m dns.Msg
		if err := m.Unpack(r.msg); err != nil {
			t.Fatal(err)
		}
		names = append(names, m.Question[0].Name)
	}
	return names
}

// inLowerCase answers with the question in lower case.
func inLowerCase(t *testing.T) func(*request) {
	return func(r *request) {
		msg := makeReply(t, r.msg, dns.RcodeSuccess)
		end := 12 + len(longName) + 2
		copy(msg[12:end], bytes.ToLower(msg[12:end]))
		r.send(msg)
	}
}

func TestLettersAreMixed(t *testing.T) {
	s := serve(t, good(t))
	g := group(t, external, plain(s))
	for range 5 {
		r, _ := mustAnswer(t, g, longName, wire.NoError) // demands the question as it was put
		var m dns.Msg
		if err := m.Unpack(r.Msg); err != nil || m.Answer[0].Header().Name != longName+"." {
			t.Errorf("answer %v (%v)", m.Answer, err)
		}
	}
	seen := map[string]bool{}
	for _, name := range asked(t, s, false) {
		if !strings.EqualFold(name, longName+".") {
			t.Errorf("asked for %s", name)
		}
		seen[name] = true
	}
	if len(seen) != 5 {
		t.Errorf("%d different spellings of 5", len(seen))
	}
	if ts := g.Status().Targets[0]; ts.SameCase || ts.Ignored != [upstream.IgnoredKinds]uint64{} {
		t.Errorf("target %+v", ts)
	}
}

func TestLettersStay(t *testing.T) {
	keep, tcp := external, external
	keep.KeepCase, tcp.ForceTCP = true, true
	for name, cfg := range map[string]upstream.Config{"in a cluster": inOrder, "over TCP": tcp, "by choice": keep} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, good(t))
			g := group(t, cfg, plain(s))
			mustAnswer(t, g, longName, wire.NoError)
			if got := asked(t, s, cfg.ForceTCP); len(got) != 1 || got[0] != longName+"." {
				t.Errorf("asked %v", got)
			}
		})
	}
}

// TestServerThatLosesLetters is asked over TCP, where nobody can forge, and
// after some time in the letters of the client.
func TestServerThatLosesLetters(t *testing.T) {
	for _, tc := range []struct {
		name     string
		tcp      bool
		udp, all int // queries in the end
	}{{"with TCP", true, 4, 6}, {"without", false, 6, 6}} {
		t.Run(tc.name, func(t *testing.T) {
			s := serve(t, inLowerCase(t))
			if !tc.tcp {
				_ = s.tcp.Close()
			}
			g := group(t, external, plain(s))
			for range 4 {
				if _, took := mustAnswer(t, g, longName, wire.NoError); took > soon {
					t.Errorf("took %v", took)
				}
			}
			if n := len(s.requests(false)); n != tc.udp || s.count() != tc.all {
				t.Errorf("asked %d times over UDP, %d in all", n, s.count())
			}
			waitFor(t, "both are counted", func() bool { return g.Status().Targets[0].Ignored[upstream.IgnoredWrongCase] == 2 })
			if ts := g.Status().Targets[0]; !ts.SameCase || ts.Out {
				t.Errorf("target %+v", ts)
			}
		})
	}
}

// TestForgedLetters has a forgery with other letters come before the reply.
func TestForgedLetters(t *testing.T) {
	lower := inLowerCase(t)
	s := serve(t, func(r *request) {
		if !r.tcp {
			lower(r)
		}
		r.reply(t, dns.RcodeNameError)
	})
	g := group(t, external, plain(s))
	mustAnswer(t, g, longName, wire.NXDomain)
}

func TestPacketRate(t *testing.T) {
	s := serve(t, good(t))
	cfg := external
	cfg.PacketRate = 100
	g := group(t, cfg, plain(s))
	start := time.Now()
	var asking sync.WaitGroup
	for i := range 40 {
		asking.Go(func() { mustAnswer(t, g, nameOf(i), wire.NoError) })
	}
	asking.Wait()
	// A burst of 5, then one every 10 ms.
	if took := time.Since(start); took < 300*time.Millisecond {
		t.Errorf("40 queries took %v", took)
	}
	if st := g.Status(); st.Held == 0 || s.count() != 40 {
		t.Errorf("held %d, asked %d", st.Held, s.count())
	}
}

// TestLowPacketRate has a few queries at once go out at once.
func TestLowPacketRate(t *testing.T) {
	s := serve(t, good(t))
	cfg := external
	cfg.PacketRate = 10
	g := group(t, cfg, plain(s))
	for i := range 4 {
		mustAnswer(t, g, nameOf(i), wire.NoError)
	}
	if held := g.Status().Held; held != 0 {
		t.Errorf("%d had to wait", held)
	}
}

// TestPacketRateCountsAll has every reply ask for a question over TCP.
func TestPacketRateCountsAll(t *testing.T) {
	s := serve(t, func(r *request) {
		if r.tcp {
			r.reply(t, dns.RcodeSuccess)
		} else {
			r.reply(t, dns.RcodeSuccess, truncated)
		}
	})
	cfg := external
	cfg.PacketRate = 100
	g := group(t, cfg, plain(s))
	start := time.Now()
	var asking sync.WaitGroup
	for i := range 40 {
		asking.Go(func() { mustAnswer(t, g, nameOf(i), wire.NoError) })
	}
	asking.Wait()
	// Five packets for each, one every 10 ms.
	if took := time.Since(start); took < 1500*time.Millisecond {
		t.Errorf("40 truncated replies took %v", took)
	}
}

// TestExternalProbe has an external server fail and return.
func TestExternalProbe(t *testing.T) {
	gone, alive := serve(t, silent), serve(t, good(t))
	gone.stop()
	g := group(t, external, plain(gone, alive))
	mustAnswer(t, g, "a.test", wire.NoError)
	back := serveAt(t, gone.addr, coded(t, dns.RcodeRefused)) // any reply will do
	waitFor(t, "probes bring it back", func() bool { return !g.Status().Targets[0].Out })
	for _, name := range asked(t, back, false) {
		if name != "." {
			t.Errorf("probed for %s", name)
		}
	}
}
