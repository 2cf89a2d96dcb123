package neverdark

import (
	"fmt"
	"sync"

	"github.com/nodens-dns/nodens/bench/space"
)

// figures are the rows of the table that a full run prints.
var figures struct {
	sync.Mutex
	rows []string
}

// figure keeps a row: what happened, what became of the queries, and what else is to
// be known.
func (tr *traffic) figure(event, format string, args ...any) {
	c := tr.counts("", "")
	row := fmt.Sprintf("| %s | %d | %d | %d | %d | %d | %s; %s |", event, c.Sent, c.Lost, c.ServFail, c.Wrong, c.Late,
		fmt.Sprintf(format, args...), tr.remarks())
	tr.n.t.Log(row)
	keepRow(row)
}

// keep keeps a row without counts.
func keep(event, format string, args ...any) {
	keepRow(fmt.Sprintf("| %s | | | | | | %s |", event, fmt.Sprintf(format, args...)))
}

func keepRow(row string) {
	figures.Lock()
	defer figures.Unlock()
	figures.rows = append(figures.rows, row)
}

// printFigures prints the table of a full run.
func printFigures() {
	figures.Lock()
	defer figures.Unlock()
	if !space.Full() || len(figures.rows) == 0 {
		return
	}
	fmt.Println("\n| event | sent | lost | SERVFAIL | wrong | late | beside |")
	fmt.Println("|---|---|---|---|---|---|---|")
	for _, row := range figures.rows {
		fmt.Println(row)
	}
}
