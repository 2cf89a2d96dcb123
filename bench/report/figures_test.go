package report_test

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nodens-dns/nodens/bench/compare"
	"github.com/nodens-dns/nodens/bench/report"
)

// cited is a part of a document, and the reports that it links to, the one that its table is
// of first.
type cited struct {
	text    string
	reports []*compare.Outcome
}

// cite reads a document, or one section of it.
func cite(t *testing.T, path, section string) cited {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c := cited{text: string(data)}
	if section != "" {
		_, c.text, _ = strings.Cut(c.text, "\n## "+section+"\n")
		c.text, _, _ = strings.Cut(c.text, "\n## ")
	}
	for _, m := range regexp.MustCompile(`\(([^()\s]*bench/results/[^()\s]*/report)\.txt\)`).FindAllStringSubmatch(c.text, -1) {
		document, err := report.Read(filepath.Join(filepath.Dir(path), m[1]+".json"))
		if err != nil {
			t.Fatal(err)
		}
		c.reports = append(c.reports, document.Compare)
	}
	if len(c.reports) == 0 {
		t.Fatalf("%s links to no report", path)
	}
	return c
}

// table is the rows of the table whose first column has this name, as cells, with the head.
func (c cited) table(t *testing.T, first string) [][]string {
	t.Helper()
	_, body, found := strings.Cut(c.text, "\n| "+first+" |")
	body, _, _ = strings.Cut("| "+first+" |"+body, "\n\n")
	var rows [][]string
	for line := range strings.Lines(body) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if !strings.HasPrefix(cells[0], "---") {
			rows = append(rows, cells)
		}
	}
	if !found || len(rows) < 4 {
		t.Fatalf("the table with %q has %d rows", first, len(rows))
	}
	return rows
}

// pointOf is the point of the report that a document calls so.
func pointOf(t *testing.T, name string) string {
	t.Helper()
	point := map[string]string{
		"hits, 2 000/s": "2k", "hits, 10 000/s": "10k", "hits, 50 000/s": "50k", "hits, saturated": "saturated", "3 in 10 misses, 5 000/s": "mixed",
	}[name]
	if point == "" {
		t.Fatalf("%q is no point of the report: give it its name here", name)
	}
	return point
}

// serverOf is the server of the report that a row is about. A version in the row is the
// server's.
func serverOf(t *testing.T, o *compare.Outcome, row string) string {
	t.Helper()
	for _, s := range []struct{ called, name string }{
		{"nodens", "nodens"},
		{"plain Go reflector", "reflector"},
		{"CoreDNS", "coredns"},
		{"the same without the two", "coredns-bare"},
		{"unbound", "unbound"},
		{"PowerDNS Recursor", "pdns-recursor"},
		{"dnsdist", "dnsdist"},
		{"dnsmasq", "dnsmasq"},
		{"Knot Resolver", "knot-resolver"},
		{"node-cache", "node-cache"},
	} {
		if !strings.HasPrefix(row, s.called) {
			continue
		}
		at := slices.IndexFunc(o.Servers, func(a compare.About) bool { return a.Name == s.name })
		if at < 0 {
			t.Fatalf("the report has no %s", s.name)
		}
		if version := regexp.MustCompile(`\d+\.[\d.]*\d`).FindString(row); !strings.Contains(o.Servers[at].Text, version) {
			t.Errorf("%s: the report is of %s", row, o.Servers[at].Text)
		}
		return s.name
	}
	t.Fatalf("%q is no server of the report: give it its name here", row)
	return ""
}

func metric(name string) compare.Metric {
	all := compare.Metrics()
	return all[slices.IndexFunc(all, func(m compare.Metric) bool { return m.Name == name })]
}

// means tells whether a figure is a value, rounded to as many digits as are written.
func means(figure string, value float64) bool {
	figure = strings.ReplaceAll(figure, " ", "")
	_, decimals, _ := strings.Cut(figure, ".")
	if value >= 1000 && decimals == "" {
		unit := math.Pow10(len(figure) - len(strings.TrimRight(figure, "0")))
		value = math.Round(value/unit) * unit
	}
	return strconv.FormatFloat(value, 'f', len(decimals), 64) == figure
}

