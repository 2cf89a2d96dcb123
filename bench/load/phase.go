package load

import (
	"slices"
	"time"
)

// maxPhases bounds the phases of a run; further marks are part of the last.
const maxPhases = 256

// phase is a named part of a run; a query belongs to the phase in which it was
// meant to be sent. Each worker has a score of its own.
type phase struct {
	id     uint16
	name   string
	start  time.Duration
	scores []*score
}

// book is the phases of a run. It never changes: a mark makes a new one.
type book struct {
	byID    []*phase
	byStart []*phase
}

// with gives a book that has one more phase.
func (b *book) with(name string, start time.Duration, workers int) *book {
	p := &phase{id: uint16(len(b.byID)), name: name, start: start}
	for range workers {
		p.scores = append(p.scores, newScore(3))
	}
	next := &book{byID: append(slices.Clone(b.byID), p), byStart: append(slices.Clone(b.byStart), p)}
	slices.SortStableFunc(next.byStart, func(x, y *phase) int { return int(x.start - y.start) })
	return next
}

// at gives the phase that t is in. The first starts at 0, and the last is the
// likeliest.
func (b *book) at(t time.Duration) *phase {
	i := len(b.byStart) - 1
	for i > 0 && b.byStart[i].start > t {
		i--
	}
	return b.byStart[i]
}

// newBook has a phase for every named stage, and one called "run" if the first
// has no name.
func newBook(stages []Stage, workers int) *book {
	b := &book{}
	var start time.Duration
	for i, s := range stages {
		name := s.Name
		if i == 0 && name == "" {
			name = "run"
		}
		if name != "" {
			b = b.with(name, start, workers)
		}
		start += s.For
	}
	return b
}
