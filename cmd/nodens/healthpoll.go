package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// healthBuckets is how many buckets a healthCount has, the last one without a bound.
const healthBuckets = 6

// healthCount is what became of our own health checks.
type healthCount struct {
	Buckets  [healthBuckets]uint64
	Sum      time.Duration
	Failures uint64
}

// healthPoll asks our own address for health checks, as CoreDNS does, so that a
// process that cannot get anything done is seen in its metrics.
type healthPoll struct {
	mu     sync.Mutex
	counts healthCount
}

const (
	healthEvery   = time.Second
	healthTimeout = 3 * time.Second
)

// run asks until ctx ends.
func (p *healthPoll) run(ctx context.Context, address string) {
	host, port, _ := net.SplitHostPort(address)
	if host == "" {
		host = "localhost"
	}
	client := &http.Client{Timeout: healthTimeout, Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	ticker := time.NewTicker(healthEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		began := time.Now()
		err := readAway(ctx, client, "http://"+net.JoinHostPort(host, port)+"/health")
		p.count(time.Since(began), err)
	}
}

func (p *healthPoll) count(took time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.counts.Failures++
		return
	}
	bounds := healthBounds()
	i, _ := slices.BinarySearch(bounds, took.Seconds())
	p.counts.Buckets[i]++
	p.counts.Sum += took
}

func (p *healthPoll) read() healthCount {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts
}

// readAway reads a page and throws it away.
func readAway(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err
}
