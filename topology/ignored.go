package topology

import (
	"fmt"
	"strings"
)

// Kind is a reason to ignore a slice, an endpoint or an address.
type Kind uint8

// The kinds, and what one count of each is.
const (
	OtherNamespace  Kind = iota // a slice of another namespace
	OtherService                // a slice of another Service, or without the Service's label
	OtherController             // a slice whose managed-by label is not allowed
	OtherType                   // a slice of type FQDN or of a type unknown to us
	OtherFamily                 // a slice of an address family that is not wanted
	Placeholder                 // a slice without endpoints, as the controller keeps for no pods
	NoPort                      // a slice with endpoints and without a port for DNS
	NoAddress                   // an endpoint without address
	BadAddress                  // an endpoint whose address is no usable unicast address of its family
	OwnAddress                  // an endpoint where we listen ourselves: queries would go round in a loop
	TooMany                     // an endpoint after the first 1000 of its slice
	ExtraAddress                // an address after an endpoint's first
	kinds
)

// String returns the word used in status pages and metrics.
func (k Kind) String() string {
	names := [kinds]string{
		"other-namespace", "other-service", "other-controller", "other-type", "other-family",
		"placeholder", "no-port", "no-address", "bad-address", "own-address", "too-many", "extra-address",
	}
	if k >= kinds {
		return "unknown"
	}
	return names[k]
}

// Ignored counts ignored things, indexed by Kind.
type Ignored [kinds]int

// add sums another count into i.
func (i *Ignored) add(other *Ignored) {
	for k := range i {
		i[k] += other[k]
	}
}

// faulty lists the kinds of things that should not be there: slices of others
// and placeholders are a matter of course.
func faulty() []Kind {
	return []Kind{OtherController, NoPort, NoAddress, BadAddress, OwnAddress, TooMany}
}

// Faulty is the part of i that should not be there.
func (i *Ignored) Faulty() Ignored {
	var part Ignored
	for _, k := range faulty() {
		part[k] = i[k]
	}
	return part
}

// Kinds lists every kind.
func Kinds() []Kind {
	list := make([]Kind, kinds)
	for k := range list {
		list[k] = Kind(k)
	}
	return list
}

// String lists the kinds that occurred, e.g. "no-address=1 bad-address=2".
func (i *Ignored) String() string {
	var b strings.Builder
	for k, n := range i {
		if n == 0 {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%s=%d", Kind(k), n)
	}
	return b.String()
}
