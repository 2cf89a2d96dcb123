package upstream

import (
	"hash/maphash"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

// hashQuestion is a hash of a message's first question, whose name is so long,
// letter case aside.
func (g *Group) hashQuestion(msg []byte, nameLen int) uint64 {
	var room [wire.MaxName + 4]byte
	name, rest := msg[wire.HeaderLen:][:nameLen], msg[wire.HeaderLen+nameLen:][:4]
	return maphash.Bytes(g.seed, append(wire.AppendFolded(room[:0], name), rest...))
}

// repeats reports whether a late reply repeats the question that it would be
// for: whoever only guesses port and ID must not speak for the target.
func (g *Group) repeats(msg []byte, was asked) bool {
	n := int(was.nameLen)
	return n > 0 && len(msg) >= wire.HeaderLen+n+4 && g.hashQuestion(msg, n) == was.question
}
