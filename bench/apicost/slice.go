package apicost

import (
	"encoding/json"
	"fmt"
)

// protobufShare is the size of a slice in protobuf to that in JSON.
const protobufShare = 0.58

// sliceBytes is the size of a slice with n endpoints, as a watch gets it.
func sliceBytes(n int, protobuf bool) float64 {
	type object = map[string]any
	endpoints := make([]object, n)
	for i := range endpoints {
		endpoints[i] = object{
			"addresses":  []string{fmt.Sprintf("10.%d.%d.%d", 128+i/65536, i/256%256, i%256)},
			"conditions": object{"ready": true, "serving": true, "terminating": false},
			"nodeName":   fmt.Sprintf("ip-10-0-%d-%d.eu-west-1.compute.internal", i/256%256, i%256),
			"zone":       "eu-west-1a",
			"hints":      object{"forZones": []object{{"name": "eu-west-1a"}}},
			"targetRef": object{
				"kind": "Pod", "namespace": "kube-system", "name": fmt.Sprintf("coredns-7db6d8ff4d-%05d", i),
				"uid": "b2c1f0a4-7d3e-4a58-9c1b-0f6f8f7b1234",
			},
		}
	}
	event := object{"type": "MODIFIED", "object": object{
		"kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1", "addressType": "IPv4", "endpoints": endpoints,
		"metadata": object{
			"name": "kube-dns-x7k2p", "generateName": "kube-dns-", "namespace": "kube-system", "resourceVersion": "123456789",
			"uid": "b2c1f0a4-7d3e-4a58-9c1b-0f6f8f7b1234", "generation": 120, "creationTimestamp": "2026-01-01T00:00:00Z",
			"labels": object{
				"k8s-app": "kube-dns", "kubernetes.io/cluster-service": "true", "kubernetes.io/name": "CoreDNS",
				"kubernetes.io/service-name": "kube-dns", "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
			},
			"annotations": object{"endpoints.kubernetes.io/last-change-trigger-time": "2026-01-01T00:00:00Z"},
			"managedFields": []object{{
				"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "discovery.k8s.io/v1",
				"time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": managed(),
			}},
			"ownerReferences": []object{{
				"apiVersion": "v1", "kind": "Service", "name": "kube-dns", "uid": "b2c1f0a4-7d3e-4a58-9c1b-0f6f8f7b1234",
				"controller": true, "blockOwnerDeletion": true,
			}},
		},
		"ports": []object{
			{"name": "dns", "port": 53, "protocol": "UDP"},
			{"name": "dns-tcp", "port": 53, "protocol": "TCP"},
			{"name": "metrics", "port": 9153, "protocol": "TCP"},
		},
	}}
	data, err := json.Marshal(event)
	if err != nil {
		return 0 // of maps of strings and numbers: it cannot fail
	}
	if protobuf {
		return protobufShare * float64(len(data))
	}
	return float64(len(data))
}

// managed names the fields that the controller owns, as the API keeps them.
func managed() map[string]any {
	type object = map[string]any
	return object{
		"f:addressType": object{}, "f:endpoints": object{}, "f:ports": object{},
		"f:metadata": object{
			"f:annotations":  object{".": object{}, "f:endpoints.kubernetes.io/last-change-trigger-time": object{}},
			"f:generateName": object{},
			"f:labels": object{
				".": object{}, "f:endpointslice.kubernetes.io/managed-by": object{}, "f:k8s-app": object{},
				"f:kubernetes.io/cluster-service": object{}, "f:kubernetes.io/name": object{}, "f:kubernetes.io/service-name": object{},
			},
			"f:ownerReferences": object{".": object{}, `k:{"uid":"b2c1f0a4-7d3e-4a58-9c1b-0f6f8f7b1234"}`: object{}},
		},
	}
}
