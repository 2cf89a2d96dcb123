package report_test

import (
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nodens-dns/nodens/bench/compare"
	"github.com/nodens-dns/nodens/bench/cost"
	"github.com/nodens-dns/nodens/bench/load"
	"github.com/nodens-dns/nodens/bench/machine"
	"github.com/nodens-dns/nodens/bench/play"
	"github.com/nodens-dns/nodens/bench/report"
)

func latency(p50 time.Duration) load.Percentiles {
	return load.Percentiles{Mean: p50, P50: p50, P90: 2 * p50, P99: 5 * p50, P999: 20 * p50, Max: 100 * p50}
}

// played is a play with a second of silence in it.
func played() *play.Result {
	r := &play.Result{
		Scenario: "dead", Does: "Servers <die> & come back.", Server: "nodens", Version: "v1",
		Load: &load.Report{Target: "127.0.0.1:53", Sending: 5 * time.Second, Latency: latency(80 * time.Microsecond)},
		Cost: &cost.Cost{Took: 5 * time.Second, User: time.Second, System: 2 * time.Second, RSS: 30e6, Voluntary: 500},
		Usage: []play.Usage{
			{At: time.Second, Cores: 0.5, RSS: 20e6}, {At: 2 * time.Second, Cores: 0.7, RSS: 30e6},
		},
		Marks: []play.Mark{{At: 2 * time.Second, Does: "all <silent>"}},
	}
	for i := range 5 {
		s := load.Second{At: time.Duration(i) * time.Second, Counts: load.Counts{Sent: 1000, Right: 1000}, Latency: latency(80 * time.Microsecond)}
		if i == 2 {
			s.Counts, s.Latency = load.Counts{Sent: 1000, Lost: 900, ServFail: 100}, load.Percentiles{}
		}
		r.Load.Seconds = append(r.Load.Seconds, s)
		r.Load.Total.Sent += s.Counts.Sent
	}
	r.Load.Total.Lost, r.Load.Total.ServFail, r.Load.Total.Right = 900, 100, 4000
	r.Load.Phases = []load.Phase{{Name: "run", Counts: r.Load.Total, Latency: r.Load.Latency}}
	for i := range 100 {
		r.Load.CDF = append(r.Load.CDF, load.Point{Share: float64(i+1) / 100, Latency: time.Duration(i+1) * 10 * time.Microsecond})
	}
	return r
}

func compared() *compare.Outcome {
	o := &compare.Outcome{
		Machine: machine.Describe("v1"), Rounds: 2, Base: "nodens", Points: []compare.About{{Name: "10k", Text: "Hits."}},
		Servers: []compare.About{{Name: "nodens", Text: "v1"}, {Name: "slow", Text: "v2"}, {Name: "gone", Text: "v3"}},
		Skipped: []compare.Skip{{Name: "unbound", Why: "not installed"}},
	}
	for round := 1; round <= 2; round++ {
		fast, slow := played(), played()
		slow.Cost.User *= time.Duration(1 + round)
		slow.Load.Generator.Bottleneck = "late"
		o.Cells = append(o.Cells, compare.Cell{Server: "nodens", Point: "10k", Round: round, Result: fast},
			compare.Cell{Server: "slow", Point: "10k", Round: round, Result: slow})
	}
	return o
}

