package wire_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/nodens-dns/nodens/forwarder/wire"
)

// padding is a record of an unknown type of the question's name that is n bytes long.
func padding(n int) []byte {
	return record(ask, 65280, 1, 60, strings.Repeat("x", n-12))
}

// shape is what is left of a reply: records per section, and TC.
type shape struct {
	an, ns, ar int
	tc         bool
}

func shapeOf(t testing.TB, msg []byte) shape {
	t.Helper()
	r, err := wire.ParseReply(msg)
	if err != nil {
		t.Fatal(err)
	}
	var rr wire.Record
	end := qEnd
	for c := r.Records(); c.Next(&rr); {
		end = rr.End
	}
	if end != len(msg) {
		t.Fatalf("the last record ends at %d of %d bytes", end, len(msg))
	}
	return shape{r.Count(wire.Answer), r.Count(wire.Authority), r.Count(wire.Additional), r.TC}
}

func TestFitSections(t *testing.T) {
	// Every record is 16 bytes; the question ends at 24.
	rec := func(n int) []byte { return bytes.Repeat(a(60), n) }
	full := func(an, ns, ar int) []byte {
		return answerTo(ra, uint16(an), uint16(ns), uint16(ar), rec(an+ns+ar))
	}
	tests := []struct {
		name  string
		msg   []byte
		limit int
		do    bool
		want  shape
	}{
		{"all fits exactly", full(2, 1, 1), qEnd + 64, true, shape{2, 1, 1, false}},
		{"additional goes first, without TC", full(2, 1, 1), qEnd + 63, true, shape{2, 1, 0, false}},
		{"additional goes as a whole", full(2, 1, 2), qEnd + 64, true, shape{2, 1, 0, false}},
		{"authority exact", full(2, 1, 1), qEnd + 48, true, shape{2, 1, 0, false}},
		{"authority next, no TC without DO", full(2, 1, 1), qEnd + 47, false, shape{2, 0, 0, false}},
		{"authority next, TC with DO", full(2, 1, 1), qEnd + 47, true, shape{2, 0, 0, true}},
		{"authority goes as a whole", full(2, 2, 1), qEnd + 48, false, shape{2, 0, 0, false}},
		{"authority that is the answer", full(0, 1, 0), qEnd + 15, false, shape{0, 0, 0, true}},
		{"additional without answers", full(0, 1, 1), qEnd + 31, false, shape{0, 1, 0, false}},
		{"answers exact", full(3, 1, 1), qEnd + 48, false, shape{3, 0, 0, false}},
		{"answers from the end", full(3, 1, 1), qEnd + 47, false, shape{2, 0, 0, true}},
		{"one answer", full(3, 1, 1), qEnd + 16, false, shape{1, 0, 0, true}},
		{"no answer", full(3, 1, 1), qEnd + 15, false, shape{0, 0, 0, true}},
		{"question alone", full(3, 1, 1), qEnd, false, shape{0, 0, 0, true}},
		{"additional alone", full(0, 0, 2), qEnd + 31, true, shape{0, 0, 0, false}},
		{
			"small additional does not take the place of authority",
			answerTo(ra, 1, 1, 1, a(60), padding(100), a(60)), qEnd + 40, false,
			shape{1, 0, 0, false},
		},
		{"nothing to cut", full(0, 0, 0), qEnd, false, shape{0, 0, 0, false}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := wire.Fit(bytes.Clone(tt.msg), tt.limit, tt.do)
			if len(got) > tt.limit {
				t.Errorf("%d bytes, limit %d", len(got), tt.limit)
			}
			if s := shapeOf(t, got); s != tt.want {
				t.Errorf("got %+v, want %+v", s, tt.want)
			}
			if !bytes.Equal(got[12:], tt.msg[12:len(got)]) {
				t.Error("bytes behind the header changed")
			}
		})
	}
}

func TestFitBoundaries(t *testing.T) {
	plain, edns := query("a.test", dns.TypeA), queryOPT("a.test", dns.TypeA, 1232, false)
	tests := []struct {
		name   string
		client []byte
		limit  int
		room   int // for the OPT
	}{
		{"512", plain, 512, 0},
		{"512 with OPT", edns, 512, wire.OPTLen},
		{"512 with OPT and EDE", edns, 512, wire.OPTLen + wire.EDELen},
		{"1232", plain, 1232, 0},
		{"1232 with OPT", edns, 1232, wire.OPTLen},
		{"1232 with OPT and EDE", edns, 1232, wire.OPTLen + wire.EDELen},
	}
	for _, tt := range tests {
		for over := -1; over <= 1; over++ {
			size := tt.limit + over - tt.room // before the OPT
			msg := answerTo(ra, 2, 0, 0, a(60), padding(size-qEnd-16))
			if len(msg) != size {
				t.Fatalf("built %d bytes, want %d", len(msg), size)
			}
			q, ede := sound(t, tt.client), wire.NoEDE
			if tt.room > wire.OPTLen {
				ede = wire.EDEStale
			}
			got := wire.Fit(msg, tt.limit-tt.room, false)
			got = wire.AppendOPT(got, 0, q, 1232, ede)
			want, answers := tt.limit+over, 2
			if over > 0 {
				want, answers = qEnd+16+tt.room, 1
			}
			m := parsed(t, got)
			if len(got) != want || len(m.Answer) != answers || m.Truncated != (over > 0) || (m.IsEdns0() != nil) != q.EDNS {
				t.Errorf("%s, reply of %+d: %d bytes, want %d; %d answers, TC %t, OPT %t",
					tt.name, over, len(got), want, len(m.Answer), m.Truncated, m.IsEdns0() != nil)
			}
		}
	}
}
