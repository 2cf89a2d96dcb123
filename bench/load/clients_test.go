package load_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"io"
	"math/big"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nodens-dns/nodens/bench/load"
	"github.com/nodens-dns/nodens/bench/names"
	"github.com/nodens-dns/nodens/bench/space"
	"github.com/nodens-dns/nodens/bench/upstream"
)

// Every client library asks again in its own way; what it gains is counted
// apart from what the server did.
func TestRetryHabits(t *testing.T) {
	mix := newMix(t, names.Config{})
	for name, c := range map[string]struct {
		retry  load.Retry
		faults upstream.Faults
		want   load.Counts
	}{
		"none loses":                   {load.NoRetry, upstream.Faults{DropEvery: 2}, load.Counts{Sent: 200, Right: 100, Lost: 100}},
		"glibc, all silent":            {load.Glibc, upstream.Faults{Blackhole: true}, load.Counts{Sent: 200, Lost: 200, Resent: 200}},
		"glibc, all SERVFAIL":          {load.Glibc, upstream.Faults{ServFail: 1}, load.Counts{Sent: 200, ServFail: 200, Resent: 200}},
		"musl, all SERVFAIL":           {load.Musl, upstream.Faults{ServFail: 1}, load.Counts{Sent: 200, ServFail: 200, Resent: 400}},
		"go, all SERVFAIL, other port": {load.GoRetry, upstream.Faults{ServFail: 1}, load.Counts{Sent: 200, ServFail: 200, Resent: 200}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newUpstream(t, mix, c.faults)
			report := run(t, load.Config{
				Target: s.Addr(), Source: streams(mix), Transport: load.UDP, Retry: c.retry, FreshPorts: c.retry == load.GoRetry,
				Stages: []load.Stage{load.Steady("run", 1000, 200*time.Millisecond)}, Timeout: 3 * time.Second,
			})
			if diff := cmp.Diff(c.want, report.Total); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if got, want := s.Counts().UDP, c.want.Sent+c.want.Resent; got != want {
				t.Errorf("the server got %d datagrams, want %d", got, want)
			}
		})
	}
}

// A query that is sent again after SERVFAIL keeps the connection that it got.
func TestRetryWithAConnectionForEachQuery(t *testing.T) {
	t.Parallel()
	mix := newMix(t, names.Config{})
	s := newUpstream(t, mix, upstream.Faults{ServFail: 1})
	report := run(t, load.Config{
		Target: s.Addr(), Source: streams(mix), Transport: load.TCPEach, Retry: load.Glibc,
		Stages: []load.Stage{load.Steady("run", 200, 200*time.Millisecond)}, Timeout: 10 * time.Second,
	})
	if diff := cmp.Diff(load.Counts{Sent: 40, ServFail: 40, Resent: 40}, report.Total); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if c := s.Counts(); c.Conns != 80 {
		t.Errorf("%d connections, want 80", c.Conns)
	}
}

func TestRetrySavesAndLatencyCountsFromTheFirst(t *testing.T) {
	mix := newMix(t, names.Config{})
	s := newUpstream(t, mix, upstream.Faults{Loss: 0.3})
	report := run(t, load.Config{
		Target: s.Addr(), Source: streams(mix), Transport: load.UDP, Retry: load.Musl,
		Stages: []load.Stage{load.Steady("run", 1000, 500*time.Millisecond)}, Timeout: time.Second, Late: 2 * time.Second,
	})
	c := report.Total
	if c.Resent < 100 || c.Resent > 210 || c.Lost < 15 || c.Lost > 90 || c.Right+c.Lost != 500 {
		t.Errorf("%+v, want about 150 resent and 45 lost of 500", c)
	}
	if report.Latency.P90 < 990*time.Millisecond || report.Latency.P50 > 900*time.Millisecond {
		t.Errorf("p50 %v, p90 %v: want that of the first datagram in the first, a second in the second", report.Latency.P50, report.Latency.P90)
	}
}

func TestTruncatedRepliesAreFollowed(t *testing.T) {
	mix := newMix(t, names.Config{})
	for _, transport := range []load.Transport{load.UDP, load.Mixed} {
		s := newUpstream(t, mix, upstream.Faults{Truncate: 1})
		report := run(t, load.Config{
			Target: s.Addr(), Source: func(int) load.Source { return mix.Flat(1) }, Transport: transport, FollowTC: true,
			Stages: []load.Stage{load.Steady("run", 1000, 300*time.Millisecond)}, Timeout: long,
		})
		want := load.Counts{Sent: 300, Right: 300, Followed: 300}
		if diff := cmp.Diff(want, report.Total); diff != "" {
			t.Errorf("transport %d (-want +got)\n%s", transport, diff)
		}
		if c := s.Counts(); c.UDP != 300 || c.TCP != 300 {
			t.Errorf("the server got %d over UDP and %d over TCP, want 300 of each", c.UDP, c.TCP)
		}
	}
}

