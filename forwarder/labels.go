package forwarder

import (
	"hash/maphash"
	"sync/atomic"
)

// labelKind is what a label was seen as.
type labelKind uint8

const (
	isNamespace labelKind = iota // before svc
	isHost                       // before a namespace: a Service
	isOutside                    // the end of a name outside the cluster
	isEnd                        // the end of a name that a client put its search list to
	labelKinds
)

// labels remembers what labels were seen as, as well as its room allows: a label
// may be forgotten for another. What hangs on it is only which names are asked for
// ahead.
type labels struct {
	seed  maphash.Seed
	slots [labelKinds][2048]atomic.Uint32
}

// places gives the two places of a label, and what stands there for it.
func (l *labels) places(kind labelKind, label []byte) (a, b *atomic.Uint32, mark uint32) {
	hash := maphash.Bytes(l.seed, label)
	room := &l.slots[kind]
	return &room[hash%uint64(len(room))], &room[hash>>16%uint64(len(room))], uint32(hash>>32) | 1
}

func (l *labels) add(kind labelKind, label []byte) {
	a, b, mark := l.places(kind, label)
	switch inA, inB := a.Load(), b.Load(); {
	case inA == mark, inB == mark: // not written for every answer
	case inA != 0 && inB == 0:
		b.Store(mark)
	default:
		a.Store(mark)
	}
}

// has also knows the ends that most names outside have.
func (l *labels) has(kind labelKind, label []byte) bool {
	switch string(label) {
	case "com", "net", "org":
		if kind == isOutside {
			return true
		}
	}
	a, b, mark := l.places(kind, label)
	return a.Load() == mark || b.Load() == mark
}
