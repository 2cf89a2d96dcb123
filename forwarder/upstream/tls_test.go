package upstream_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/upstream"
	"github.com/nodens-dns/nodens/forwarder/wire"
)

// secure is a DNS server that speaks TLS only.
type secure struct {
	addr    netip.AddrPort
	roots   *x509.CertPool
	mu      sync.Mutex
	states  []tls.ConnectionState
	plain   atomic.Int32 // connections that did not speak TLS
	queries atomic.Int32
}

func (s *secure) seen() []tls.ConnectionState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]tls.ConnectionState(nil), s.states...)
}

func serveTLS(t *testing.T, name string) *secure {
	t.Helper()
	cert, roots := certificate(t, name)
	s := &secure{roots: roots}
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = inner.Addr().(*net.TCPAddr).AddrPort()
	listener := tls.NewListener(inner, &tls.Config{
		Certificates: []tls.Certificate{cert}, NextProtos: []string{"dot"}, MinVersion: tls.VersionTLS12,
	})
	server := &dns.Server{Listener: listener, IdleTimeout: func() time.Duration { return time.Minute }}
	server.Handler = dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		s.queries.Add(1)
		if state := w.(dns.ConnectionStater).ConnectionState(); state != nil {
			s.mu.Lock()
			s.states = append(s.states, *state)
			s.mu.Unlock()
		} else {
			s.plain.Add(1)
		}
		_ = w.WriteMsg(new(dns.Msg).SetRcode(q, dns.RcodeNameError))
	})
	var work sync.WaitGroup
	work.Go(func() { _ = server.ActivateAndServe() })
	t.Cleanup(func() {
		_ = inner.Close()
		_ = server.Shutdown()
		work.Wait()
	})
	return s
}

func certificate(t *testing.T, name string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}

func (s *secure) table(name string) upstream.Table {
	m := upstream.Member{UDP: s.addr, TCP: s.addr, TLSName: name}
	return upstream.Table{Tiers: [3][]upstream.Member{upstream.ClusterTier: {m}}}
}

func TestTLS(t *testing.T) {
	s := serveTLS(t, "dns.test")
	cfg := external
	cfg.Roots = s.roots
	g := group(t, cfg, s.table("dns.test"))
	var asking sync.WaitGroup
	for i := range 50 {
		asking.Go(func() { mustAnswer(t, g, nameOf(i), wire.NXDomain) })
	}
	asking.Wait()
	for _, state := range s.seen() {
		if state.NegotiatedProtocol != "dot" || state.ServerName != "dns.test" {
			t.Errorf("protocol %q, name %q", state.NegotiatedProtocol, state.ServerName)
		}
	}
	if n := len(s.seen()); n != 50 || s.plain.Load() != 0 {
		t.Errorf("%d queries over TLS, %d without", n, s.plain.Load())
	}
}

func TestTLSResumes(t *testing.T) {
	s := serveTLS(t, "dns.test")
	cfg := external
	cfg.Roots, cfg.TCPIdle = s.roots, 30*time.Millisecond
	g := group(t, cfg, s.table("dns.test"))
	for range 3 {
		mustAnswer(t, g, "a.test", wire.NXDomain)
		waitFor(t, "the idle connection closes", func() bool { return g.Status().Open == 0 })
	}
	seen := s.seen()
	if len(seen) != 3 || seen[0].DidResume || !seen[1].DidResume || !seen[2].DidResume {
		t.Errorf("resumed: %v", seen)
	}
}

// TestTLSOrNothing has a server that is not who it should be.
func TestTLSOrNothing(t *testing.T) {
	s := serveTLS(t, "other.test")
	cleartext := serve(t, good(t))
	member := upstream.Member{UDP: cleartext.addr, TCP: cleartext.addr, TLSName: "dns.test"}
	for name, table := range map[string]upstream.Table{
		"another name": s.table("dns.test"),
		"no TLS":       {Tiers: [3][]upstream.Member{upstream.ClusterTier: {member}}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := external
			cfg.Roots, cfg.Budget = s.roots, 500*time.Millisecond
			g := group(t, cfg, table)
			_, took, err := ask(t, g, "a.test")
			if !errors.Is(err, upstream.ErrTLS) && !errors.Is(err, upstream.ErrSilent) && !errors.Is(err, upstream.ErrBudget) || took > 3*time.Second {
				t.Errorf("error %v after %v", err, took)
			}
			if n := s.queries.Load() + int32(cleartext.count()); n != 0 {
				t.Errorf("%d queries arrived", n)
			}
		})
	}
}
