package topology

import "time"

// Slice is one EndpointSlice (discovery.k8s.io/v1) as a Source emits it: what
// the object says, not yet judged. The Watcher keeps nothing of it but strings.
type Slice struct {
	Namespace string
	Name      string
	Service   string // label kubernetes.io/service-name; "" = none
	ManagedBy string // label endpointslice.kubernetes.io/managed-by; "" = none

	// AddressType is IPv4, IPv6 or FQDN, as the API spells it.
	AddressType string

	// Changed is the annotation endpoints.kubernetes.io/last-change-trigger-time;
	// zero = none. Seen is when the Source got this version; zero = unknown.
	// They order the copies of an address that is in two slices at once.
	Changed time.Time
	Seen    time.Time

	// AllowLoopback admits loopback addresses. The API refuses them; a file on
	// the node itself may mean them.
	AllowLoopback bool

	Ports     []Port
	Endpoints []SliceEndpoint
}

// Port is one port of a Slice.
type Port struct {
	Name     string // "" for nil
	Protocol string // UDP, TCP or SCTP; "" (nil) is TCP
	Number   int32  // 0 (nil) does not exist for us: "all ports" tells nothing
}

// SliceEndpoint is one endpoint of a Slice. Nil conditions stay nil here.
type SliceEndpoint struct {
	Addresses   []string // only the first has a meaning
	Ready       *bool
	Serving     *bool
	Terminating *bool
	Node        string   // nodeName; "" for nil
	Zone        string   // zone; "" for nil
	ForNodes    []string // hints.forNodes[].name
	ForZones    []string // hints.forZones[].name

	TargetUID       string // targetRef.uid
	TargetNamespace string // targetRef.namespace
	TargetName      string // targetRef.name
}

// key identifies a slice.
type key struct{ namespace, name string }

func (k key) String() string { return k.namespace + "/" + k.name }

func (s *Slice) key() key { return key{s.Namespace, s.Name} }

// written is the time that orders slices: the trigger time, but never later
// than we saw it, since clocks differ; else when we saw it.
func (s *Slice) written() time.Time {
	if s.Changed.IsZero() || (!s.Seen.IsZero() && s.Seen.Before(s.Changed)) {
		return s.Seen
	}
	return s.Changed
}
