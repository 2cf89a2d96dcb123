package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync"
	"time"
)

// secured is how the metrics are served over TLS. The files are read when a client
// comes and they changed, so that a renewed certificate counts at once.
func secured(c MetricsTLSConfig) *tls.Config {
	f := &certFiles{config: c}
	return &tls.Config{GetConfigForClient: f.current, MinVersion: tls.VersionTLS12}
}

// unreadable is what is wrong with the files of metrics that are to be served.
func (c MetricsTLSConfig) unreadable() error {
	if len(c.Listen) == 0 {
		return nil
	}
	_, err := (&certFiles{config: c}).read()
	return err
}

// certFiles are a certificate, its key, and the authorities of clients.
type certFiles struct {
	config MetricsTLSConfig

	mu    sync.Mutex
	times [3]time.Time // of the files when they were read
	made  *tls.Config
}

func (f *certFiles) current(*tls.ClientHelloInfo) (*tls.Config, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var times [3]time.Time
	for i, path := range []string{f.config.CertFile, f.config.KeyFile, f.config.ClientCAFile} {
		if info, err := os.Stat(path); err == nil {
			times[i] = info.ModTime()
		}
	}
	if f.made != nil && times == f.times {
		return f.made, nil
	}
	made, err := f.read()
	if err != nil && f.made == nil {
		return nil, err
	}
	if err == nil { // else half written: what counted goes on
		f.made, f.times = made, times
	}
	return f.made, nil
}

func (f *certFiles) read() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(f.config.CertFile, f.config.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("certificate of the metrics: %w; correct admin.metricsTLS", err)
	}
	made := &tls.Config{
		Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"},
		ClientAuth: map[string]tls.ClientAuthType{
			"request": tls.RequestClientCert, "require": tls.RequireAnyClientCert,
			"verify-if-given": tls.VerifyClientCertIfGiven, "verify": tls.RequireAndVerifyClientCert,
		}[f.config.ClientAuth],
	}
	if f.config.MinVersion == "1.2" {
		made.MinVersion = tls.VersionTLS12
	}
	if f.config.ClientCAFile == "" {
		return made, nil
	}
	pem, err := readFile(f.config.ClientCAFile)
	if err != nil {
		return nil, fmt.Errorf("authorities of the clients of the metrics: %w; correct admin.metricsTLS", err)
	}
	made.ClientCAs = x509.NewCertPool()
	if !made.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate; correct admin.metricsTLS", f.config.ClientCAFile)
	}
	return made, nil
}
