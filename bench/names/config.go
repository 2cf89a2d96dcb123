package names

import (
	"errors"
	"fmt"
)

// Config describes the cluster and its traffic. The zero value is a cluster of
// 2 000 services and 2 000 external names.
type Config struct {
	// Seed makes the sequence: equal seeds, equal sequences. Default 1.
	Seed uint64
	// Domain is the cluster's domain, at most 80 characters. Default
	// "cluster.local".
	Domain string
	// Services is the number of services, 1 to 1 000 000. Default 2000. One
	// in eight is headless.
	Services int
	// List takes the place of the invented services and their namespaces: those
	// of a real cluster, see ReadServices. Services, Namespaces and DualStack
	// then mean nothing. Default none.
	List []Listed
	// TTL takes the place of the TTL of every answer, negative ones included, in
	// seconds: a long one makes a cache that was filled once stay full. Default
	// 0: by class.
	TTL uint32
	// Namespaces is the number of namespaces that hold the services, 1 to
	// 10 000 and not more than Services. Default 40.
	Namespaces int
	// PodNamespaces is the number of namespaces that have pods on this node,
	// so the number of different search lists, 1 to Namespaces. Default 8.
	PodNamespaces int
	// External is the number of names outside the cluster, 1 to 1 000 000.
	// Default 2000.
	External int
	// DualStack gives every service an IPv6 address too. Default false: AAAA
	// of a service is NODATA, as in a single-stack cluster.
	DualStack bool
	// Zipf is the exponent of the popularity, 0 (all alike) to 3. Default 1;
	// a negative value means 0.
	Zipf float64
	// ExternalShare is the share of lookups (not of queries) for names outside
	// the cluster, 0 to 1. Default 0.3; a negative value means 0.
	ExternalShare float64
	// TCPShare is the share of lookups sent over TCP, 0 to 1. Default 0.02; a
	// negative value means 0.
	TCPShare float64
	// EDNSShare is the share of lookups with an OPT record, 0 to 1. Default
	// 0.2 (Go's resolver always sends one, the C libraries never do); a
	// negative value means 0.
	EDNSShare float64
}

// withDefaults is the one place where the defaults are written.
func (c Config) withDefaults() Config {
	orInt := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	share := func(v *float64, d float64) {
		if *v == 0 {
			*v = d
		}
		*v = max(*v, 0)
	}
	if c.Seed == 0 {
		c.Seed = 1
	}
	if c.Domain == "" {
		c.Domain = "cluster.local"
	}
	if len(c.List) > 0 {
		c.Services, c.Namespaces = len(c.List), namespacesOf(c.List)
	}
	orInt(&c.Services, 2000)
	orInt(&c.Namespaces, min(40, c.Services))
	orInt(&c.PodNamespaces, min(8, c.Namespaces))
	orInt(&c.External, 2000)
	share(&c.Zipf, 1)
	share(&c.ExternalShare, 0.3)
	share(&c.TCPShare, 0.02)
	share(&c.EDNSShare, 0.2)
	return c
}

func (c Config) validate() error {
	var errs []error
	between := func(what string, v, low, high float64) {
		if v < low || v > high {
			errs = append(errs, fmt.Errorf("names: %s is %v, want %v to %v", what, v, low, high))
		}
	}
	between("length of Domain", float64(len(c.Domain)), 1, 80)
	between("Services", float64(c.Services), 1, 1e6)
	between("Namespaces", float64(c.Namespaces), 1, float64(min(c.Services, 10000)))
	between("PodNamespaces", float64(c.PodNamespaces), 1, float64(c.Namespaces))
	between("External", float64(c.External), 1, 1e6)
	between("TTL", float64(c.TTL), 0, 86400)
	between("Zipf", c.Zipf, 0, 3)
	between("ExternalShare", c.ExternalShare, 0, 1)
	between("TCPShare", c.TCPShare, 0, 1)
	between("EDNSShare", c.EDNSShare, 0, 1)
	return errors.Join(errs...)
}
