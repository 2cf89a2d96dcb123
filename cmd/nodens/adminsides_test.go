package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/bench/space"
)

// freePort is a TCP port that nobody has now at any address.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// getFrom asks until the address is served.
func getFrom(t *testing.T, client *http.Client, url string) (status int, body string) {
	t.Helper()
	await(t, url, func() bool {
		response, err := client.Get(url)
		if err != nil {
			return false
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		status, body = response.StatusCode, string(text)
		return err == nil
	})
	return status, body
}

// The further addresses serve what they are for and nothing else.
func TestHTTPSides(t *testing.T) {
	metrics, health, secure := freePort(t), space.Free(t), space.Free(t)
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	writeCertificate(t, cert, key, "first")
	serve(t, "listen: [127.0.0.1:0]\nroutes: [{zones: [.], servers: [127.0.0.1:9]}]\n") // beside another
	path := filepath.Join(dir, "nodens.yaml")
	write(t, path, fmt.Sprintf("version: v1\nlisten: [127.0.0.1:0]\nroutes: [{zones: [.], servers: [127.0.0.1:9]}]\n"+
		"admin: {address: 127.0.0.1:0, metrics: [\":%s\"], health: [%q], metricsTLS: {listen: [%q], certFile: %s, keyFile: %s}}\n",
		metrics, health, secure, cert, key))
	serveFile(t, path)
	plain := &http.Client{Timeout: patience}
	over := &http.Client{Timeout: patience, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
	}}
	for _, test := range []struct {
		client *http.Client
		url    string
		status int
		body   string
	}{
		{plain, "http://127.0.0.1:" + metrics + "/metrics", 200, "nodens_ready 1"},
		{plain, "http://127.0.0.1:" + metrics + "/statusz", 404, ""},
		{plain, "http://127.0.0.1:" + metrics + "/debug/pprof/", 404, ""},
		{plain, "http://" + health.String() + "/health", 200, "OK"},
		{plain, "http://" + health.String() + "/ready", 200, "ready"},
		{plain, "http://" + health.String() + "/metrics", 404, ""},
		{over, "https://" + secure.String() + "/metrics", 200, "nodens_ready 1"},
	} {
		if status, body := getFrom(t, test.client, test.url); status != test.status || !strings.Contains(body, test.body) {
			t.Errorf("%s: %d %q", test.url, status, cut(body))
		}
	}
	writeCertificate(t, cert, key, "second")
	await(t, "the renewed certificate", func() bool {
		conn, err := tls.Dial("tcp", secure.String(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			return false
		}
		name := conn.ConnectionState().PeerCertificates[0].DNSNames[0]
		return conn.Close() == nil && name == "second"
	})
}

func writeCertificate(t *testing.T, certFile, keyFile, name string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, certFile, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	write(t, keyFile, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
}

// A delayed stop goes on answering, and is not ready.
func TestStopDelay(t *testing.T) {
	up := newScripted(t, 7, 0)
	h := serve(t, fmt.Sprintf("listen: [127.0.0.1:0]\nroutes: [{zones: [.], servers: [%q]}]\nstopDelay: 500ms\n", up.address))
	ended := make(chan error, 1)
	began := time.Now()
	go func() { ended <- h.end() }()
	await(t, "readiness to end", func() bool { return h.ready.Load() == "stopping" })
	h.expect("udp", h.address(0), "late.example.", 0, "NOERROR 192.0.2.7")
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took < 500*time.Millisecond {
		t.Errorf("the stop took %v", took)
	}
}
