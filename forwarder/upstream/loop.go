package upstream

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"sync"
	"time"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

// A server that forwards what it is asked to us, perhaps over others, would have
// a query go round until somebody gives up. So each target is asked for a name
// that nobody can guess; when this name is asked of us, the target leads back
// here, and is not asked for a while.
const (
	loopBarred = time.Minute      // until the next check,
	loopTime   = 20 * time.Second // which has this time to find out
	loopLabels = 2                // random labels before the zone
	loopLabel  = 16               // hex digits of each
)

// loopAfter is how long after the check of that number the next one is due. The
// first waits until our own listeners are up; later ones find what was
// configured elsewhere meanwhile.
func loopAfter(number int) time.Duration {
	switch number {
	case 0:
		return time.Second
	case 1:
		return 10 * time.Second
	}
	return 10 * time.Minute
}

// loops are the names on their way.
type loops struct {
	mu     sync.Mutex
	byName map[string]*target // one for each target
}

// newName is a fresh name below a zone for a check of t, in place of its last.
func (l *loops) newName(t *target, zone []byte, random func() uint64) []byte {
	var name []byte
	for range loopLabels {
		var raw [8]byte // two digits each
		binary.NativeEndian.PutUint64(raw[:], random())
		name = append(name, loopLabel)
		name = hex.AppendEncode(name, raw[:])
	}
	name = append(name, zone...)
	l.mu.Lock()
	defer l.mu.Unlock()
	for old, was := range l.byName {
		if was.score == t.score {
			delete(l.byName, old)
		}
	}
	if l.byName == nil {
		l.byName = map[string]*target{}
	}
	l.byName[string(name)] = t
	return name
}

func (l *loops) find(name []byte) *target {
	var buf [wire.MaxName]byte
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byName[string(wire.AppendFolded(buf[:0], name))]
}

// IsLoopName reports whether a name in wire form may be one that a group asks
// to find loops. It is quick, and false for nearly all others.
func IsLoopName(name []byte) bool {
	const second = 1 + loopLabel
	return len(name) > loopLabels*second && name[0] == loopLabel && name[second] == loopLabel
}

// Looped tells the group that a name in wire form was asked of us. If it is one
// that the group asks to find loops, the server that led back to us is returned,
// and is not asked any more until a check finds no loop. isNew is false when
// that was known.
func (g *Group) Looped(name []byte) (server netip.AddrPort, isNew, found bool) {
	if !IsLoopName(name) {
		return server, false, false
	}
	t := g.loops.find(name)
	if t == nil {
		return server, false, false
	}
	now := g.cfg.Now()
	isNew = t.score.barred(now) == 0
	t.score.barredUntil.Store(int64(now + loopBarred + loopTime))
	g.count.looped.Add(1)
	g.prober.wake()
	return t.addr, isNew, true
}

// loopQuery is the next check of t.
func (g *Group) loopQuery(t *target) wire.Query {
	zone, _ := wire.AppendName(nil, g.cfg.LoopZone)
	return queryFor(g.loops.newName(t, zone, g.cfg.Random), wire.TypeTXT)
}
