package proof

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/nodens-dns/nodens/bench/load"
	"github.com/nodens-dns/nodens/bench/machine"
	"github.com/nodens-dns/nodens/bench/space"
)

// figures are the rows of the table that a full run prints.
var figures struct {
	sync.Mutex
	rows []string
}

// figure keeps a row: what happened, on which ground, the counts of all
// queries, the latency of misses, and whatever else belongs to the row.
func figure(event, on string, trs []*traffic, format string, args ...any) {
	var c load.Counts
	var worst load.Percentiles
	for _, tr := range trs {
		addCounts(&c, tr.total())
		l := tr.misses().Latency
		worst.P50, worst.P99, worst.P999 = max(worst.P50, l.P50), max(worst.P99, l.P99), max(worst.P999, l.P999)
	}
	figures.Lock()
	defer figures.Unlock()
	figures.rows = append(figures.rows, fmt.Sprintf("| %s | %s | %d | %d | %d | %d | %d | %s, %s, %s | %s |", event, on,
		c.Sent, c.Lost, c.ServFail, c.Wrong, c.Late, ms(worst.P50), ms(worst.P99), ms(worst.P999), fmt.Sprintf(format, args...)))
}

// tellFigures prints the table of a full run, and writes it to the file that
// NODENS_FIGURES names, with the machine it ran on.
func tellFigures(on machine.Machine) error {
	figures.Lock()
	defer figures.Unlock()
	if len(figures.rows) == 0 {
		return nil
	}
	table := figureHead + strings.Join(figures.rows, "\n") + "\n"
	if space.Full() {
		fmt.Print("\n", table)
	}
	path := os.Getenv("NODENS_FIGURES")
	if path == "" {
		return nil
	}
	text := fmt.Sprintf("# What happens to a cluster under load\n\nThe rows of bench/proof, %s. %v.\n\n%s",
		space.Form("in the short form", "at full length"), on, table)
	return os.WriteFile(path, []byte(text), 0o644)
}

const figureHead = `| event | on | sent | lost | SERVFAIL | wrong | late | misses p50, p99, p99.9 (ms) | beside |
|---|---|---|---|---|---|---|---|---|
`

// ms is a time in milliseconds, without the unit.
func ms(d time.Duration) string {
	if d < 10*time.Millisecond {
		return fmt.Sprintf("%.2f", d.Seconds()*1000)
	}
	return fmt.Sprintf("%.0f", d.Seconds()*1000)
}