func TestConnectionForEachQuery(t *testing.T) {
	t.Parallel()
	mix := newMix(t, names.Config{})
	s := newUpstream(t, mix, upstream.Faults{DropEvery: 10})
	report := run(t, load.Config{
		Target: s.Addr(), Source: streams(mix), Transport: load.TCPEach, Workers: 2,
		Stages: []load.Stage{load.Steady("run", 200, time.Second)}, Timeout: 10 * time.Second,
	})
	want := load.Counts{Sent: 200, Right: 180, Lost: 20}
	if diff := cmp.Diff(want, report.Total); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if c := s.Counts(); c.Conns != 200 || c.TCP != 200 {
		t.Errorf("%d connections for %d queries, want 200 for 200", c.Conns, c.TCP)
	}
}

func TestClosedLoopOfSoMany(t *testing.T) {
	mix := newMix(t, names.Config{Services: 100})
	every, n := mix.Every()
	report := run(t, load.Config{
		Target: newUpstream(t, mix, upstream.Faults{}).Addr(), Outstanding: 20, Queries: uint64(n),
		Source: func(int) load.Source { return every }, Stages: []load.Stage{{}},
	})
	if c := report.Total; c.Sent != 200 || c.Right != 200 {
		t.Errorf("%+v, want 200 sent and right", c)
	}
}

// startTLS passes TLS connections on to a server that speaks plain TCP.
func startTLS(t *testing.T, behind netip.AddrPort) (netip.AddrPort, *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	serving := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	addr := space.Accept(t, func(conn net.Conn) { passOn(tls.Server(conn, serving), behind) })
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	return addr, &tls.Config{RootCAs: roots}
}

func passOn(conn net.Conn, behind netip.AddrPort) {
	defer conn.Close()
	server, err := net.Dial("tcp", behind.String())
	if err != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(server, conn); server.Close() })
	both.Go(func() { _, _ = io.Copy(conn, server); conn.Close() })
	both.Wait()
}

func TestTLS(t *testing.T) {
	mix := newMix(t, names.Config{})
	addr, config := startTLS(t, newUpstream(t, mix, upstream.Faults{}).Addr())
	report := run(t, load.Config{
		Target: addr, Source: streams(mix), Transport: load.TLS, TLS: config,
		Stages: []load.Stage{load.Steady("run", 2000, 500*time.Millisecond)}, Timeout: long,
	})
	if c := report.Total; c.Sent != 1000 || c.Right != 1000 {
		t.Errorf("%+v, want 1000 right", c)
	}
}

func TestTLSThatIsNotTrustedIsRefusedAtOnce(t *testing.T) {
	mix := newMix(t, names.Config{})
	addr, _ := startTLS(t, newUpstream(t, mix, upstream.Faults{}).Addr())
	_, err := load.New(load.Config{
		Target: addr, Source: streams(mix), Transport: load.TLS, Stages: []load.Stage{load.Steady("run", 1, time.Second)},
	})
	if err == nil {
		t.Error("a certificate that nobody signed is taken")
	}
}

// A reply that comes in pieces is put together.
func TestConnectionForEachQueryInPieces(t *testing.T) {
	mix := newMix(t, names.Config{})
	behind := newUpstream(t, mix, upstream.Faults{}).Addr()
	addr := space.Accept(t, func(conn net.Conn) { answerInPieces(conn, behind) })
	report := run(t, load.Config{
		Target: addr, Source: streams(mix), Transport: load.TCPEach,
		Stages: []load.Stage{load.Steady("run", 100, 200*time.Millisecond)}, Timeout: long,
	})
	if c := report.Total; c.Right != 20 {
		t.Errorf("%+v, want 20 right", c)
	}
}

func answerInPieces(conn net.Conn, behind netip.AddrPort) {
	defer conn.Close()
	query := make([]byte, 2, 1024)
	if _, err := io.ReadFull(conn, query); err != nil {
		return
	}
	query = query[:2+binary.BigEndian.Uint16(query)]
	if _, err := io.ReadFull(conn, query[2:]); err != nil {
		return
	}
	for _, reply := range forward(behind, query[2:]) {
		reply = append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)
		for _, piece := range [][]byte{reply[:1], reply[1:7], reply[7:]} {
			_, _ = conn.Write(piece)
			time.Sleep(5 * time.Millisecond)
		}
	}
}
