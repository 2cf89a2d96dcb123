package topology_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nodens-dns/nodens/topology"
)

func TestSnapshotRefusals(t *testing.T) {
	own := topology.Snapshot{
		Cluster: "c", Namespace: "kube-system", Service: "kube-dns", Zone: "za",
		Saved:  time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Slices: []topology.Slice{slice("a", "10.0.0.1@n1/za")},
	}
	file, err := own.Encode()
	if err != nil {
		t.Fatal(err)
	}
	text := string(file)
	nobodys := own
	nobodys.Cluster = ""
	unknown, err := nobodys.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		file string
		want topology.Snapshot
		err  error
	}{
		{"its own", text, own, nil},
		{"empty", "", own, topology.SnapshotCorrupt},
		{"half of it", text[:len(text)/2], own, topology.SnapshotCorrupt},
		{"zeros, as after a loss of power", strings.Repeat("\x00", len(text)), own, topology.SnapshotCorrupt},
		{"an address changed", strings.Replace(text, "10.0.0.1", "10.0.0.2", 1), own, topology.SnapshotCorrupt},
		{"the sum changed", strings.Replace(text, `"sha256":"`, `"sha256":"0`, 1), own, topology.SnapshotCorrupt},
		{"no content", `{"format":"nodens-endpoints-1"}`, own, topology.SnapshotCorrupt},
		{"another program's", `{"a":1}`, own, topology.SnapshotVersion},
		{"a later version", strings.Replace(text, "endpoints-1", "endpoints-2", 1), own, topology.SnapshotVersion},
		{"another cluster", text, topology.Snapshot{Cluster: "d", Namespace: "kube-system", Service: "kube-dns"}, topology.SnapshotOtherCluster},
		{"a cluster that is not known", text, topology.Snapshot{Namespace: "kube-system", Service: "kube-dns"}, topology.SnapshotOtherCluster},
		{"of no cluster, though none is known", string(unknown), nobodys, topology.SnapshotOtherCluster},
		{"another namespace", text, topology.Snapshot{Cluster: "c", Namespace: "dns", Service: "kube-dns"}, topology.SnapshotOtherService},
		{"another Service", text, topology.Snapshot{Cluster: "c", Namespace: "kube-system", Service: "coredns"}, topology.SnapshotOtherService},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := topology.DecodeSnapshot([]byte(c.file), c.want)
			if !errors.Is(err, c.err) {
				t.Fatalf("error %v, want %v", err, c.err)
			}
			if c.err == nil {
				if diff := cmp.Diff(own, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			} else if got.Slices != nil {
				t.Errorf("refused and given: %+v", got)
			}
		})
	}
}

// Whatever the file, nothing but what Encode wrote is taken.
func FuzzDecodeSnapshot(f *testing.F) {
	own := topology.Snapshot{Cluster: "c", Slices: []topology.Slice{slice("a", "10.0.0.1@n1/za")}}
	file, err := own.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(file)
	f.Add(bytes.ToUpper(file))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := topology.DecodeSnapshot(data, own)
		if err == nil && got.Cluster != own.Cluster {
			t.Errorf("took %+v", got)
		}
		for i := range got.Slices {
			topology.Project(&got.Slices[i], topology.Rules{})
		}
	})
}

func ExampleZoneOfLabels() {
	fmt.Println(topology.ZoneOfLabels("app=\"nodens\"\ntopology.kubernetes.io/region=\"r\"\ntopology.kubernetes.io/zone=\"za\"\n"))
	// Output: za
}
