package file

import (
	"time"

	"github.com/nodens-dns/nodens/topology"
)

// The labels and the annotation that are read.
const (
	labelService   = "kubernetes.io/service-name"
	labelManagedBy = "endpointslice.kubernetes.io/managed-by"
	changedAt      = "endpoints.kubernetes.io/last-change-trigger-time"
)

// The structs below are the fields of discovery.k8s.io/v1 that are read. Fields
// that are not here are tolerated, as the API tolerates them.

type endpointSlice struct {
	Metadata struct {
		Name        string            `json:"name"`
		Namespace   string            `json:"namespace"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	AddressType string     `json:"addressType"`
	Ports       []port     `json:"ports"`
	Endpoints   []endpoint `json:"endpoints"`
}

type port struct {
	Name     *string `json:"name"`
	Protocol *string `json:"protocol"`
	Port     *int32  `json:"port"`
}

type endpoint struct {
	Addresses  []string `json:"addresses"`
	Conditions struct {
		Ready       *bool `json:"ready"`
		Serving     *bool `json:"serving"`
		Terminating *bool `json:"terminating"`
	} `json:"conditions"`
	NodeName  string `json:"nodeName"`
	Zone      string `json:"zone"`
	TargetRef struct {
		UID       string `json:"uid"`
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"targetRef"`
	Hints struct {
		ForNodes []hint `json:"forNodes"`
		ForZones []hint `json:"forZones"`
	} `json:"hints"`
}

type hint struct {
	Name string `json:"name"`
}

// slice turns a checked object into the plain value.
func (s *endpointSlice) slice() topology.Slice {
	// The annotation is one of two clocks; one that does not parse is as good
	// as none.
	changed, _ := time.Parse(time.RFC3339Nano, s.Metadata.Annotations[changedAt])
	out := topology.Slice{
		Namespace:     s.Metadata.Namespace,
		Name:          s.Metadata.Name,
		Service:       s.Metadata.Labels[labelService],
		ManagedBy:     s.Metadata.Labels[labelManagedBy],
		AddressType:   s.AddressType,
		Changed:       changed,
		AllowLoopback: true,
	}
	for _, p := range s.Ports {
		out.Ports = append(out.Ports, topology.Port{
			Name:     value(p.Name),
			Protocol: value(p.Protocol),
			Number:   value(p.Port),
		})
	}
	for i := range s.Endpoints {
		out.Endpoints = append(out.Endpoints, s.Endpoints[i].endpoint())
	}
	return out
}

func (e *endpoint) endpoint() topology.SliceEndpoint {
	return topology.SliceEndpoint{
		Addresses:       e.Addresses,
		Ready:           e.Conditions.Ready,
		Serving:         e.Conditions.Serving,
		Terminating:     e.Conditions.Terminating,
		Node:            e.NodeName,
		Zone:            e.Zone,
		ForNodes:        names(e.Hints.ForNodes),
		ForZones:        names(e.Hints.ForZones),
		TargetUID:       e.TargetRef.UID,
		TargetNamespace: e.TargetRef.Namespace,
		TargetName:      e.TargetRef.Name,
	}
}

func names(hints []hint) []string {
	var list []string
	for _, h := range hints {
		list = append(list, h.Name)
	}
	return list
}

func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
