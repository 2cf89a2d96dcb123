package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/nodens-dns/nodens/bench/compare"
	"github.com/nodens-dns/nodens/bench/play"
)

// Text is the report for a terminal.
func (d *Document) Text() string {
	var b strings.Builder
	if d.Compare != nil {
		textOfCompare(&b, d.Compare)
	} else {
		textOfPlay(&b, d.Play)
	}
	fmt.Fprintf(&b, "\n%v\n%s\n", d.Machine, d.Command)
	return b.String()
}

func textOfPlay(b *strings.Builder, r *play.Result) {
	fmt.Fprintf(b, "%s: %s\n", r.Scenario, r.Does)
	fmt.Fprintf(b, "server: %s (%s)\n", r.Server, strings.TrimSpace(r.Version))
	if r.Cut {
		b.WriteString(cutShort + "\n")
	}
	if r.Checked != "" {
		fmt.Fprintf(b, "%s\n", r.Checked)
	}
	_ = r.Load.WriteTable(b) // into memory: it cannot fail
	if r.Cost != nil {
		fmt.Fprintf(b, "server: %.2f µs CPU per query (user %.0f %%), %.2f cores busy, %.1f MB, %.2f context switches per query", us(r.CPU()),
			100*share(r.Cost.User.Seconds(), r.Cost.CPU().Seconds()), r.Cost.Cores(), float64(r.Cost.RSS)/1e6, r.Switches())
		if r.Allocations > 0 {
			fmt.Fprintf(b, ", %.2f allocations per query", r.AllocationsEach())
		}
		b.WriteString("\n")
	}
	if text := notCounted(r); text != "" {
		fmt.Fprintf(b, "%s\n", text)
	}
	for _, m := range r.Marks {
		fmt.Fprintf(b, "%6.1f s  %s\n", m.At.Seconds(), m.Does)
	}
	if len(r.Behind) > 0 {
		fmt.Fprintf(b, "queries to the servers behind, from the start on: %v\n", r.Behind)
	}
}

// notCounted says what the account of the server leaves out, "" if nothing.
func notCounted(r *play.Result) string {
	if r.Cost == nil || r.Children == 0 {
		return ""
	}
	return fmt.Sprintf("NOT ALL OF THE SERVER: %d processes that it started are not in its CPU time, memory and context switches", r.Children)
}

func share(part, of float64) float64 {
	if of == 0 {
		return 0
	}
	return part / of
}

// cutShort is said of a measurement that was told to end.
const cutShort = "CUT SHORT: it was told to end before its time, and this is what was measured until then."

func textOfCompare(b *strings.Builder, o *compare.Outcome) {
	if o.Cut {
		b.WriteString(cutShort + "\n\n")
	}
	fmt.Fprintf(b, "CPU time of the server per query in µs, and its ratio to %s: median (least-most); rounds: %d\n\n", o.Base, o.Rounds)
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "server")
	for _, p := range o.Points {
		fmt.Fprintf(t, "\t%s", p.Name)
	}
	fmt.Fprintln(t)
	for _, s := range o.Servers {
		fmt.Fprint(t, s.Name)
		for _, p := range o.Points {
			fmt.Fprint(t, "\t"+cpuCell(o, s.Name, p.Name))
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush() // into memory: it cannot fail
	for _, p := range o.Points {
		fmt.Fprintf(b, "\n%s: %s\n", p.Name, p.Text)
		pointTable(b, o, p.Name)
	}
	remarks(b, o)
}

func cpuCell(o *compare.Outcome, server, point string) string {
	s, ok := o.Spread(server, point, compare.CPU())
	if !ok {
		return "-"
	}
	ratio := "-"
	if r, ok := o.Ratio(server, point, compare.CPU()); ok {
		ratio = fmt.Sprintf("%.2fx", r.Median)
	}
	if s.Rounds < 2 {
		return number(s.Median) + " " + ratio
	}
	return fmt.Sprintf("%s (%s-%s) %s", number(s.Median), number(s.Min), number(s.Max), ratio)
}

// number has three significant digits, as a measurement deserves.
func number(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 0.995:
		return fmt.Sprintf("%.3f", v)
	case v < 9.995:
		return fmt.Sprintf("%.2f", v)
	case v < 99.95:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

func pointTable(w io.Writer, o *compare.Outcome, point string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "server\t")
	for _, m := range compare.Metrics() {
		fmt.Fprintf(t, "%s\t", m.Name)
	}
	fmt.Fprintln(t)
	for _, s := range o.Servers {
		fmt.Fprintf(t, "%s\t", s.Name)
		for _, m := range compare.Metrics() {
			if v, ok := o.Spread(s.Name, point, m); ok {
				fmt.Fprintf(t, "%s\t", number(v.Median))
			} else {
				fmt.Fprint(t, "-\t")
			}
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush()
}

// remarks says what a reader must know before believing the numbers.
func remarks(b *strings.Builder, o *compare.Outcome) {
	b.WriteString("\n")
	for _, s := range o.Servers {
		fmt.Fprintf(b, "%s: %s\n", s.Name, s.Text)
	}
	for _, s := range o.Skipped {
		fmt.Fprintf(b, "skipped %s: %s\n", s.Name, s.Why)
	}
	for _, text := range doubts(o) {
		fmt.Fprintf(b, "%s\n", text)
	}
}

// doubts lists the cells in which the generator was the limit.
func doubts(o *compare.Outcome) []string {
	why := map[string]int{}
	for _, c := range o.Cells {
		if text := c.Result.Load.Generator.Bottleneck; text != "" {
			why[fmt.Sprintf("%s at %s: not the server's limit: %s", c.Server, c.Point, text)]++
		}
	}
	var all []string
	for text, rounds := range why {
		all = append(all, fmt.Sprintf("%s (%d of %d rounds)", text, rounds, o.Rounds))
	}
	slices.Sort(all)
	return all
}