// wellFormed tells whether every element is closed: browsers forgive, readers of
// one drawing do not.
func wellFormed(page string) error {
	decoder := xml.NewDecoder(strings.NewReader(page))
	decoder.Strict, decoder.AutoClose, decoder.Entity = false, []string{"meta", "br", "!doctype"}, xml.HTMLEntity
	for {
		_, err := decoder.Token()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func TestPageOfAPlay(t *testing.T) {
	page := report.OfPlay("nodens-bench run", machine.Describe("v1"), played()).HTML()
	if err := wellFormed(page); err != nil {
		t.Error(err)
	}
	for _, want := range []string{
		"Servers &lt;die&gt; &amp; come back.", "at 2.0 s: all &lt;silent&gt;", "600 µs</b> CPU per query", "Latency over time",
		"SERVFAIL</text>", `<td class="bad">900</td>`, "memory, MB", "Distribution of latency",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	// The second of silence is a gap: each percentile has a line before and one after.
	if got := strings.Count(page[strings.Index(page, "Latency over time"):strings.Index(page, "Rate, and")], "<polyline"); got != 8 {
		t.Errorf("%d lines of latency, want 8", got)
	}
	for _, foreign := range []string{"http-equiv", "<script", "src=", "@import", "url(", "NaN", "Inf"} {
		if strings.Contains(page, foreign) {
			t.Errorf("the page has %q", foreign)
		}
	}
}

func TestPageSaysWhatWasNotSent(t *testing.T) {
	r := played()
	said := func() bool {
		return strings.Contains(report.OfPlay("x", machine.Describe(""), r).HTML(), "17 queries that were due were not sent")
	}
	if said() {
		t.Error("the page says so of a play that sent all")
	}
	if r.Load.Generator.Unsent = 17; !said() {
		t.Error("the page does not say that 17 queries were not sent")
	}
}

func TestProcessesThatAreNotCountedAreNamed(t *testing.T) {
	r := played()
	for _, r.Children = range []int{0, 3} {
		d := report.OfPlay("x", machine.Describe(""), r)
		for _, text := range []string{d.Text(), d.HTML()} {
			if strings.Contains(text, "3 processes that it started are not in its CPU time") != (r.Children > 0) {
				t.Errorf("%d children:\n%s", r.Children, text)
			}
		}
	}
}

func TestReportsSayWhatWasChecked(t *testing.T) {
	r := played()
	r.Checked = "Only <this>."
	d := report.OfPlay("x", machine.Describe(""), r)
	if text, page := d.Text(), d.HTML(); !strings.Contains(text, "Only <this>.") || !strings.Contains(page, "Only &lt;this&gt;.") {
		t.Errorf("%s\n%s", text, page)
	}
}

func TestPageAndTableOfAComparison(t *testing.T) {
	d := report.OfCompare("nodens-bench compare", compared())
	page, text := d.HTML(), d.Text()
	if err := wellFormed(page); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"900 µs, 1.50 of nodens", "not measured: unbound (not installed)", "slow at 10k: not the server", "(2 of 2 rounds)"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	for _, want := range []string{"slow    900 (800-1000) 1.50x", "gone    -", "skipped unbound: not installed"} {
		if !strings.Contains(text, want) {
			t.Errorf("the table does not say %q:\n%s", want, text)
		}
	}
}

func TestReportsSayThatTheyWereCutShort(t *testing.T) {
	for _, cut := range []bool{false, true} {
		r, o := played(), compared()
		r.Cut, o.Cut = cut, cut
		for _, d := range []*report.Document{report.OfPlay("x", machine.Describe(""), r), report.OfCompare("x", o)} {
			if strings.Contains(d.Text(), "CUT SHORT") != cut || strings.Contains(d.HTML(), "CUT SHORT") != cut {
				t.Errorf("cut %v:\n%s", cut, d.Text())
			}
		}
	}
}

// Without a figure of the first server there is nothing to compare with.
func TestNoRatioWithoutABase(t *testing.T) {
	o := compared()
	o.Base = "gone"
	if text := report.OfCompare("x", o).Text(); strings.Contains(text, "0.00x") || strings.Count(text, ") -") != 2 {
		t.Errorf("%s", text)
	}
}

func TestNothingAnswered(t *testing.T) {
	r := played()
	r.Load.CDF, r.Load.Latency = nil, load.Percentiles{}
	for i := range r.Load.Seconds {
		r.Load.Seconds[i].Latency = load.Percentiles{}
	}
	page := report.OfPlay("x", machine.Describe(""), r).HTML()
	if err := wellFormed(page); err != nil || strings.Contains(page, "NaN") {
		t.Errorf("%v", err)
	}
}

func TestSavedAndReadAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "folder")
	d := report.OfCompare("x", compared())
	d.Machine.Time = d.Machine.Time.UTC()
	d.Compare.Machine = d.Machine
	if err := d.Save(dir); err != nil {
		t.Fatal(err)
	}
	got, err := report.Read(filepath.Join(dir, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(d.HTML(), got.HTML()); diff != "" {
		t.Errorf("(-saved +read)\n%s", diff)
	}
}

func TestNotAReport(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.json")
	for text, want := range map[string]string{
		`{"version":1}`:                                              "no whole measurement",
		`{"version":1,"play":{}}`:                                    "no whole measurement",
		`{"version":1,"play":{"load":{}},"compare":{}}`:              "no whole measurement",
		`{"version":1,"compare":{}}`:                                 "no whole measurement",
		`{"version":1,"compare":{"cells":[{}]}}`:                     "no whole measurement",
		`{"version":1,"compare":{"cells":[{"result":{}}]}}`:          "no whole measurement",
		`{"version":2,"play":{"load":{}}}`:                           "has format 2",
		`[]`:                                                         "is not the JSON of a report",
		`{"version":1,"play":{"load":{}}}`:                           "",
		`{"version":1,"compare":{"cells":[{"result":{"load":{}}}]}}`: "",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		switch d, err := report.Read(path); {
		case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", text, err, want)
		case err == nil:
			_, _ = d.Text(), d.HTML() // nothing is missing
		}
	}
	if _, err := report.Read(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a missing file is read")
	}
}
