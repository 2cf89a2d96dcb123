package upstream_test

import (
	"crypto/x509"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/forwarder/upstream"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// told is what a group said of its servers.
type told struct {
	mu   sync.Mutex
	list []error
	of   []netip.AddrPort
}

func (n *told) notice(server netip.AddrPort, what error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list, n.of = append(n.list, what), append(n.of, server)
}

func (n *told) all() ([]error, []netip.AddrPort) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.list, n.of
}

func TestCertificateDoesNotFit(t *testing.T) {
	s := serveTLS(t, "other.test")
	for name, tc := range map[string]struct {
		asked string
		roots *x509.CertPool
		why   string
	}{
		"another name":      {"dns.test", s.roots, "valid for other.test, not dns.test"},
		"unknown authority": {"other.test", x509.NewCertPool(), "unknown authority"},
	} {
		t.Run(name, func(t *testing.T) {
			var n told
			clk := newClock()
			cfg := external
			cfg.Roots, cfg.Notice, cfg.Now, cfg.Attempts = tc.roots, n.notice, clk.now, 1
			cfg.TCPDial = time.Minute // a slow machine is no other fault
			g := group(t, cfg, s.table(tc.asked))
			status := func() upstream.TargetStatus { return g.Status().Targets[0] }
			for i := range 3 {
				// The first ends when the handshake has failed, and whoever comes
				// after a long time is asked again.
				if _, _, err := ask(t, g, "a.test"); !errors.Is(err, upstream.ErrCertificate) {
					t.Errorf("error %v", err)
				}
				clk.move(time.Hour)
				waitFor(t, "it is counted", func() bool { return status().Misfits > uint64(i) })
			}
			if got := status(); !strings.Contains(got.Misfit, tc.why) || got.HardErrors != 0 {
				t.Errorf("misfit %q, %d other errors", got.Misfit, got.HardErrors)
			}
			list, of := n.all()
			if len(list) != 1 || !errors.Is(list[0], upstream.ErrCertificate) || !strings.Contains(list[0].Error(), tc.why) || of[0] != s.addr {
				t.Errorf("told %v of %v", list, of)
			}
		})
	}
}

func TestCertificateFits(t *testing.T) {
	s := serveTLS(t, "dns.test")
	var n told
	cfg := external
	cfg.Roots, cfg.Notice = s.roots, n.notice
	g := group(t, cfg, s.table("dns.test"))
	mustAnswer(t, g, "a.test", wire.NXDomain)
	if list, _ := n.all(); len(list) != 0 || g.Status().Targets[0].Misfit != "" {
		t.Errorf("told %v, status %+v", list, g.Status().Targets[0])
	}
}

// TestLettersAreToldOnce has a server lose letters, be asked in others after
// more than an hour, and lose them again.
func TestLettersAreToldOnce(t *testing.T) {
	s := serve(t, inLowerCase(t))
	var n told
	clk := newClock()
	cfg := external
	cfg.Notice, cfg.Now = n.notice, clk.now
	g := group(t, cfg, plain(s))
	for range 2 {
		for range 4 {
			mustAnswer(t, g, longName, wire.NoError)
		}
		if list, of := n.all(); len(list) != 1 || !errors.Is(list[0], upstream.ErrLetters) || of[0] != s.addr {
			t.Errorf("told %v of %v", list, of)
		}
		clk.move(2 * time.Hour)
	}
}
