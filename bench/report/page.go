package report

import (
	"fmt"
	"html"
	"strings"
)

// sheet is the style of the page: dark on white, and the same on paper.
const sheet = `
body { font: 15px/1.45 system-ui, "Liberation Sans", "DejaVu Sans", sans-serif; color: #111; background: #fff; max-width: 1060px; margin: 24px auto; padding: 0 20px; }
h1 { font-size: 24px; margin: 0 0 4px; } h2 { font-size: 18px; margin: 34px 0 6px; } h3 { font-size: 15px; margin: 20px 0 4px; }
p { margin: 4px 0 10px; } .small { font-size: 13px; color: #333; } code { font-size: 13px; }
.doubt { border-left: 4px solid #a4133c; padding: 4px 10px; }
table { border-collapse: collapse; margin: 8px 0; font-size: 14px; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: 3px 9px; border-bottom: 1px solid #ccc; white-space: nowrap; }
th { white-space: normal; max-width: 80px; } td.bad { color: #a4133c; font-weight: 700; }
th { border-bottom: 2px solid #111; vertical-align: bottom; } th:first-child, td:first-child { text-align: left; }
td span { color: #444; font-size: 12px; display: block; }
svg { width: 100%; height: auto; display: block; margin: 4px 0 8px; font: 13px system-ui, "Liberation Sans", "DejaVu Sans", sans-serif; }
svg text { fill: #111; } svg .label { font-weight: 600; } svg .marktext { font-size: 12px; font-weight: 600; }
.grid { stroke: #ddd; stroke-width: 1; } .axis { stroke: #111; stroke-width: 1.2; } .mark { stroke: #555; stroke-width: 1; stroke-dasharray: 4 3; }
.curve { fill: none; stroke-width: 2; } .whisker { fill: none; stroke: #111; stroke-width: 1.4; }
@media print { body { margin: 0; max-width: none; font-size: 12px; } svg, table { break-inside: avoid; } h2 { break-after: avoid; } }
`

// HTML is the report as a page that needs nothing beside itself.
func (d *Document) HTML() string {
	p := &page{}
	title := "DNS servers compared"
	if d.Play != nil {
		title = d.Play.Server + ": " + d.Play.Scenario
	}
	p.printf("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>%s</title><style>%s</style></head><body>\n", esc(title), sheet)
	p.printf("<h1>%s</h1>\n<p class=\"small\">%s</p>\n", esc(title), esc(d.Machine.String()))
	if d.Play != nil && d.Play.Cut || d.Compare != nil && d.Compare.Cut {
		p.printf("<p class=\"doubt\">%s</p>\n", cutShort)
	}
	if d.Play != nil {
		p.play(d.Play)
	} else {
		p.compare(d.Compare)
	}
	p.printf("<h2>How it was measured</h2>\n<p><code>%s</code></p>\n", esc(d.Command))
	p.printf(`<p class="small">Open loop: queries leave by a schedule that the server cannot slow down, and latency counts from the moment a query was meant to leave. A query is lost if its one datagram has no reply within the timeout. CPU time is the kernel's account of the server's process. Numbers differ from machine to machine: quote ratios of one run.</p>` + "\n")
	p.printf("</body></html>\n")
	return p.b.String()
}

// page is a page being written.
type page struct{ b strings.Builder }

func (p *page) printf(format string, args ...any) { fmt.Fprintf(&p.b, format, args...) }

func esc(s string) string { return html.EscapeString(s) }

// badMark before a cell's text says that the value is not as it should be.
const badMark = "\x00"

// table writes a table; the first column is of names. What follows a | in a cell
// stands small beneath.
func (p *page) table(head []string, rows [][]string) {
	p.printf("<table><tr>")
	for _, h := range head {
		p.printf("<th>%s</th>", esc(h))
	}
	p.printf("</tr>\n")
	for _, row := range rows {
		p.printf("<tr>")
		for _, cell := range row {
			cell, bad := strings.CutPrefix(cell, badMark)
			value, small, two := strings.Cut(cell, "|")
			if bad {
				p.printf("<td class=\"bad\">%s", esc(value))
			} else {
				p.printf("<td>%s", esc(value))
			}
			if two {
				p.printf("<span>%s</span>", esc(small))
			}
			p.printf("</td>")
		}
		p.printf("</tr>\n")
	}
	p.printf("</table>\n")
}
