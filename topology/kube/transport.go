package kube

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
)

type counter = atomic.Uint64

// authorized puts the token on requests. It reads the file for each of them:
// they are few, and a token that was rotated counts at once, while the library
// goes on with the old one for up to a minute, refused or not.
type authorized struct {
	next      http.RoundTripper
	tokenFile string
}

// RoundTrip implements [http.RoundTripper].
func (a *authorized) RoundTrip(request *http.Request) (*http.Response, error) {
	token, err := os.ReadFile(a.tokenFile)
	if err != nil {
		return nil, fmt.Errorf("no token for the API server: %w", err)
	}
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	request.Header.Set("User-Agent", "nodens")
	return a.next.RoundTrip(request)
}

// metered counts the bytes of replies on their way in.
type metered struct {
	next     http.RoundTripper
	received *counter
}

// RoundTrip implements [http.RoundTripper].
func (m *metered) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := m.next.RoundTrip(request)
	if err == nil {
		response.Body = &meteredBody{response.Body, m.received}
	}
	return response, err
}

type meteredBody struct {
	io.ReadCloser
	received *counter
}

func (b *meteredBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.received.Add(uint64(n))
	return n, err
}
