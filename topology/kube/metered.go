package kube

import (
	"io"
	"net/http"
	"sync/atomic"
)

type counter = atomic.Uint64

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
