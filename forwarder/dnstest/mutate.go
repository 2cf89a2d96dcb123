package dnstest

import (
	"bytes"
	"math/rand/v2"
	"slices"
)

// Mutate is a copy of a packet with one to four changes, each a byte set, a
// count or length made great, a stretch cut out or said twice, or the end cut
// off. It has at most most bytes.
func Mutate(rnd *rand.Rand, packet []byte, most int) []byte {
	p := bytes.Clone(packet[:min(len(packet), most)])
	for range 1 + rnd.IntN(4) {
		if len(p) == 0 {
			break
		}
		at := rnd.IntN(len(p))
		end := min(len(p), at+1+rnd.IntN(32))
		switch rnd.IntN(16) {
		case 0:
			p[at] = 0xff
		case 1:
			p = slices.Delete(p, at, end)
		case 2:
			p = slices.Insert(p, at, bytes.Clone(p[at:end])...)
		case 3:
			p = p[:at]
		case 4:
			p[at] ^= 1 << rnd.IntN(8)
		default:
			p[at] = byte(rnd.Uint32())
		}
	}
	return p[:min(len(p), most)]
}
