package topology

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Snapshot is what is kept on disk of the endpoints of a Service, for a start
// while the API server is away.
type Snapshot struct {
	// Cluster identifies the cluster, Namespace and Service the Service as it is
	// configured. A snapshot of another one is refused.
	Cluster   string    `json:"cluster"`
	Namespace string    `json:"namespace"`
	Service   string    `json:"service"`
	Saved     time.Time `json:"saved"`
	// Zone is that of the node; "" = unknown.
	Zone   string  `json:"zone,omitempty"`
	Slices []Slice `json:"slices"`
}

// Refusal is why a snapshot is not used. It is an error.
type Refusal string

// The refusals.
const (
	SnapshotCorrupt      Refusal = "corrupt"
	SnapshotVersion      Refusal = "other-version"
	SnapshotOtherCluster Refusal = "other-cluster"
	SnapshotOtherService Refusal = "other-service"
	SnapshotUnreadable   Refusal = "unreadable"
	SnapshotNoFile       Refusal = "no-regular-file"
)

// Error implements error.
func (r Refusal) Error() string { return "the snapshot is not used: " + string(r) }

// Refusals lists every one.
func Refusals() []Refusal {
	return []Refusal{SnapshotCorrupt, SnapshotVersion, SnapshotOtherCluster, SnapshotOtherService, SnapshotUnreadable, SnapshotNoFile}
}

// snapshotFormat names the version of the file.
const snapshotFormat = "nodens-endpoints-1"

// envelope is the file: the sum is over the bytes of the content as they stand.
type envelope struct {
	Format  string          `json:"format"`
	SHA256  string          `json:"sha256"`
	Content json.RawMessage `json:"content"`
}

// Encode makes the file of a snapshot.
func (s *Snapshot) Encode() ([]byte, error) {
	content, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("snapshot of %s/%s: %w", s.Namespace, s.Service, err)
	}
	// Not through json.Marshal, which may lay out the content anew.
	var file bytes.Buffer
	fmt.Fprintf(&file, "{\"format\":%q,\"sha256\":%q,\"content\":%s}\n", snapshotFormat, sum(content), content)
	return file.Bytes(), nil
}

func sum(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// DecodeSnapshot reads a file. It is refused as a whole unless it is intact and
// of the same cluster and Service as want, of which only these are looked at. An
// unknown cluster is no cluster's.
func DecodeSnapshot(file []byte, want Snapshot) (Snapshot, error) {
	var e envelope
	if err := json.Unmarshal(file, &e); err != nil {
		return Snapshot{}, errors.Join(SnapshotCorrupt, err)
	}
	if e.Format != snapshotFormat {
		return Snapshot{}, SnapshotVersion
	}
	if sum(e.Content) != e.SHA256 {
		return Snapshot{}, SnapshotCorrupt
	}
	var s Snapshot
	if err := json.Unmarshal(e.Content, &s); err != nil {
		return Snapshot{}, errors.Join(SnapshotCorrupt, err)
	}
	switch {
	case s.Cluster != want.Cluster || want.Cluster == "":
		return Snapshot{}, SnapshotOtherCluster
	case s.Namespace != want.Namespace || s.Service != want.Service:
		return Snapshot{}, SnapshotOtherService
	}
	return s, nil
}
