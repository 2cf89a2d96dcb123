package kube

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Times of the connection. A peer that vanished without a word is noticed after
// sendPing + pingTimeout, well inside 20 s; the defaults of the client library
// take 45 s.
const (
	dialTimeout      = 5 * time.Second
	handshakeTimeout = 5 * time.Second
	sendPing         = 8 * time.Second // silence before a ping
	pingTimeout      = 5 * time.Second // silence after it
	keepAlive        = 15 * time.Second
)

// serviceAccount is where the kubelet puts the credentials of a pod.
const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

// API says how to reach the API server. The zero value is that of a pod.
type API struct {
	// Server is a URL such as https://192.0.2.1:6443. Default: the address that
	// the kubelet gives every pod in KUBERNETES_SERVICE_HOST and
	// KUBERNETES_SERVICE_PORT; no DNS is needed for it.
	Server string
	// CAFile holds the certificates the server's must be signed by, in PEM.
	// Default: ca.crt of the pod's service account.
	CAFile string
	// TokenFile holds the bearer token; it is read again when it was rotated.
	// Default: token of the pod's service account.
	TokenFile string
}

func (a API) withDefaults() API {
	if a.Server == "" {
		host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
		if host != "" && port != "" {
			a.Server = "https://" + net.JoinHostPort(host, port)
		}
	}
	if a.CAFile == "" {
		a.CAFile = filepath.Join(serviceAccount, "ca.crt")
	}
	if a.TokenFile == "" {
		a.TokenFile = filepath.Join(serviceAccount, "token")
	}
	return a
}

// Cluster identifies the cluster: the SHA-256 of its certificate authorities in
// hex. It needs no connection.
func (a API) Cluster() (string, error) {
	ca, err := os.ReadFile(a.withDefaults().CAFile)
	if err != nil {
		return "", fmt.Errorf("the cluster cannot be told without its certificate authority: %w", err)
	}
	sum := sha256.Sum256(ca)
	return hex.EncodeToString(sum[:]), nil
}

// errNotInCluster is a setting nobody made.
var errNotInCluster = errors.New("no API server is known: run as a pod (KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set) or name the server")

// Client is the connection to one API server. It is made when it is first
// needed and made anew when the certificate authority changed. Its methods may
// be called from any goroutine.
type Client struct {
	api API

	mu        sync.Mutex
	current   *rest.RESTClient
	transport *http.Transport
	received  counter
}

// NewClient makes a Client; nothing is read or sent yet.
func NewClient(api API) *Client {
	return &Client{api: api.withDefaults()}
}

// Server is the URL in use, "" if there is none.
func (c *Client) Server() string { return c.api.Server }

// Received is how many bytes of replies were read, without TLS and framing.
func (c *Client) Received() uint64 { return c.received.Load() }

// Close gives idle connections back.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop()
}

// get returns the client, made if there is none.
func (c *Client) get() (*rest.RESTClient, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != nil {
		return c.current, nil
	}
	config, err := c.api.config()
	if err != nil {
		return nil, err
	}
	if err := c.connect(config); err != nil {
		return nil, fmt.Errorf("API server %s: %w", c.api.Server, err)
	}
	return c.current, nil
}

// renew forgets the client, so that the next one reads the certificate
// authority again. Others may have renewed it already: only stale is dropped.
func (c *Client) renew(stale *rest.RESTClient) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == stale {
		c.drop()
	}
}

// drop needs the lock.
func (c *Client) drop() {
	if c.transport != nil {
		c.transport.CloseIdleConnections()
	}
	c.current, c.transport = nil, nil
}

// config checks what is needed before anything is sent, since a missing file is
// told better by its name than by a refused request.
func (a API) config() (*rest.Config, error) {
	if a.Server == "" {
		return nil, errNotInCluster
	}
	if _, err := os.Stat(a.TokenFile); err != nil {
		return nil, fmt.Errorf("no token for the API server: %w; mount the service account's token", err)
	}
	config := &rest.Config{
		Host:            a.Server,
		APIPath:         "/apis",
		TLSClientConfig: rest.TLSClientConfig{CAFile: a.CAFile},
		WarningHandler:  rest.NoWarnings{}, // they are about deprecated requests, and would go to standard error
		ContentConfig:   contentConfig(),
	}
	return config, nil
}

// connect makes transport and client. The transport is our own, because the
// library takes the times of the health check from environment variables only.
func (c *Client) connect(config *rest.Config) error {
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return err
	}
	transport := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}).DialContext,
		TLSClientConfig:     tls,
		TLSHandshakeTimeout: handshakeTimeout,
		ForceAttemptHTTP2:   true,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: sendPing, PingTimeout: pingTimeout},
		// A reply as large as 5 000 endpoints is worth it; the watch is not
		// compressed by the server.
		DisableCompression: false,
	}
	trip := &authorized{tokenFile: c.api.TokenFile, next: &metered{next: transport, received: &c.received}}
	client, err := rest.RESTClientForConfigAndClient(config, &http.Client{Transport: trip})
	if err != nil {
		return err
	}
	c.current, c.transport = client, transport
	return nil
}
