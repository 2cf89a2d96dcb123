package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// mistake is one thing wrong with a configuration file: where, what, and what
// to do about it.
type mistake struct {
	line int
	what string
	do   string
}

// maxMistakes is how many are printed: nobody reads more at once.
const maxMistakes = 100

// mistakes is every mistake of one file. As an error it prints one line each,
// in the order of the file: "file:line: what is wrong; what to do".
type mistakes struct {
	file string
	list []mistake
}

func (m *mistakes) add(line int, what, do string) {
	m.list = append(m.list, mistake{line: line, what: what, do: do})
}

// err is nil when nothing was added.
func (m *mistakes) err() error {
	if len(m.list) == 0 {
		return nil
	}
	slices.SortStableFunc(m.list, func(a, b mistake) int { return cmp.Compare(a.line, b.line) })
	return m
}

func (m *mistakes) Error() string {
	var lines []string
	for i, one := range m.list {
		if i == maxMistakes {
			lines = append(lines, fmt.Sprintf("%s: and %d more", m.file, len(m.list)-i))
			break
		}
		lines = append(lines, fmt.Sprintf("%s:%d: %s; %s", m.file, one.line, one.what, one.do))
	}
	return strings.Join(lines, "\n")
}

// nearest is the known word closest to word, or "" when none is close enough
// to be what was meant.
func nearest(word string, known []string) string {
	best, bestDistance := "", len(word)/2+1
	for _, k := range known {
		if d := editDistance(strings.ToLower(word), strings.ToLower(k)); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best
}

// editDistance counts the single-letter changes, insertions and deletions
// between a and b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
