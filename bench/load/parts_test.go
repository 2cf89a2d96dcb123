package load

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/nodens-dns/nodens/bench/names"
)

func TestSchedule(t *testing.T) {
	for name, c := range map[string]struct {
		stages []Stage
		want   []int // queries in each 100 ms
	}{
		"steady":          {[]Stage{Steady("", 100, 300*time.Millisecond)}, []int{10, 10, 10}},
		"rise from none":  {[]Stage{{For: 400 * time.Millisecond, To: 400}}, []int{5, 15, 25, 35}},
		"fall to none":    {[]Stage{{For: 400 * time.Millisecond, From: 400}}, []int{35, 25, 15, 5}},
		"pause":           {[]Stage{Steady("", 100, 100*time.Millisecond), {For: 200 * time.Millisecond}, Steady("", 50, 200*time.Millisecond)}, []int{10, 0, 0, 5, 5}},
		"nothing at all":  {[]Stage{{For: time.Second}}, nil},
		"slower than one": {[]Stage{Steady("", 0.5, 4*time.Second)}, append(make([]int, 9), 0, 1)},
	} {
		for _, workers := range []int{1, 3} {
			got := make([]int, 100)
			for i := range workers {
				for s := newSchedule(c.stages, i, workers); ; s.step(1) {
					due, ok := s.due()
					if !ok {
						break
					}
					got[due/(100*time.Millisecond)]++
				}
			}
			for i, want := range c.want {
				if math.Abs(float64(got[i]-want)) > 1 {
					t.Errorf("%s, %d workers: %v, want %v", name, workers, got[:len(c.want)], c.want)
					break
				}
			}
			if len(c.want) == 0 && slices.Max(got) > 0 {
				t.Errorf("%s: %v, want none", name, got)
			}
		}
	}
}

func TestEndlessSchedule(t *testing.T) {
	s := newSchedule([]Stage{Steady("", 1000, 0)}, 0, 1)
	s.step(1e6)
	if due, ok := s.due(); !ok || due.Round(time.Second) != 1000*time.Second {
		t.Errorf("query 1 000 000 is due at %v, %v", due, ok)
	}
	s = newSchedule([]Stage{{}}, 0, 1)
	if due, ok := s.due(); !ok || due != math.MaxInt64 {
		t.Errorf("an endless stage without rate is due at %v, %v", due, ok)
	}
}

// The table of queries in flight against a plain list.
func TestPendingAgainstList(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, size := range []int{1, 2, 64, 65536} {
		p := newPending(size)
		var list []int32
		ids := map[uint16]bool{}
		for range 20_000 {
			switch {
			case rng.IntN(2) == 0:
				i := p.open()
				if (i < 0) != (len(list) == size) {
					t.Fatalf("size %d: open gives %d with %d in flight", size, i, len(list))
				}
				if i >= 0 {
					if id := p.slots[i].id; ids[id] || p.find(id) != i {
						t.Fatalf("size %d: ID %d is in flight already, or not found", size, id)
					}
					ids[p.slots[i].id] = true
					list = append(list, i)
				}
			case len(list) > 0:
				at := rng.IntN(len(list))
				id := p.slots[list[at]].id
				p.done(list[at])
				delete(ids, id)
				list = slices.Delete(list, at, at+1)
				if p.find(id) >= 0 {
					t.Fatalf("size %d: ID %d is found after its end", size, id)
				}
			}
			if first := p.first; len(list) > 0 && first != list[0] || len(list) == 0 && first != -1 {
				t.Fatalf("size %d: oldest is %d, list is %v", size, first, list)
			}
		}
	}
}

func FuzzJudge(f *testing.F) {
	j := newJudge()
	q := names.Query{Question: []byte("\x01a\x00\x00\x01\x00\x01")}
	f.Add([]byte("\x00\x01\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00\x01a\x00\x00\x01\x00\x01\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x1e\x00\x04\x0a\x60\x00\x01"))
	f.Fuzz(func(_ *testing.T, msg []byte) {
		w := j.expect(&q)
		j.of(msg, &w)
	})
}

func BenchmarkJudge(b *testing.B) {
	j := newJudge()
	q := names.Query{Question: []byte("\x0acart-api-0\x0bcart-team-0\x03svc\x07cluster\x05local\x00\x00\x01\x00\x01")}
	msg := append([]byte("\x00\x01\x81\x80\x00\x01\x00\x00\x00\x00\x00\x00"), q.Question...)
	for b.Loop() {
		w := j.expect(&q)
		if j.of(msg, &w) != right {
			b.Fatal("not right")
		}
	}
}
