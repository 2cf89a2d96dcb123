package kube

import (
	"time"

	discovery "k8s.io/api/discovery/v1"
)

// Trim is the transform of the reflector.
func Trim(object any) (any, error) { return trim(object) }

// Choose is the choice between Services.
func Choose(items []discovery.EndpointSlice) string { return choose(items) }

// Waits are the first waits of a backoff whose random part is a share of the
// window.
func Waits(least, most, limit time.Duration, share float64, n int) []time.Duration {
	b := backoff{least: least, most: most, random: func() float64 { return share }}
	var list []time.Duration
	for range n {
		list = append(list, b.next(limit))
	}
	return list
}