// The table of the README is the report's.
func TestFiguresOfTheReadme(t *testing.T) {
	c := cite(t, "../../README.md", "What it costs")
	main, rows := c.reports[0], c.table(t, "server")
	for _, row := range rows[1:] {
		server := serverOf(t, main, row[0])
		for i, cell := range row[1:] {
			if cell == "–" {
				continue
			}
			point := pointOf(t, rows[0][i+1])
			m := regexp.MustCompile(`^(\d+(?:\.\d+)?)(?: \((\d+\.\d\d)x\))?$`).FindStringSubmatch(cell)
			cpu, measured := main.Spread(server, point, compare.CPU())
			ratio, _ := main.Ratio(server, point, compare.CPU())
			switch {
			case m == nil || !measured || (m[2] == "") != (server == main.Base):
				t.Errorf("%s, %s: %q is no figure of the report", row[0], point, cell)
			case !means(m[1], cpu.Median) || m[2] != "" && !means(m[2], ratio.Median):
				t.Errorf("%s, %s: %s, and the report has %.3g (%.2fx)", row[0], point, cell, cpu.Median, ratio.Median)
			}
		}
	}
	c.prose(t)
}

// The table of CPU times in docs/sizing.md is the report's, and what it comes to.
func TestFiguresOfTheSizing(t *testing.T) {
	c := cite(t, "../../docs/sizing.md", "CPU")
	for _, row := range c.table(t, "load of the node")[1:] {
		point := pointOf(t, row[0])
		cpu, _ := c.reports[0].Spread("nodens", point, compare.CPU())
		answers, _ := c.reports[0].Spread("nodens", point, metric("answers/s"))
		if !means(strings.TrimSuffix(row[1], " µs"), cpu.Median) {
			t.Errorf("%s: %s, and the report has %.3g", point, row[1], cpu.Median)
		}
		if share, ok := strings.CutSuffix(row[2], " %"); ok && !means(share, cpu.Median*answers.Median/1e4) {
			t.Errorf("%s: %s of one core, want %.3g", point, row[2], cpu.Median*answers.Median/1e4)
		}
	}
	c.prose(t)
	cite(t, "../../docs/sizing.md", "Memory").prose(t)
}

// prose looks for every other figure with one of these units in the reports, behind the name
// of CoreDNS in a sentence among its figures.
func (c cited) prose(t *testing.T) {
	t.Helper()
	kinds := map[string]compare.Metric{"µs": compare.CPU(), "/s": metric("answers/s"), "MB": metric("RSS MB")}
	server, found := "nodens", 0
	for _, m := range regexp.MustCompile(`([.|]\s)|\b(CoreDNS)\b|(\d+(?: \d{3})*(?:\.\d+)?) ?(µs|MB|/s)`).FindAllStringSubmatch(c.text, -1) {
		switch {
		case m[1] != "":
			server = "nodens"
		case m[2] != "":
			server = "coredns"
		case !slices.ContainsFunc(c.reports, func(o *compare.Outcome) bool {
			return slices.ContainsFunc(o.Points, func(p compare.About) bool {
				s, ok := o.Spread(server, p.Name, kinds[m[4]])
				return ok && means(m[3], s.Median)
			})
		}):
			t.Errorf("no report has %s %s of %s", m[3], m[4], server)
		default:
			found++
		}
	}
	if found == 0 {
		t.Error("no figure is of a report")
	}
}

// A figure that is another by one digit is another.
func TestMeans(t *testing.T) {
	for figure, want := range map[string]bool{
		"39.4": true, "39.3": false, "39": true, "40": false, "3.94": false, "39.40": false, "394": false,
	} {
		if means(figure, 39.44) != want {
			t.Errorf("%s for 39.44: want %t", figure, want)
		}
	}
	for figure, want := range map[string]bool{
		"174 600": true, "174 500": false, "174 601": false, "175 000": true, "174 611": true, "184 600": false,
	} {
		if means(figure, 174611) != want {
			t.Errorf("%s for 174611: want %t", figure, want)
		}
	}
}
