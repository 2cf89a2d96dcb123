package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nodens-dns/nodens/bench/load"
	"github.com/nodens-dns/nodens/bench/play"
)

// Colours of what is not as it should be.
const (
	lostColour     = "#a4133c"
	servFailColour = "#d55e00"
	wrongColour    = "#7a3e8e"
	lateColour     = "#777777"
)

func (p *page) play(r *play.Result) {
	p.printf("<p>%s</p>\n<p class=\"small\">%s</p>\n", esc(r.Does), esc(strings.TrimSpace(r.Version)))
	if why := r.Load.Generator.Bottleneck; why != "" {
		p.printf("<p class=\"doubt\">Not the server's numbers: %s.</p>\n", esc(why))
	}
	if n := r.Load.Generator.Unsent; n > 0 {
		p.printf("<p class=\"doubt\">%d queries that were due were not sent. They are in no other number.</p>\n", n)
	}
	p.phases(r.Load)
	p.printf("<p class=\"small\">%s</p>\n", esc(r.Checked))
	p.costs(r)
	if len(r.Load.Seconds) > 0 {
		p.printf("<h2>Latency over time</h2>\n")
		p.events(r)
		p.printf("%s", latencyPlot(r))
		p.printf("<h2>Rate, and what was not right</h2>\n%s%s", ratePlot(r), badPlot(r))
	}
	if len(r.Load.CDF) > 1 {
		p.printf("<h2>Distribution of latency</h2>\n%s", cdfPlot([]named{distributionOf(r.Server, r.Load)}))
	}
	if len(r.Usage) > 1 {
		p.printf("<h2>The server's process</h2>\n%s", usagePlot(r))
	}
}

func (p *page) phases(r *load.Report) {
	head := []string{"phase", "sent", "right", "late", "wrong", "truncated", "SERVFAIL", "lost", "p50 µs", "p90", "p99", "p99.9", "max"}
	var rows [][]string
	row := func(name string, c load.Counts, l load.Percentiles) {
		cells := []string{name}
		for i, n := range []uint64{c.Sent, c.Right, c.Late, c.Wrong, c.Truncated, c.ServFail, c.Lost} {
			cell := strconv.FormatUint(n, 10)
			if i >= 2 && n > 0 {
				cell = badMark + cell
			}
			cells = append(cells, cell)
		}
		for _, v := range []float64{us(l.P50), us(l.P90), us(l.P99), us(l.P999), us(l.Max)} {
			cells = append(cells, fmt.Sprintf("%.0f", v))
		}
		rows = append(rows, cells)
	}
	for _, ph := range r.Phases {
		row(ph.Name, ph.Counts, ph.Latency)
	}
	if len(r.Phases) > 1 {
		row("total", r.Total, r.Latency)
	}
	p.table(head, rows)
}

func (p *page) costs(r *play.Result) {
	if r.Cost == nil {
		return
	}
	if text := notCounted(r); text != "" {
		p.printf("<p class=\"doubt\">%s.</p>\n", esc(text))
	}
	p.printf("<p>Server: <b>%s µs</b> CPU per query (%s user, %s system), %.2f cores busy, %.1f MB, %.2f context switches per query",
		number(us(r.CPU())), number(us(r.Cost.User)/float64(max(1, r.Load.Total.Sent))), number(us(r.Cost.System)/float64(max(1, r.Load.Total.Sent))),
		r.Cost.Cores(), float64(r.Cost.RSS)/1e6, r.Switches())
	if r.Allocations > 0 {
		p.printf(", %.2f allocations per query", r.AllocationsEach())
	}
	p.printf(". Generator: %s µs CPU per query, %.0f %% busy, 99 %% of queries left less than %v late.</p>\n",
		number(us(r.Load.Generator.CPU)), 100*r.Load.Generator.Busy, r.Load.Generator.Lag.P99.Round(time.Microsecond))
}

func (p *page) events(r *play.Result) {
	if len(r.Marks) == 0 {
		return
	}
	p.printf("<p class=\"small\">")
	for i, m := range r.Marks {
		p.printf("<b>%d</b> at %.1f s: %s<br>\n", i+1, m.At.Seconds(), esc(m.Does))
	}
	p.printf("</p>\n")
}

// timeAxis covers the seconds of a run.
func timeAxis(r *play.Result) axis {
	return axis{high: float64(max(1, len(r.Load.Seconds))), label: "time, s", text: plainText}
}

// marks draws the events by their numbers, and nothing for a run without.
func (p *plot) marks(r *play.Result) *plot {
	for i, m := range r.Marks {
		p.mark(m.At.Seconds(), strconv.Itoa(i+1))
	}
	return p
}

func latencyPlot(r *play.Result) string {
	curves := []struct {
		name string
		of   func(l load.Percentiles) float64
	}{
		{"median", func(l load.Percentiles) float64 { return us(l.P50) }},
		{"p90", func(l load.Percentiles) float64 { return us(l.P90) }},
		{"p99", func(l load.Percentiles) float64 { return us(l.P99) }},
		{"p99.9", func(l load.Percentiles) float64 { return us(l.P999) }},
	}
	low, high := 1e9, 1.0
	for _, s := range r.Load.Seconds {
		if s.Latency.P50 > 0 {
			low, high = min(low, us(s.Latency.P50)), max(high, us(s.Latency.P999))
		}
	}
	p := newPlot("latency over time", 360, 50, timeAxis(r), logarithmic(min(low, high), high, "latency", microText)).marks(r)
	for i, c := range curves {
		p.legend(styleOf(i), c.name)
		var run []point // a second without replies leaves a gap
		for _, s := range r.Load.Seconds {
			if s.Latency.P50 == 0 {
				p.curve(run, styleOf(i))
				run = nil
				continue
			}
			run = append(run, point{s.At.Seconds() + 0.5, c.of(s.Latency)})
		}
		p.curve(run, styleOf(i))
	}
	return p.svg()
}

