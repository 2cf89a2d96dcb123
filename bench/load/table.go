package load

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// WriteTable writes the report as text for a terminal: a row per phase, the
// total, and whatever a reader must know before believing them.
func (r *Report) WriteTable(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s to %s for %v: %.0f sent/s, %.0f answered/s\n\n",
		r.mode(), r.Target, r.Sending.Round(time.Millisecond), r.Rate, r.Answers)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "phase\tsent\tright\tlate\twrong\ttruncated\tservfail\tlost\tp50 µs\tp90\tp99\tp99.9\tmax\t")
	for _, p := range r.Phases {
		writeRow(t, p.Name, p.Counts, p.Latency)
	}
	if len(r.Phases) > 1 {
		writeRow(t, "total", r.Total, r.Latency)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("load: format the table: %w", err)
	}
	r.writeRemarks(&b)
	_, err := io.WriteString(out, b.String())
	return err
}

func (r *Report) mode() string {
	if r.Outstanding > 0 {
		return fmt.Sprintf("closed loop, %d outstanding,", r.Outstanding)
	}
	return "open loop"
}

func writeRow(t io.Writer, name string, c Counts, l Percentiles) {
	fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t", name, c.Sent, c.Right, c.Late, c.Wrong, c.Truncated, c.ServFail, c.Lost)
	for _, d := range [...]time.Duration{l.P50, l.P90, l.P99, l.P999, l.Max} {
		fmt.Fprintf(t, "%.0f\t", float64(d)/float64(time.Microsecond))
	}
	fmt.Fprintln(t)
}

// writeRemarks writes what is not as it should be.
func (r *Report) writeRemarks(b *strings.Builder) {
	g := r.Generator
	fmt.Fprintf(b, "\ngenerator: %.0f %% busy, %.2f µs CPU per query, queries left %v late at most, %v at the 99th percentile\n",
		100*g.Busy, float64(g.CPU)/float64(time.Microsecond), g.Lag.Max.Round(time.Microsecond), g.Lag.P99.Round(time.Microsecond))
	if w := r.Total.WrongBy; r.Total.Wrong > 0 {
		fmt.Fprintf(b, "wrong by: format %d, question %d, case %d, rcode %d, records %d\n",
			w.Format, w.Question, w.Case, w.RCode, w.Records)
	}
	for _, c := range [...]struct {
		n    uint64
		what string
	}{
		{r.Total.Resent, "queries sent again, as a client's library does"},
		{r.Total.Followed, "truncated replies asked again over TCP"},
		{g.Unsent, "queries not sent"},
		{g.Stray, "replies too late or twice"},
		{g.Refused, "refusals by ICMP"},
		{g.Broken, "TCP connections broken"},
		{g.Overflow, "replies overflowed the generator's buffers"},
	} {
		if c.n > 0 {
			fmt.Fprintf(b, "%d %s\n", c.n, c.what)
		}
	}
	if g.Bottleneck != "" {
		fmt.Fprintf(b, "NOT THE SERVER'S NUMBERS: %s\n", g.Bottleneck)
	}
	for _, e := range r.Examples[:min(len(r.Examples), 3)] {
		fmt.Fprintf(b, "%s\n", e)
	}
}
