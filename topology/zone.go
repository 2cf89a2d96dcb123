package topology

import "strings"

// ZoneFrom says who told the zone of this node.
type ZoneFrom uint8

// Those who may tell it, the most trusted first.
const (
	ZoneUnknown      ZoneFrom = iota // nobody: there is no tier of the same zone
	ZoneFromSettings                 // Config.Self or Relocate
	ZoneFromEndpoint                 // an endpoint on this node
	ZoneFromNode                     // the Node object
	ZoneFromSnapshot                 // the snapshot on disk
)

// String returns the word used in status pages and metrics.
func (z ZoneFrom) String() string {
	switch z {
	case ZoneFromSettings:
		return "settings"
	case ZoneFromEndpoint:
		return "endpoint"
	case ZoneFromNode:
		return "node"
	case ZoneFromSnapshot:
		return "snapshot"
	default:
		return "unknown"
	}
}

// where is Self with the best known zone, and who told it. The lock is held.
func (w *Watcher) where() (Self, ZoneFrom) {
	self := w.self
	for _, told := range []struct {
		zone string
		from ZoneFrom
	}{
		{self.Zone, ZoneFromSettings},
		{w.seenZone, ZoneFromEndpoint},
		{w.nodeZone, ZoneFromNode},
		{w.savedZone, ZoneFromSnapshot},
	} {
		if told.zone != "" {
			self.Zone = told.zone
			return self, told.from
		}
	}
	return self, ZoneUnknown
}

// ZoneLabel is the label that names the zone of a Node, and of a pod where the
// cluster copies it (KEP-4742).
const ZoneLabel = "topology.kubernetes.io/zone"

// ZoneOfLabels reads the zone from a file of the downward API with
// metadata.labels: a line key="value" for each. It returns "" if there is none.
func ZoneOfLabels(file string) string {
	for line := range strings.Lines(file) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if ok && key == ZoneLabel {
			// A label value has no character that would be escaped.
			return strings.Trim(value, `"`)
		}
	}
	return ""
}
