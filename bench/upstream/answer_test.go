package upstream

import (
	"testing"

	"github.com/nodens-dns/nodens/bench/names"
)

func newAnswerer(tb testing.TB) (answerer, *names.Mix) {
	mix, err := names.NewMix(names.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	return answerer{mix.Zone()}, mix
}

func TestReplyAllocatesNothing(t *testing.T) {
	a, mix := newAnswerer(t)
	stream := mix.Stream(1)
	query, out := make([]byte, 0, 512), make([]byte, 0, 4096)
	for what := asItIs; what <= garbage; what++ {
		n := testing.AllocsPerRun(1000, func() {
			q := stream.Next()
			query = append(query[:0], "\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x01"...)
			query = append(append(query, q.Question...), "\x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x00"...)
			if reply, _ := a.reply(out, query, what); reply == nil {
				t.Fatal("no reply")
			}
		})
		if n != 0 {
			t.Errorf("spoil %d: %v allocations, want 0", what, n)
		}
	}
}

// Nothing that comes from the network may panic or be answered if it is a reply.
func FuzzReply(f *testing.F) {
	a, _ := newAnswerer(f)
	f.Add([]byte("\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x01\x04cart\x00\x00\x01\x00\x01\x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\xc0\x0c\x00\x01\x00\x01"))
	f.Fuzz(func(t *testing.T, query []byte) {
		for what := asItIs; what <= garbage; what++ {
			reply, _ := a.reply(make([]byte, 0, 4096), query, what)
			if reply != nil && (len(query) < headerSize || query[2]&flagsQR != 0 || reply[0] != query[0] || reply[1] != query[1]) {
				t.Fatalf("%x is answered with %x", query, reply)
			}
			if len(reply) > 512 {
				t.Fatalf("%x is answered with %d octets", query, len(reply))
			}
		}
	})
}

func BenchmarkReply(b *testing.B) {
	a, mix := newAnswerer(b)
	q := mix.Stream(1).Next()
	query := append([]byte("\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"), q.Question...)
	out := make([]byte, 0, 4096)
	for b.Loop() {
		a.reply(out, query, asItIs)
	}
}
