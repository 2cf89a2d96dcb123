package topology_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nodens-dns/nodens/topology"
)

func TestStatus(t *testing.T) {
	run(t, topology.Config{Rules: topology.Rules{Namespace: "kube-system"}}, func(r *rig) {
		odd := slice("odd", "10.0.0.9", "fe80::1", "10.0.0.8")
		odd.AddressType = "IPv4"
		odd.Endpoints[2].Addresses = []string{"10.0.0.8", "10.0.0.7"}
		foreign := slice("a", "10.9.9.9")
		foreign.Namespace = "default"
		r.Replace([]topology.Slice{
			slice("a", "10.0.0.1@n1/za", "10.0.0.2@n2/za~"), slice("b", "10.0.0.1@n1/za~"),
			slice("six", "fd00::1@n1/za"), slice("empty"), odd, foreign,
		})
		r.Synced()
		r.after(time.Minute, "10.0.0.1/fd00::1||10.0.0.8 10.0.0.9|10.0.0.2~")
		s := r.Status()
		got := []string{}
		for _, p := range s.Endpoints {
			got = append(got, fmt.Sprintf("%s %s %s: %s", p.Slice, p.Endpoint.Addr, p.Tier, p.Reason))
		}
		want := []string{
			"kube-system/a 10.0.0.1 node: on this node",
			"kube-system/b 10.0.0.1 none: another copy of the address stands: not terminating, or newer",
			"kube-system/a 10.0.0.2 last: terminating, still serving; not used while another endpoint is ready",
			"kube-system/odd 10.0.0.8 cluster: its zone is unknown",
			"kube-system/odd 10.0.0.9 cluster: its zone is unknown",
			"kube-system/six fd00::1 none: alternate address: the other family comes first",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("endpoints (-want +got):\n%s", diff)
		}
		if got, want := s.Ignored.String(), "other-namespace=1 placeholder=1 bad-address=1 extra-address=1"; got != want {
			t.Errorf("ignored %s, want %s", got, want)
		}
		if s.Slices != 6 || !s.Synced || s.TableAge != time.Minute || s.SourceAge != time.Minute {
			t.Errorf("slices %d, synced %v, ages %v %v", s.Slices, s.Synced, s.TableAge, s.SourceAge)
		}
	})
}

func TestStatusShowsTheNewestZoneOfThisNode(t *testing.T) {
	run(t, topology.Config{Self: topology.Self{Node: "n1"}}, func(r *rig) {
		r.Put(slice("z", "10.0.0.1@n1/zb"))
		r.Put(slice("a", "10.0.0.2@n1/za"))
		r.Put(slice("b", "10.0.0.3@n2/zc"))
		r.Synced()
		r.after(0, "10.0.0.1 10.0.0.2||10.0.0.3|")
		if got, want := r.Status().Self, (topology.Self{Node: "n1", Zone: "za"}); got != want {
			t.Errorf("self %+v, want %+v", got, want)
		}
	})
}
