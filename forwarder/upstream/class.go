package upstream

import "github.com/nodens-dns/nodens/forwarder/wire"

// class says how a name is answered.
type class uint8

const (
	// fast names are in the servers' own memory: how these are answered says
	// how the servers are.
	fast class = iota
	// slow names have to be asked of others: whether and when they are answered
	// says as much of those.
	slow
	classCount = 2
)

// zoneSet are folded names in wire form.
type zoneSet map[string]struct{}

func newZoneSet(names []string) zoneSet {
	set := zoneSet{}
	for _, name := range names {
		if key, ok := wire.AppendName(nil, name); ok {
			set[string(wire.AppendFolded(nil, key))] = struct{}{}
		}
	}
	return set
}

// holds reports whether a name in wire form is in one of the zones.
func (s zoneSet) holds(name []byte) bool {
	var buf [wire.MaxName]byte
	folded := wire.AppendFolded(buf[:0], name)
	for {
		if _, ok := s[string(folded)]; ok {
			return true
		}
		if len(folded) <= 1 {
			return false
		}
		folded = folded[1+folded[0]:]
	}
}
