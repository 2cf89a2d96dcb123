package kube

import (
	"time"

	discovery "k8s.io/api/discovery/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodens-dns/nodens/topology"
)

// changedAt is the annotation with the time of the change that led to this
// version of a slice.
const changedAt = "endpoints.kubernetes.io/last-change-trigger-time"

// Project turns an EndpointSlice into the plain value, judging nothing. seen is
// when it arrived. The result shares strings with the object.
func Project(from *discovery.EndpointSlice, seen time.Time) topology.Slice {
	// An annotation that does not parse is as good as none.
	changed, _ := time.Parse(time.RFC3339Nano, from.Annotations[changedAt])
	out := topology.Slice{
		Namespace:   from.Namespace,
		Name:        from.Name,
		Service:     from.Labels[discovery.LabelServiceName],
		ManagedBy:   from.Labels[discovery.LabelManagedBy],
		AddressType: string(from.AddressType),
		Changed:     changed,
		Seen:        seen,
		Ports:       make([]topology.Port, len(from.Ports)),
		Endpoints:   make([]topology.SliceEndpoint, len(from.Endpoints)),
	}
	for i := range from.Ports {
		p := &from.Ports[i]
		out.Ports[i] = topology.Port{Name: value(p.Name), Protocol: string(value(p.Protocol)), Number: value(p.Port)}
	}
	for i := range from.Endpoints {
		out.Endpoints[i] = endpoint(&from.Endpoints[i])
	}
	return out
}

func endpoint(from *discovery.Endpoint) topology.SliceEndpoint {
	e := topology.SliceEndpoint{
		Addresses:   from.Addresses,
		Ready:       from.Conditions.Ready,
		Serving:     from.Conditions.Serving,
		Terminating: from.Conditions.Terminating,
		Node:        value(from.NodeName),
		Zone:        value(from.Zone),
	}
	if hints := from.Hints; hints != nil {
		for _, h := range hints.ForNodes {
			e.ForNodes = append(e.ForNodes, h.Name)
		}
		for _, h := range hints.ForZones {
			e.ForZones = append(e.ForZones, h.Name)
		}
	}
	if target := from.TargetRef; target != nil {
		e.TargetUID, e.TargetNamespace, e.TargetName = string(target.UID), target.Namespace, target.Name
	}
	return e
}

// trim drops what is never read, so that a list being streamed does not hold it
// until its end.
func trim(object any) (any, error) {
	slice, ok := object.(*discovery.EndpointSlice)
	if !ok {
		return object, nil
	}
	slice.ObjectMeta = meta.ObjectMeta{
		Namespace:       slice.Namespace,
		Name:            slice.Name,
		ResourceVersion: slice.ResourceVersion,
		Labels:          keep(slice.Labels, discovery.LabelServiceName, discovery.LabelManagedBy),
		Annotations:     keep(slice.Annotations, changedAt),
	}
	for i := range slice.Endpoints {
		slice.Endpoints[i].Hostname = nil
		slice.Endpoints[i].DeprecatedTopology = nil
	}
	return slice, nil
}

// keep returns the named entries of a map.
func keep(from map[string]string, names ...string) map[string]string {
	kept := make(map[string]string, len(names))
	for _, name := range names {
		if v, ok := from[name]; ok {
			kept[name] = v
		}
	}
	return kept
}

func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
