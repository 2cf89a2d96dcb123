package kube_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nodens-dns/nodens/topology"
	"github.com/nodens-dns/nodens/topology/kube"
)

func ptr[T any](v T) *T { return &v }

func TestProjectReadsEveryField(t *testing.T) {
	seen := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	from := &discovery.EndpointSlice{
		ObjectMeta: meta.ObjectMeta{
			Namespace: "kube-system", Name: "s",
			Labels:      map[string]string{discovery.LabelServiceName: "kube-dns", discovery.LabelManagedBy: "me"},
			Annotations: map[string]string{"endpoints.kubernetes.io/last-change-trigger-time": "2025-12-31T23:59:59.5Z"},
		},
		AddressType: discovery.AddressTypeIPv4,
		Ports: []discovery.EndpointPort{
			{Name: ptr("dns"), Protocol: ptr(core.ProtocolUDP), Port: ptr(int32(53))},
			{},
		},
		Endpoints: []discovery.Endpoint{
			{
				Addresses:  []string{"10.0.0.1", "10.0.0.2"},
				Conditions: discovery.EndpointConditions{Ready: ptr(false), Serving: ptr(true), Terminating: ptr(true)},
				Hostname:   ptr("ignored"), NodeName: ptr("n1"), Zone: ptr("za"),
				TargetRef: &core.ObjectReference{Kind: "Pod", Namespace: "kube-system", Name: "p", UID: types.UID("u")},
				Hints: &discovery.EndpointHints{
					ForZones: []discovery.ForZone{{Name: "za"}, {Name: "zb"}}, ForNodes: []discovery.ForNode{{Name: "n1"}},
				},
			},
			{Addresses: []string{"10.0.0.3"}, Hints: &discovery.EndpointHints{}},
		},
	}
	want := topology.Slice{
		Namespace: "kube-system", Name: "s", Service: "kube-dns", ManagedBy: "me", AddressType: "IPv4",
		Changed: time.Date(2025, 12, 31, 23, 59, 59, 5e8, time.UTC), Seen: seen,
		Ports: []topology.Port{{Name: "dns", Protocol: "UDP", Number: 53}, {}},
		Endpoints: []topology.SliceEndpoint{
			{
				Addresses: []string{"10.0.0.1", "10.0.0.2"}, Ready: ptr(false), Serving: ptr(true), Terminating: ptr(true),
				Node: "n1", Zone: "za", ForNodes: []string{"n1"}, ForZones: []string{"za", "zb"},
				TargetUID: "u", TargetNamespace: "kube-system", TargetName: "p",
			},
			{Addresses: []string{"10.0.0.3"}},
		},
	}
	if diff := cmp.Diff(want, kube.Project(from, seen)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What a reflector holds of a slice while a list is streamed must still say all
// that is read of it.
func TestTrimLosesNothingThatIsRead(t *testing.T) {
	full := slice("s", "kube-dns", "10.0.0.1", "10.0.0.2")
	full.ManagedFields = []meta.ManagedFieldsEntry{{Manager: "m"}}
	full.Annotations = map[string]string{"endpoints.kubernetes.io/last-change-trigger-time": "2026-01-01T00:00:00Z", "x": "y"}
	full.OwnerReferences = []meta.OwnerReference{{Name: "kube-dns"}}
	full.Labels[discovery.LabelManagedBy] = "me"
	full.ResourceVersion = "7"
	full.Endpoints[0].Hostname = ptr("h")
	want := kube.Project(full, time.Time{})
	trimmed, err := kube.Trim(full.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	got := trimmed.(*discovery.EndpointSlice)
	if diff := cmp.Diff(want, kube.Project(got, time.Time{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.ResourceVersion != "7" {
		t.Error("the version was lost")
	}
	left, err := json.Marshal(got.ObjectMeta)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.ManagedFields)+len(got.OwnerReferences) > 0 || len(got.Labels) != 2 || len(got.Annotations) != 1 || got.Endpoints[0].Hostname != nil {
		t.Errorf("not trimmed: %s", left)
	}
	if other, err := kube.Trim("a tombstone"); other != "a tombstone" || err != nil {
		t.Error("another object was changed")
	}
}
