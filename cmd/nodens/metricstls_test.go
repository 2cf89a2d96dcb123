package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// signer signs certificates.
type signer struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newSigner(t *testing.T, name string) *signer {
	t.Helper()
	a := &signer{t: t}
	a.cert, a.key = a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	return a
}

// sign makes a certificate; an signer's own is signed with its own key.
func (a *signer) sign(template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, with := a.cert, a.key
	if parent == nil {
		parent, with = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, with)
	if err != nil {
		a.t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return made, key
}

// pair is a certificate with its key, as files have them.
func (a *signer) pair(template *x509.Certificate) (cert, key string) {
	a.t.Helper()
	made, private := a.sign(template)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		a.t.Fatal(err)
	}
	return pemOf("CERTIFICATE", made.Raw), pemOf("PRIVATE KEY", der)
}

func pemOf(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// scraper reads metrics over TLS, with a certificate of the signer if there is one.
func scraper(t *testing.T, trusts *x509.CertPool, most uint16, from *signer) *http.Client {
	t.Helper()
	c := &tls.Config{RootCAs: trusts, MaxVersion: most}
	if from != nil {
		cert, key := from.pair(&x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
		if err != nil {
			t.Fatal(err)
		}
		// Shown whatever the server says it takes.
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	return &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{TLSClientConfig: c, DisableKeepAlives: true}}
}

// With node-cache's flags the second address of the metrics is served over TLS, to those
// who show what the flags ask for.
func TestMetricsForKnownClients(t *testing.T) {
	ours, others := newSigner(t, "ours"), newSigner(t, "others")
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	cert, key := ours.pair(&x509.Certificate{DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	for name, text := range map[string]string{
		"tls.crt": cert, "tls.key": key, "ca.crt": pemOf("CERTIFICATE", ours.cert.Raw),
	} {
		write(t, path(name), text)
	}
	trusts := x509.NewCertPool()
	trusts.AddCert(ours.cert)
	plain, older, known, unknown := scraper(t, trusts, 0, nil), scraper(t, trusts, tls.VersionTLS12, ours), scraper(t, trusts, 0, ours), scraper(t, trusts, 0, others)
	for _, test := range []struct {
		flags   string
		served  []*http.Client
		refused []*http.Client
	}{
		{"-tls-client-auth-type NoClientCert", []*http.Client{plain, known, unknown}, []*http.Client{older}},
		{"-tls-client-auth-type RequireAnyClientCert", []*http.Client{known, unknown}, []*http.Client{plain}},
		{"-tls-client-auth-type VerifyClientCertIfGiven -tls-client-ca-file " + path("ca.crt"), []*http.Client{plain, known}, []*http.Client{unknown}},
		{"-tls-client-auth-type RequireAndVerifyClientCert -tls-client-ca-file " + path("ca.crt"), []*http.Client{known}, []*http.Client{plain, unknown}},
		{"-tls-client-auth-type RequireAndVerifyClientCert -tls-min-version TLS12 -tls-client-ca-file " + path("ca.crt"), []*http.Client{known, older}, []*http.Client{plain}},
	} {
		t.Run(test.flags, func(t *testing.T) {
			f, err := parseNodeCache(strings.Fields("-tls-enabled -tls-cert-file "+path("tls.crt")+" -tls-private-key-file "+path("tls.key")+" "+test.flags), &strings.Builder{})
			if err != nil {
				t.Fatal(err)
			}
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("metrics")) }))
			server.Config.ErrorLog = log.New(io.Discard, "", 0) // the clients say what became of them
			server.Listener = tls.NewListener(server.Listener, secured(f.tls))
			server.Start()
			defer server.Close()
			url := strings.Replace(server.URL, "http://127.0.0.1", "https://127.0.0.1", 1)
			for i, client := range test.served {
				if response, err := client.Get(url); err != nil {
					t.Errorf("client %d of those served: %v", i, err)
				} else {
					response.Body.Close()
				}
			}
			for i, client := range test.refused {
				if response, err := client.Get(url); err == nil {
					response.Body.Close()
					t.Errorf("client %d of those refused got %s", i, response.Status)
				}
			}
		})
	}
}

// Certificates of the metrics that cannot be read are found by check and at the start, not
// by the first client.
func TestMetricsWithoutCertificate(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	config := filepath.Join(dir, "nodens.yaml")
	start := fmt.Sprintf("version: v1\nlisten: [127.0.0.1:0]\nroutes: [{zones: [.], servers: [127.0.0.1:9]}]\nadmin: {address: 127.0.0.1:0, metricsTLS: {listen: [127.0.0.1:0], certFile: %s, keyFile: %s", cert, key)
	for _, test := range []struct {
		name string
		have func()
		ca   string
		want string
	}{
		{"no files", func() {}, "", "certificate of the metrics: open " + cert + ": no such file or directory; correct admin.metricsTLS"},
		{"no certificate in it", func() { write(t, cert, "x"); write(t, key, "x") }, "", "certificate of the metrics: "},
		{"no authorities", func() { writeCertificate(t, cert, key, "a") }, filepath.Join(dir, "ca.crt"), "authorities of the clients of the metrics: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.have()
			text := start
			if test.ca != "" {
				text += ", clientAuth: verify, clientCAFile: " + test.ca
			}
			write(t, config, text+"}}\n")
			for _, command := range []string{"check", "serve"} {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				var out, says strings.Builder
				status := run(ctx, []string{command, "-config", config}, noEnv, &out, &says)
				cancel()
				if status != 1 || !strings.Contains(says.String(), test.want) {
					t.Errorf("%s: status %d, %q; want %q", command, status, &says, test.want)
				}
			}
		})
	}
}
