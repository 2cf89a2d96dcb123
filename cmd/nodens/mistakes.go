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
	file string // empty: the file that the list is about
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

// addIn is add for another file, one that was imported.
func (m *mistakes) addIn(file string, line int, what, do string) {
	if file == m.file {
		file = ""
	}
	m.list = append(m.list, mistake{file: file, line: line, what: what, do: do})
}

// err is nil when nothing was added.
func (m *mistakes) err() error {
	if len(m.list) == 0 {
		return nil
	}
	m.list = sortedMistakes(m.list)
	return m
}

// sortedMistakes tells each once: a snippet is read for every block that imports it.
func sortedMistakes(list []mistake) []mistake {
	slices.SortStableFunc(list, func(a, b mistake) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line))
	})
	told := map[mistake]bool{}
	return slices.DeleteFunc(list, func(m mistake) bool {
		again := told[m]
		told[m] = true
		return again
	})
}

// in is the mistake as one line. file is that of its list.
func (m mistake) in(file string) string {
	return fmt.Sprintf("%s:%d: %s; %s", cmp.Or(m.file, file), m.line, m.what, m.do)
}

func (m *mistakes) Error() string {
	var lines []string
	for i, one := range m.list {
		if i == maxMistakes {
			lines = append(lines, fmt.Sprintf("%s: and %d more", m.file, len(m.list)-i))
			break
		}
		lines = append(lines, one.in(m.file))
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
