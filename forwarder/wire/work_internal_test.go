package wire

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
)

// mostSteps is the bound on the work for one message: what is allowed, and the
// stretch of a name that was begun.
const mostSteps = MaxExpansion + MaxName/2 + 1

// steps parses msg as a query and as a reply and returns how many labels and
// pointers either looked at.
func steps(msg []byte) (asQuery, asReply int) {
	if len(msg) < HeaderLen {
		return 0, 0
	}
	q := Query{msg: msg}
	walk := nameWalk{msg: msg}
	if q.parseQuestion() {
		q.parseRecords(&walk)
		asQuery = walk.expanded
	}
	if end := plainNameEnd(msg, HeaderLen); end != 0 && end+4 <= len(msg) && len(msg) <= MaxMessage {
		var solid bitmap
		walk = nameWalk{msg: msg, solid: &solid}
		r := Reply{Msg: msg, qEnd: end + 4, end: end + 4}
		_ = r.checkRecords(&walk) // the work is the same, whatever is found
		asReply = walk.expanded
	}
	return asQuery, asReply
}

// bombs are replies of 64 KiB whose names are as much work as can be.
func bombs() map[string][]byte {
	head := append([]byte("\x00\x00\x80\x00\x00\x01\xff\xff\x00\x00\x00\x00"), 0, 0, 1, 0, 1)
	return map[string][]byte{
		"labels":   bomb(head, append(bytes.Repeat([]byte("\x01a"), 126), 0), 1),
		"pointers": bomb(head, []byte{0}, 126),
		"both":     bomb(head, append(bytes.Repeat([]byte("\x01a"), 2), 0), 124),
		"honest":   bomb(head, []byte("\x03svc\x02ns\x03svc\x07cluster\x05local\x00"), 1),
	}
}

// bomb is head, a first record with a name in opaque data and behind it a chain
// of pointers, and then as many records as fit, each with a pointer to the last.
func bomb(head, name []byte, chain int) []byte {
	fixed := func(msg []byte, size int) []byte {
		return append16(append(msg, 0xFF, 0, 0, 1, 0, 0, 0, 1), uint16(size))
	}
	msg := fixed(append(slices.Clone(head), 0), len(name)+2*(chain-1))
	at := len(msg)
	msg = append(msg, name...)
	for range chain - 1 {
		next := len(msg)
		msg = append16(msg, uint16(0xC000|at))
		at = next
	}
	records := 1
	for ; len(msg)+12 <= MaxMessage; records++ {
		msg = fixed(append16(msg, uint16(0xC000|at)), 0)
	}
	binary.BigEndian.PutUint16(msg[offANCount:], uint16(records))
	return msg
}

func TestWork(t *testing.T) {
	for what, msg := range bombs() {
		_, n := steps(msg)
		_, err := ParseReply(msg)
		t.Logf("%s: %d bytes, %d steps, %v", what, len(msg), n, err)
		if n > mostSteps {
			t.Errorf("%s: %d steps, at most %d", what, n, mostSteps)
		}
		if honest := what == "honest"; honest != (err == nil) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestMutatedWork counts the steps for the bombs with bytes changed, and for what
// a client may send.
func TestMutatedWork(t *testing.T) {
	rounds, _ := strconv.Atoi(os.Getenv("NODENS_PACKETS"))
	rnd, most := rand.New(rand.NewPCG(5, 6)), 0
	all := bombs()
	kinds := slices.Sorted(maps.Keys(all))
	for i := range max(rounds, 5_000) {
		msg := bytes.Clone(all[kinds[i%len(kinds)]])
		if i%64 != 0 { // most packets of clients are short
			msg = msg[:512+rnd.IntN(1024)]
		}
		for range 1 + rnd.IntN(8) {
			msg[rnd.IntN(min(len(msg), 1024))] = byte(rnd.Uint32())
		}
		q, r := steps(msg)
		if most = max(most, q, r); most > mostSteps {
			t.Fatalf("%d and %d steps, at most %d, for % x", q, r, mostSteps, msg)
		}
	}
	t.Logf("at most %d steps", most)
}

// FuzzWork looks for a message that is more work than allowed.
func FuzzWork(f *testing.F) {
	for _, msg := range bombs() {
		f.Add(msg[:2048], uint16(200))
	}
	f.Fuzz(func(t *testing.T, msg []byte, again uint16) {
		// What stands at the end once can stand there many times.
		const piece = 24
		if len(msg) > piece {
			msg = append(bytes.Clone(msg), bytes.Repeat(msg[len(msg)-piece:], int(again)%2700)...)
		}
		if q, r := steps(msg); q > mostSteps || r > mostSteps {
			t.Fatalf("%d and %d steps, at most %d", q, r, mostSteps)
		}
	})
}

func BenchmarkWorst(b *testing.B) {
	for what, msg := range bombs() {
		b.Run(what, func(b *testing.B) {
			for b.Loop() {
				_, _ = ParseReply(msg)
			}
		})
	}
}
