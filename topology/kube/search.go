package kube

import (
	"cmp"
	"context"
	"slices"
	"strings"

	discovery "k8s.io/api/discovery/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// dnsLabel marks the DNS Service of a cluster whatever its name. The
// EndpointSlice controller copies the labels of a Service to its slices, so
// slices alone tell which Services there are.
const dnsLabel = "k8s-app=kube-dns"

// search finds the Service with the label, "" if there is none.
func (r *requests) search(ctx context.Context) (string, error) {
	found := *r
	found.selector = dnsLabel
	r.contact.count(func(c *Counters) { c.Searches++ })
	// Any version will do, so the server answers from its cache.
	list, err := found.list(ctx, meta.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return "", err
	}
	r.contact.heard()
	return choose(list.Items), nil
}

// candidate is a Service seen through its slices.
type candidate struct {
	name  string
	ready int
}

// choose returns the Service to follow: the one named kube-dns, else the one
// with the most ready endpoints, and of those the first by name. The copy of a
// Service that NodeLocal DNSCache asks in its place, "…-upstream", has the same
// endpoints and is taken only if there is nothing else.
func choose(items []discovery.EndpointSlice) string {
	counts := make(map[string]int)
	for i := range items {
		if name := items[i].Labels[discovery.LabelServiceName]; name != "" {
			counts[name] += ready(&items[i])
		}
	}
	candidates := make([]candidate, 0, len(counts))
	for name, n := range counts {
		candidates = append(candidates, candidate{name, n})
	}
	if len(candidates) == 0 {
		return ""
	}
	return slices.MinFunc(candidates, preferred).name
}

// preferred orders candidates, the better one first.
func preferred(a, b candidate) int {
	return cmp.Or(
		compareFlags(a.name == DefaultService, b.name == DefaultService),
		compareFlags(!isCopy(a.name), !isCopy(b.name)),
		cmp.Compare(b.ready, a.ready),
		cmp.Compare(a.name, b.name),
	)
}

func isCopy(name string) bool { return strings.HasSuffix(name, "-upstream") }

// compareFlags puts true before false.
func compareFlags(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

// ready counts the ready endpoints of a slice; nil means ready.
func ready(slice *discovery.EndpointSlice) int {
	n := 0
	for i := range slice.Endpoints {
		if r := slice.Endpoints[i].Conditions.Ready; r == nil || *r {
			n++
		}
	}
	return n
}
