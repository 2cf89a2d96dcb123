package scenarios

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// mistake is one thing wrong with a file.
type mistake struct {
	line     int
	what, do string
}

// mistakes is everything wrong with one file; as an error, a line each.
type mistakes struct {
	file string
	list []mistake
}

func (m *mistakes) add(line int, what, do string) {
	m.list = append(m.list, mistake{line, what, do})
}

func (m *mistakes) err() error {
	if len(m.list) == 0 {
		return nil
	}
	slices.SortStableFunc(m.list, func(a, b mistake) int { return cmp.Compare(a.line, b.line) })
	return m
}

func (m *mistakes) Error() string {
	lines := make([]string, len(m.list))
	for i, one := range m.list {
		lines[i] = fmt.Sprintf("%s:%d: %s; %s", m.file, one.line, one.what, one.do)
	}
	return strings.Join(lines, "\n")
}