func ratePlot(r *play.Result) string {
	high := 1.0
	for _, s := range r.Load.Seconds {
		high = max(high, float64(s.Counts.Sent))
	}
	p := newPlot("rate over time", 300, 50, timeAxis(r), linear(high, "queries/s", countText)).marks(r)
	p.legend(styleOf(0), "sent")
	p.legend(styleOf(2), "answered right within a second")
	p.legend(style{lostColour, ""}, "second with losses")
	var sent, right []point
	for _, s := range r.Load.Seconds {
		at := s.At.Seconds() + 0.5
		sent = append(sent, point{at, float64(s.Counts.Sent)})
		right = append(right, point{at, float64(s.Counts.Right)})
		if s.Counts.Lost > 0 {
			p.box(s.At.Seconds(), s.At.Seconds()+1, 0, p.y.high/50, lostColour)
		}
	}
	p.curve(sent, styleOf(0))
	p.curve(right, styleOf(2))
	return p.svg()
}

// badPlot is the queries of each second that did not end right.
func badPlot(r *play.Result) string {
	parts := func(c load.Counts) [4]uint64 {
		return [4]uint64{c.Lost, c.ServFail, c.Wrong + c.Truncated, c.Late}
	}
	high := uint64(0)
	for _, s := range r.Load.Seconds {
		high = max(high, s.Counts.Lost+s.Counts.ServFail+s.Counts.Wrong+s.Counts.Truncated+s.Counts.Late)
	}
	if high == 0 {
		return "<p>No query was lost, failed, wrong or late.</p>\n"
	}
	p := newPlot("not right", 240, 50, timeAxis(r), linear(float64(high), "queries/s", countText)).marks(r)
	colours := [4]string{lostColour, servFailColour, wrongColour, lateColour}
	for i, name := range [...]string{"lost", "SERVFAIL", "wrong or truncated", "late"} {
		p.swatch(colours[i], name)
	}
	for _, s := range r.Load.Seconds {
		base := 0.0
		for i, n := range parts(s.Counts) {
			if n > 0 {
				p.box(s.At.Seconds()+0.1, s.At.Seconds()+0.9, base, base+float64(n), colours[i])
			}
			base += float64(n)
		}
	}
	return p.svg()
}

// named is a distribution with its name, of the share of the queries that have a latency.
type named struct {
	name  string
	cdf   []load.Point
	share float64
}

func distributionOf(name string, r *load.Report) named {
	n := named{name: name, cdf: r.CDF}
	if r.Total.Sent > 0 {
		n.share = float64(r.Total.Right+r.Total.Late) / float64(r.Total.Sent)
	}
	return n
}

// cdfPlot draws distributions: how many of all queries were answered right how fast. What
// was lost is missing at the top.
func cdfPlot(all []named) string {
	low, high := 1e12, 1.0
	for _, n := range all {
		if len(n.cdf) > 0 {
			low, high = min(low, us(n.cdf[0].Latency)), max(high, us(quantile(n.cdf, 0.999)))
		}
	}
	y := axis{high: 1, label: "share of all queries", text: func(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) }}
	p := newPlot("distribution of latency", 340+20*float64(len(all)/6), 34+20*float64(len(all)/6), logarithmic(low, high, "latency at most (up to the 99.9th percentile)", microText), y)
	for i, n := range all {
		p.legendRow(i, n.name)
		points := []point{{low, 0}}
		for _, at := range n.cdf {
			if us(at.Latency) <= high {
				points = append(points, point{us(at.Latency), at.Share * n.share})
			}
		}
		p.curve(points, styleOf(i))
	}
	return p.svg()
}

func quantile(cdf []load.Point, q float64) time.Duration {
	for _, at := range cdf {
		if at.Share >= q {
			return at.Latency
		}
	}
	return cdf[len(cdf)-1].Latency
}

func usagePlot(r *play.Result) string {
	cores, rss := 0.0, 0.0
	for _, u := range r.Usage {
		cores, rss = max(cores, u.Cores), max(rss, float64(u.RSS)/1e6)
	}
	x := axis{high: max(float64(len(r.Load.Seconds)), r.Usage[len(r.Usage)-1].At.Seconds()), label: "time, s", text: plainText}
	var busy, memory []point
	for _, u := range r.Usage {
		busy = append(busy, point{u.At.Seconds(), u.Cores})
		memory = append(memory, point{u.At.Seconds(), float64(u.RSS) / 1e6})
	}
	p := newPlot("cores over time", 220, 34, x, linear(cores, "cores busy", plainText)).marks(r)
	p.curve(busy, styleOf(0))
	q := newPlot("memory over time", 220, 34, x, linear(rss, "memory, MB", plainText)).marks(r)
	q.curve(memory, styleOf(3))
	return p.svg() + q.svg()
}
