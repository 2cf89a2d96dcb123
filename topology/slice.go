package topology

import "time"

// Slice is one EndpointSlice (discovery.k8s.io/v1) as a Source emits it: what
// the object says, not yet judged. The Watcher keeps nothing of it but strings.
// The names in JSON are those of the snapshot on disk.
type Slice struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Service   string `json:"service,omitempty"`   // label kubernetes.io/service-name; "" = none
	ManagedBy string `json:"managedBy,omitempty"` // label endpointslice.kubernetes.io/managed-by; "" = none

	// AddressType is IPv4, IPv6 or FQDN, as the API spells it.
	AddressType string `json:"addressType"`

	// Changed is the annotation endpoints.kubernetes.io/last-change-trigger-time;
	// zero = none. Seen is when the Source got this version; zero = unknown.
	// They order the copies of an address that is in two slices at once.
	Changed time.Time `json:"changed,omitzero"`
	Seen    time.Time `json:"-"`

	// AllowLoopback admits loopback addresses. The API refuses them; a file on
	// the node itself may mean them.
	AllowLoopback bool `json:"-"`

	Ports     []Port          `json:"ports"`
	Endpoints []SliceEndpoint `json:"endpoints"`
}

// Port is one port of a Slice.
type Port struct {
	Name     string `json:"name"`     // "" for nil
	Protocol string `json:"protocol"` // UDP, TCP or SCTP; "" (nil) is TCP
	Number   int32  `json:"number"`   // 0 (nil) does not exist for us: "all ports" tells nothing
}

// SliceEndpoint is one endpoint of a Slice. Nil conditions stay nil here.
type SliceEndpoint struct {
	Addresses   []string `json:"addresses"` // only the first has a meaning
	Ready       *bool    `json:"ready,omitempty"`
	Serving     *bool    `json:"serving,omitempty"`
	Terminating *bool    `json:"terminating,omitempty"`
	Node        string   `json:"node,omitempty"`     // nodeName; "" for nil
	Zone        string   `json:"zone,omitempty"`     // zone; "" for nil
	ForNodes    []string `json:"forNodes,omitempty"` // hints.forNodes[].name
	ForZones    []string `json:"forZones,omitempty"` // hints.forZones[].name

	TargetUID       string `json:"uid,omitempty"`          // targetRef.uid
	TargetNamespace string `json:"podNamespace,omitempty"` // targetRef.namespace
	TargetName      string `json:"pod,omitempty"`          // targetRef.name
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
