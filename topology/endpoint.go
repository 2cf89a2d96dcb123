package topology

import (
	"cmp"
	"net/netip"
	"strings"
)

// Self says where this node is. An empty field is unknown, and unknown never
// equals unknown.
type Self struct {
	Node string // name of the Node object, as in Endpoint.nodeName
	Zone string // label topology.kubernetes.io/zone of that Node
}

// Endpoint is one address of one pod: of discovery.k8s.io/v1 Endpoint only what
// the choice needs. It is comparable with == and small on purpose.
type Endpoint struct {
	Addr    netip.Addr // canonical; never IPv4-mapped, never with a zone
	UDPPort uint16     // 0 = not reachable over UDP
	TCPPort uint16     // 0 = not reachable over TCP

	Node string // nodeName; "" = unknown
	Zone string // zone; "" = unknown

	// ForNodes and ForZones are the hints of trafficDistribution (KEP-4444,
	// PreferSameNode in KEP-3015) and of topology-mode: Auto.
	ForNodes Names
	ForZones Names

	// Pod ties the addresses of one pod together: targetRef.uid, else
	// namespace/name, else "" (an address of its own).
	Pod string
	// PodName is targetRef's namespace/name, for people; "" = unknown.
	PodName string

	// The conditions of KEP-1672 after the API's rules for nil: a nil ready or
	// serving is true, a nil terminating is false.
	Ready       bool
	Serving     bool
	Terminating bool
}

// copies reports whether two of one address are the same endpoint: asked at the same
// port, or one pod whose port changed.
func (e *Endpoint) copies(o *Endpoint) bool {
	return e.Asked() == o.Asked() || e.Pod != "" && e.Pod == o.Pod
}

// Asked is where e is asked: over UDP, or over TCP if it has nothing else.
func (e *Endpoint) Asked() netip.AddrPort {
	return netip.AddrPortFrom(e.Addr, cmp.Or(e.UDPPort, e.TCPPort))
}

// draining reports an endpoint that is on its way out and still answers: what
// kube-proxy falls back to when nothing is ready (KEP-1669).
func (e *Endpoint) draining() bool { return !e.Ready && e.Serving && e.Terminating }

// state is what a Table says about e.
func (e *Endpoint) state() State {
	switch {
	case e.Ready:
		return Ready
	case e.draining():
		return Draining
	default:
		return NotReady
	}
}

// Names is an immutable list of hint names. The zero value is the empty list.
// It is a string inside, so that an Endpoint stays comparable.
type Names struct {
	list string // every name followed by nameEnd
}

// nameEnd cannot occur in a node name or a label value.
const nameEnd = "\x00"

// NamesOf makes a list of the given names.
func NamesOf(names ...string) Names {
	if len(names) == 0 {
		return Names{}
	}
	return Names{list: strings.Join(names, nameEnd) + nameEnd}
}

// Empty reports whether the list has no names, which means "no hint".
func (n Names) Empty() bool { return n.list == "" }

// Has reports whether name is in the list, byte for byte. The empty name is in
// no list.
func (n Names) Has(name string) bool {
	if name == "" {
		return false
	}
	for rest := n.list; rest != ""; {
		var one string
		one, rest, _ = strings.Cut(rest, nameEnd)
		if one == name {
			return true
		}
	}
	return false
}

// List returns the names in their order, nil for none.
func (n Names) List() []string {
	if n.list == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(n.list, nameEnd), nameEnd)
}
