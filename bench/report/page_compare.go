package report

import (
	"fmt"

	"github.com/nodens-dns/nodens/bench/compare"
)

func (p *page) compare(o *compare.Outcome) {
	p.printf("<p>The same load against each server, one at a time; rounds: %d, in a different order each. Medians; the least and the most beneath; × is the ratio to %s in the same round.</p>\n", o.Rounds, esc(o.Base))
	p.printf("<h2>CPU time of the server per query, µs</h2>\n")
	p.mainTable(o)
	for _, point := range o.Points {
		p.point(o, point)
	}
	p.printf("<h2>Servers</h2>\n<p class=\"small\">")
	for _, s := range o.Servers {
		p.printf("%s: %s<br>\n", esc(s.Name), esc(s.Text))
	}
	for _, s := range o.Skipped {
		p.printf("not measured: %s (%s)<br>\n", esc(s.Name), esc(s.Why))
	}
	p.printf("</p>\n")
	for _, text := range doubts(o) {
		p.printf("<p class=\"doubt small\">%s</p>\n", esc(text))
	}
}

func (p *page) mainTable(o *compare.Outcome) {
	head := []string{"server"}
	for _, point := range o.Points {
		head = append(head, point.Name)
	}
	var rows [][]string
	for _, s := range o.Servers {
		row := []string{s.Name}
		for _, point := range o.Points {
			row = append(row, htmlCell(o, s.Name, point.Name))
		}
		rows = append(rows, row)
	}
	p.table(head, rows)
}

func htmlCell(o *compare.Outcome, server, point string) string {
	s, ok := o.Spread(server, point, compare.CPU())
	if !ok {
		return "–"
	}
	text := number(s.Median)
	if r, ok := o.Ratio(server, point, compare.CPU()); ok {
		text += fmt.Sprintf("  ×%.2f", r.Median)
	}
	if s.Rounds < 2 {
		return text
	}
	return fmt.Sprintf("%s|%s to %s", text, number(s.Min), number(s.Max))
}

// point writes all about one thing that was measured.
func (p *page) point(o *compare.Outcome, about compare.About) {
	p.printf("<h2>%s</h2>\n<p>%s</p>\n", esc(about.Name), esc(about.Text))
	p.printf("%s", barsOf("CPU time per query", "CPU time of the server per query, µs", [2]string{"user", "system"}, cpuBars(o, about.Name)))
	var rows [][]string
	head := []string{"server"}
	for _, m := range compare.Metrics() {
		head = append(head, m.Name)
	}
	var all []named
	for _, s := range o.Servers {
		row := []string{s.Name}
		for _, m := range compare.Metrics() {
			cell := "–"
			if v, ok := o.Spread(s.Name, about.Name, m); ok {
				cell = number(v.Median)
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
		if r := o.Typical(s.Name, about.Name); r != nil {
			all = append(all, distributionOf(s.Name, r.Load))
		}
	}
	p.table(head, rows)
	p.printf("<h3>Distribution of latency</h3>\n%s", cdfPlot(all))
}

func cpuBars(o *compare.Outcome, point string) []bar {
	metrics := compare.Metrics()
	var bars []bar
	for _, s := range o.Servers {
		cpu, ok := o.Spread(s.Name, point, compare.CPU())
		if !ok {
			continue
		}
		// The parts have medians of their own; scaled, they add up to the whole.
		user, _ := o.Spread(s.Name, point, metrics[1])
		system, _ := o.Spread(s.Name, point, metrics[2])
		part := share(user.Median, user.Median+system.Median)
		text := number(cpu.Median) + " µs"
		if r, ok := o.Ratio(s.Name, point, compare.CPU()); ok && s.Name != o.Base {
			text += fmt.Sprintf(", %.2f of %s", r.Median, o.Base)
		}
		bars = append(bars, bar{s.Name, cpu.Median * part, cpu.Median * (1 - part), cpu.Min, cpu.Max, text})
	}
	return bars
}
